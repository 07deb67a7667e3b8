// Arithmetic of two or more operands under numpy broadcasting. Integers wrap, as the hardware's and numpy's do.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/activation.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

// Integer operations in the unsigned type: overflow is defined there.
template <typename T, typename F>
T wrapped(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

struct AddOp {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct SubOp {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapped(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct MulOp {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
// Integer divisors are checked before: never 0.
struct DivOp {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == -1) return SubOp{}(T{0}, a);
    }
    return a / b;
  }
};
// The sign of the divisor, as Python's %.
struct ModOp {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
      }
      const T r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
// The sign of the dividend, as C's fmod.
struct FmodOp {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
      }
      return a % b;
    }
  }
};
// NaN wins, as in numpy.
struct MinOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a ? a : b < a || b != b ? b : a;
  }
};
struct MaxOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a ? a : b > a || b != b ? b : a;
  }
};
struct BitAndOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOrOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXorOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

// Operands of one type whose broadcast shape is the result's.
Status check_operands(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, std::max<size_t>(args.inputs.size(), 1)));
  Shape shape = args.inputs[0].shape;
  for (const TensorView& in : args.inputs) {
    if (in.dtype != args.inputs[0].dtype) {
      return kernel_error(
          fmt::format("operands of types {} and {}", dtype_name(args.inputs[0].dtype), dtype_name(in.dtype)),
          ErrorCode::kShape);
    }
    OPENRKNN_TRY(shape, broadcast(shape, in.shape));
  }
  return require_output(args, 0, args.inputs[0].dtype, shape);
}

Status check_divisor(const TensorView& divisor) {
  if (!is_integer(divisor.dtype)) return {};
  for (const int64_t d : to_ints(divisor)) {
    if (d == 0) return kernel_error("an integer is divided by 0", ErrorCode::kInvalidArgument);
  }
  return {};
}

template <typename Op>
Status compute_binary(const KernelArgs& args) {
  const MutableTensorView& out = args.outputs[0];
  const DType compute = compute_type(out.dtype);
  if (compute == DType::kUndefined)
    return kernel_error(fmt::format("{} values are not supported", dtype_name(out.dtype)));
  const Promoted a(args.inputs[0], compute);
  const Promoted b(args.inputs[1], compute);
  return compute_into(out, compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    if constexpr (std::is_invocable_v<Op, T, T>) {
      broadcast_binary(out.shape, a.data<T>(), a.view().shape, b.data<T>(), b.view().shape, to, Op{});
      return {};
    } else {
      return kernel_error("unsupported type");
    }
  });
}

Status apply_fused(const KernelArgs& args) {
  if (!args.attributes.has("activation")) return {};
  OPENRKNN_TRY(const ActivationSpec spec, fused_activation(args.attributes));
  const MutableTensorView& out = args.outputs[0];
  if (out.dtype != DType::kFloat32)
    return kernel_error(fmt::format("a fused activation of {} values", dtype_name(out.dtype)));
  float* data = out.as<float>().data();
  parallel_for(out.elements(), 16384,
               [&](int64_t begin, int64_t end) { apply_activation(spec, data + begin, end - begin); });
  return {};
}

template <typename Op>
Status binary(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(check_operands(args));
  OPENRKNN_CHECK_OK(compute_binary<Op>(args));
  return apply_fused(args);
}

template <typename Op>
Status bitwise(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(check_operands(args));
  if (!is_integer(args.inputs[0].dtype))
    return kernel_error(fmt::format("bits of {} values", dtype_name(args.inputs[0].dtype)));
  const Promoted a(args.inputs[0], DType::kInt64);
  const Promoted b(args.inputs[1], DType::kInt64);
  Tensor wide(DType::kInt64, args.outputs[0].shape);
  broadcast_binary(wide.shape(), a.data<int64_t>(), a.view().shape, b.data<int64_t>(), b.view().shape,
                   wide.mutable_as<int64_t>().data(), Op{});
  const Tensor back = cast(wide.view(), args.outputs[0].dtype);
  if (back.bytes() > 0) std::memcpy(args.outputs[0].data, back.data(), back.bytes());
  return {};
}

Status divide(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(check_operands(args));
  OPENRKNN_CHECK_OK(check_divisor(args.inputs[1]));
  return compute_binary<DivOp>(args);
}

Status modulo(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(check_operands(args));
  OPENRKNN_CHECK_OK(check_divisor(args.inputs[1]));
  if (args.attributes.int_or("fmod", 0) != 0) return compute_binary<FmodOp>(args);
  if (is_float(args.inputs[0].dtype)) return kernel_error("Mod of float values needs fmod = 1");
  return compute_binary<ModOp>(args);
}

// The result is operand 0 repeated to its shape, then op(result, operand) for the others in order.
template <typename Op>
Status fold(const KernelArgs& args, bool mean = false) {
  OPENRKNN_CHECK_OK(check_operands(args));
  const MutableTensorView& out = args.outputs[0];
  const DType compute = compute_type(out.dtype);
  if (compute == DType::kUndefined)
    return kernel_error(fmt::format("{} values are not supported", dtype_name(out.dtype)));
  return compute_into(out, compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted first(args.inputs[0], compute);
    broadcast_binary(out.shape, first.data<T>(), first.view().shape, first.data<T>(), first.view().shape, to,
                     [](T a, T) { return a; });
    for (size_t i = 1; i < args.inputs.size(); ++i) {
      const Promoted next(args.inputs[i], compute);
      broadcast_binary(out.shape, to, out.shape, next.data<T>(), next.view().shape, to, Op{});
    }
    if (mean && args.inputs.size() > 1) {
      const T count = static_cast<T>(args.inputs.size());
      broadcast_binary(out.shape, to, out.shape, &count, Shape{}, to, DivOp{});
    }
    return {};
  });
}

