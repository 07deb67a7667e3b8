// Functions of one operand, element by element.
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements a task
constexpr double kHalfPi = 1.5707963267948966;

template <typename T, typename F>
void map(const T* from, T* to, int64_t n, F f) {
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
}

// f over the operand in its compute type. `F` may refuse integers by not being callable with them.
template <typename F>
Status map_any(const KernelArgs& args, F f) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& in = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, in.shape));
  const DType compute = compute_type(in.dtype);
  if (compute == DType::kUndefined)
    return kernel_error(fmt::format("{} values are not supported", dtype_name(in.dtype)));
  const Promoted operand(in, compute);
  return compute_into(args.outputs[0], compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    if constexpr (std::is_invocable_v<F, T>) {
      map(operand.data<T>(), to, in.elements(), f);
      return {};
    } else {
      return kernel_error(fmt::format("{} values are not supported", dtype_name(in.dtype)));
    }
  });
}

template <typename T>
concept Float = std::is_floating_point_v<T>;

// A function given in double: computed there, rounded once.
template <double (*kFunction)(double)>
struct Wide {
  template <Float T>
  T operator()(T x) const {
    return static_cast<T>(kFunction(static_cast<double>(x)));
  }
};

struct NegOp {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
    else
      return -x;
  }
};
struct AbsOp {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? NegOp{}(x) : x;
    else
      return x;
  }
};
struct SignOp {
  template <typename T>
  T operator()(T x) const {
    return x > T{0} ? T{1} : x < T{0} ? static_cast<T>(-1) : x == x ? T{0} : x;
  }
};
struct FloorOp {
  template <Float T>
  T operator()(T x) const {
    return std::floor(x);
  }
};
struct CeilOp {
  template <Float T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};
struct RoundOp {  // halves to even
  template <Float T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};
struct ReciprocalOp {
  template <Float T>
  T operator()(T x) const {
    return T{1} / x;
  }
};
struct SqrtOp {
  template <Float T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

double tan_of(double x) { return math::sin(x) / math::cos(x); }

// atan on [0, 1] by its series after one step of reduction by pi/6: |r| <= tan(pi/12) = 0.268, 15 terms to 1e-17.
double atan_unit(double x) {
  constexpr double kSqrt3 = 1.7320508075688772;
  const bool reduce = x > 0.2679491924311227;
  const double r = reduce ? (x * kSqrt3 - 1.0) / (x + kSqrt3) : x;
  const double z = r * r;
  double sum = 0.0;
  for (int k = 14; k >= 1; --k) sum = z * ((k % 2 == 0 ? 1.0 : -1.0) / (2.0 * k + 1.0) + sum);
  const double series = r + r * sum;
  return reduce ? 0.52359877559829887 + series : series;
}

double atan_of(double x) {
  const double a = std::fabs(x);
  const double y = a <= 1.0 ? atan_unit(a) : kHalfPi - atan_unit(1.0 / a);
  return a != a ? x : std::copysign(y, x);
}

double asin_of(double x) {
  if (!(std::fabs(x) <= 1.0)) return math::detail::kNan;
  return atan_of(x / std::sqrt((1.0 - x) * (1.0 + x)));
}
double acos_of(double x) {
  if (!(std::fabs(x) <= 1.0)) return math::detail::kNan;
  return 2.0 * atan_of(std::sqrt((1.0 - x) / (1.0 + x)));
}
double sinh_of(double x) {
  const double e = math::expm1(std::fabs(x));
  return std::copysign(0.5 * (e + e / (e + 1.0)), x);
}
double cosh_of(double x) {
  const double e = math::exp(std::fabs(x));
  return 0.5 * (e + 1.0 / e);
}
double asinh_of(double x) {
  const double a = std::fabs(x);
  return std::copysign(math::log1p(a + a * a / (1.0 + std::sqrt(a * a + 1.0))), x);
}
double acosh_of(double x) {
  if (!(x >= 1.0)) return math::detail::kNan;
  const double t = x - 1.0;
  return math::log1p(t + std::sqrt(2.0 * t + t * t));
}
double atanh_of(double x) { return 0.5 * math::log1p(2.0 * x / (1.0 - x)); }

template <typename F>
Status kernel(const KernelArgs& args) {
  return map_any(args, F{});
}

// The array functions vectorise; other types go one by one.
template <void (*kArray)(const float*, float*, int64_t), double (*kFunction)(double)>
Status array_kernel(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& in = args.inputs[0];
  if (in.dtype != DType::kFloat32) return map_any(args, Wide<kFunction>{});
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, in.shape));
  const float* from = in.as<float>().data();
  float* to = args.outputs[0].as<float>().data();
  parallel_for(in.elements(), kGrain,
               [=](int64_t begin, int64_t end) { kArray(from + begin, to + begin, end - begin); });
  return {};
}

