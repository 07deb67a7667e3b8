// Activation operators: the functions of kernels/activation.hpp over whole tensors.
#include "kernels/activation.hpp"

#include <algorithm>
#include <type_traits>

#include "base/parallel.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/cpu/support_promote.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements a task

void apply_over(const ActivationSpec& spec, const float* from, float* to, int64_t count) {
  parallel_for(count, kGrain,
               [&](int64_t begin, int64_t end) { apply_activation(spec, from + begin, to + begin, end - begin); });
}

// float32 as it is; float16, bfloat16 and float64 through float32.
Status apply_any(const ActivationSpec& spec, const TensorView& in, const MutableTensorView& out) {
  if (in.dtype == DType::kFloat32) {
    apply_over(spec, in.as<float>().data(), out.as<float>().data(), in.elements());
    return {};
  }
  if (!is_float(in.dtype) || dtype_size(in.dtype) < 2) {
    return kernel_error(fmt::format("activation of {} values", dtype_name(in.dtype)));
  }
  Tensor wide = cast(in, DType::kFloat32);
  apply_over(spec, wide.as<float>().data(), wide.mutable_as<float>().data(), in.elements());
  const Tensor back = cast(wide.view(), in.dtype);
  if (out.bytes() > 0) std::memcpy(out.data, back.data(), out.bytes());
  return {};
}

// Relu has no other numbers than those of its operand.
Status relu_of_integers(const KernelArgs& args) {
  const TensorView& in = args.inputs[0];
  const MutableTensorView& out = args.outputs[0];
  const Promoted wide(in, compute_type(in.dtype));
  return compute_into(out, compute_type(in.dtype), [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const T* from = wide.data<T>();
    for (int64_t i = 0; i < in.elements(); ++i) to[i] = std::max(from[i], T{0});
    return {};
  });
}

// The kernel does not know its operator's name, so every name has a function of its own.
template <const char* const& kName>
Status unary(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, args.inputs[0].shape));
  OPENRKNN_TRY(const ActivationSpec spec, activation_of(kName, args.attributes));
  if (spec.kind == Activation::kRelu && is_integer(args.inputs[0].dtype)) return relu_of_integers(args);
  return apply_any(spec, args.inputs[0], args.outputs[0]);
}

Result<float> bound(const KernelArgs& args, size_t i, float fallback) {
  if (!args.has_input(i)) return fallback;
  if (args.inputs[i].elements() != 1) return kernel_error(fmt::format("bound {} is no scalar", i), ErrorCode::kShape);
  return static_cast<float>(to_doubles(args.inputs[i])[0]);
}

Status clip_integers(const KernelArgs& args) {
  const TensorView& in = args.inputs[0];
  const auto bound_of = [&](size_t i, int64_t fallback) {
    return args.has_input(i) ? to_ints(args.inputs[i])[0] : fallback;
  };
  const int64_t low = bound_of(1, INT64_MIN);
  const int64_t high = bound_of(2, INT64_MAX);
  Tensor wide = cast(in, DType::kInt64);
  for (int64_t& x : wide.mutable_as<int64_t>()) x = std::min(std::max(x, low), high);
  const Tensor back = cast(wide.view(), in.dtype);
  if (back.bytes() > 0) std::memcpy(args.outputs[0].data, back.data(), back.bytes());
  return {};
}

Status clip(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, args.inputs[0].shape));
  ActivationSpec spec = *activation_from_name("Clip");
  OPENRKNN_TRY(spec.min, bound(args, 1, spec.min));
  OPENRKNN_TRY(spec.max, bound(args, 2, spec.max));
  if (is_integer(args.inputs[0].dtype)) return clip_integers(args);
  return apply_any(spec, args.inputs[0], args.outputs[0]);
}

Status prelu(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const TensorView& x = args.inputs[0];
  const TensorView& slope = args.inputs[1];
  if (x.dtype != slope.dtype) return kernel_error("operand and slope have different types");
  OPENRKNN_TRY(const Shape shape, broadcast(x.shape, slope.shape));
  if (!(shape == x.shape)) return kernel_error("the slope is larger than the operand", ErrorCode::kShape);
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, shape));
  const DType compute = compute_type(x.dtype);
  const Promoted wide_x(x, compute);
  const Promoted wide_slope(slope, compute);
  return compute_into(args.outputs[0], compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    broadcast_binary(shape, wide_x.data<T>(), x.shape, wide_slope.data<T>(), slope.shape, to, [](T v, T s) -> T {
      if constexpr (std::is_unsigned_v<T>) return v;
      if (!(v < T{0})) return v;
      if constexpr (std::is_floating_point_v<T>) return s * v;
      return static_cast<T>(static_cast<uint64_t>(s) * static_cast<uint64_t>(v));  // wraps
    });
    return {};
  });
}

// The formatter never settles on the line breaks of this list.
// clang-format off
#define OPENRKNN_ACTIVATIONS(X) \
  X(Relu) \
  X(LeakyRelu) \
  X(Sigmoid) \
  X(Tanh) \
  X(HardSigmoid) \
  X(HardSwish) \
  X(Elu) \
  X(Selu) \
  X(Celu) \
  X(Softplus) \
  X(Softsign) \
  X(ThresholdedRelu) \
  X(Swish) \
  X(Mish) \
  X(Gelu) \
  X(exSwish) \
  X(exGelu) \
  X(exMish)
// clang-format on
#define X(name) constexpr const char* k##name = #name;
OPENRKNN_ACTIVATIONS(X)
#undef X

}  // namespace

void register_activation(Registry& registry) {
#define X(name) registry.add(k##name, unary<k##name>);
  OPENRKNN_ACTIVATIONS(X)
#undef X
  registry.add("Clip", clip);
  registry.add("PRelu", prelu);
}

}  // namespace openrknn::cpu