template <typename Op>
Status fold_kernel(const KernelArgs& args) {
  return fold<Op>(args);
}

Status mean(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  if (!is_float(args.inputs[0].dtype))
    return kernel_error(fmt::format("Mean of {} values", dtype_name(args.inputs[0].dtype)));
  return fold<AddOp>(args, true);
}

template <typename T>
T int_power(T base, int64_t exponent) {
  using U = std::make_unsigned_t<T>;
  if (exponent < 0) {
    if (base == 1) return 1;
    if (std::is_signed_v<T> && base == static_cast<T>(-1)) return exponent % 2 == 0 ? T{1} : base;
    return 0;
  }
  U result = 1;
  U square = static_cast<U>(base);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// One float power: the exponents that networks use are exact products and roots.
double float_power(double x, double y) {
  if (y == 2.0) return x * x;
  if (y == 1.0) return x;
  if (y == 3.0) return x * x * x;
  if (y == 0.5 && x >= 0.0) return std::sqrt(x);
  if (y == -1.0) return 1.0 / x;
  return math::pow(x, y);
}

// math::pow is good to 1e-13: a power that is an integer must not be cut to the one below.
double snapped_power(double x, double y) {
  const double power = float_power(x, y);
  const double near = std::nearbyint(power);
  return std::fabs(power - near) <= 1e-11 * std::fabs(power) ? near : power;
}

Status power(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_TRY(const Shape shape, broadcast(args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, shape));
  const DType compute = compute_type(out.dtype);
  if (compute == DType::kUndefined)
    return kernel_error(fmt::format("{} values are not supported", dtype_name(out.dtype)));
  const Promoted base(args.inputs[0], compute);
  const bool integers = is_integer(out.dtype) && is_integer(args.inputs[1].dtype);
  const Promoted exponent(args.inputs[1], integers ? DType::kInt64 : DType::kFloat64);
  return compute_into(out, compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Shape& eb = base.view().shape;
    const Shape& ee = exponent.view().shape;
    if constexpr (std::is_integral_v<T>) {
      if (integers) {
        broadcast_binary(shape, base.data<T>(), eb, exponent.data<int64_t>(), ee, to,
                         [](T b, int64_t e) { return int_power(b, e); });
        return {};
      }
      // In double, cut to an integer as Cast does.
      const Promoted wide(args.inputs[0], DType::kFloat64);
      Tensor result(DType::kFloat64, shape);
      broadcast_binary(shape, wide.data<double>(), eb, exponent.data<double>(), ee, result.mutable_as<double>().data(),
                       snapped_power);
      const Tensor narrow = cast(result.view(), compute);
      std::copy_n(narrow.as<T>().data(), static_cast<size_t>(shape.elements()), to);
      return {};
    } else {
      broadcast_binary(shape, base.data<T>(), eb, exponent.data<double>(), ee, to,
                       [](T b, double e) { return static_cast<T>(float_power(static_cast<double>(b), e)); });
      return {};
    }
  });
}

Status bit_shift(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(check_operands(args));
  const DType dtype = args.inputs[0].dtype;
  const std::string direction = args.attributes.string_or("direction", "");
  if (!is_integer(dtype) || is_signed_integer(dtype))
    return kernel_error(fmt::format("a shift of {} values", dtype_name(dtype)));
  if (direction != "LEFT" && direction != "RIGHT") return kernel_error(fmt::format("direction '{}'", direction));
  const bool left = direction == "LEFT";
  const Promoted a(args.inputs[0], DType::kUInt64);
  const Promoted b(args.inputs[1], DType::kUInt64);
  Tensor wide(DType::kUInt64, args.outputs[0].shape);
  broadcast_binary(wide.shape(), a.data<uint64_t>(), a.view().shape, b.data<uint64_t>(), b.view().shape,
                   wide.mutable_as<uint64_t>().data(), [left](uint64_t x, uint64_t n) {
                     return n >= 64 ? uint64_t{0} : left ? x << n : x >> n;
                   });
  const Tensor back = cast(wide.view(), dtype);
  if (back.bytes() > 0) std::memcpy(args.outputs[0].data, back.data(), back.bytes());
  return {};
}

}  // namespace

void register_elementwise(Registry& registry) {
  registry.add("Add", binary<AddOp>);
  registry.add("Sub", binary<SubOp>);
  registry.add("Mul", binary<MulOp>);
  registry.add("Div", divide);
  registry.add("Mod", modulo);
  registry.add("Pow", power);
  registry.add("Min", fold_kernel<MinOp>);
  registry.add("Max", fold_kernel<MaxOp>);
  registry.add("Sum", fold_kernel<AddOp>);
  registry.add("Mean", mean);
  registry.add("BitwiseAnd", bitwise<BitAndOp>);
  registry.add("BitwiseOr", bitwise<BitOrOp>);
  registry.add("BitwiseXor", bitwise<BitXorOp>);
  registry.add("BitShift", bit_shift);
}

}  // namespace openrknn::cpu