// Float operand, bool result.
template <typename F>
Status test_each(const KernelArgs& args, F f) {
  OPENRKNN_CHECK_OK(require(args, 1));
  if (!is_float(args.inputs[0].dtype)) return kernel_error(fmt::format("{} values", dtype_name(args.inputs[0].dtype)));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kBool, args.inputs[0].shape));
  const auto in = to_doubles(args.inputs[0]);
  const auto out = args.outputs[0].as<uint8_t>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = f(in[i]) ? 1 : 0;
  return {};
}

Status is_nan(const KernelArgs& args) {
  return test_each(args, [](double x) { return x != x; });
}

Status is_inf(const KernelArgs& args) {
  const bool positive = args.attributes.int_or("detect_positive", 1) != 0;
  const bool negative = args.attributes.int_or("detect_negative", 1) != 0;
  return test_each(args, [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

struct BitNotOp {
  template <typename T>
  requires std::is_integral_v<T> T operator()(T x) const { return static_cast<T>(~x); }
};

// x moved towards 0 by the bias where it lies beyond lambd, else 0. The sum is in double, cut to what an integer holds.
struct ShrinkOp {
  double bias;
  double lambd;

  template <typename T>
  T operator()(T x) const {
    const auto value = static_cast<double>(x);
    const double moved = value < -lambd ? value + bias : value > lambd ? value - bias : 0.0;
    if constexpr (std::is_integral_v<T>) {
      constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
      constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
      if (!(moved > kLow)) return moved != moved ? T{0} : std::numeric_limits<T>::min();
      return moved < kHigh ? static_cast<T>(moved) : std::numeric_limits<T>::max();
    } else {
      return static_cast<T>(moved);
    }
  }
};

Status shrink(const KernelArgs& args) {
  return map_any(args, ShrinkOp{args.attributes.float_or("bias", 0.0F), args.attributes.float_or("lambd", 0.5F)});
}

}  // namespace

void register_unary(Registry& registry) {
  registry.add("Neg", kernel<NegOp>);
  registry.add("Abs", kernel<AbsOp>);
  registry.add("Sign", kernel<SignOp>);
  registry.add("Floor", kernel<FloorOp>);
  registry.add("Ceil", kernel<CeilOp>);
  registry.add("Round", kernel<RoundOp>);
  registry.add("Reciprocal", kernel<ReciprocalOp>);
  registry.add("Sqrt", kernel<SqrtOp>);
  registry.add("Exp", array_kernel<math::exp_array, math::exp>);
  registry.add("Log", array_kernel<math::log_array, math::log>);
  registry.add("Erf", array_kernel<math::erf_array, math::erf>);
  registry.add("Sin", kernel<Wide<math::sin>>);
  registry.add("Cos", kernel<Wide<math::cos>>);
  registry.add("Tan", kernel<Wide<tan_of>>);
  registry.add("Asin", kernel<Wide<asin_of>>);
  registry.add("Acos", kernel<Wide<acos_of>>);
  registry.add("Atan", kernel<Wide<atan_of>>);
  registry.add("Sinh", kernel<Wide<sinh_of>>);
  registry.add("Cosh", kernel<Wide<cosh_of>>);
  registry.add("Asinh", kernel<Wide<asinh_of>>);
  registry.add("Acosh", kernel<Wide<acosh_of>>);
  registry.add("Atanh", kernel<Wide<atanh_of>>);
  registry.add("IsNaN", is_nan);
  registry.add("IsInf", is_inf);
  registry.add("BitwiseNot", kernel<BitNotOp>);
  registry.add("Shrink", shrink);
}

}  // namespace openrknn::cpu
