// Operators about shapes, constants and types.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

// Shape inference did the clamping: the result's length says how many axes from `start` on.
Status shape_of(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const Shape& shape = args.inputs[0].shape;
  const int64_t rank = shape.rank();
  const MutableTensorView& out = args.outputs[0];
  int64_t start = args.attributes.int_or("start", 0);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  if (out.dtype != DType::kInt64 || out.shape.rank() != 1 || start + out.elements() > rank)
    return kernel_error("unfit result", ErrorCode::kShape);
  for (int64_t i = 0; i < out.elements(); ++i)
    out.as<int64_t>()[static_cast<size_t>(i)] = shape[static_cast<int>(start + i)];
  return {};
}

Status size_of(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kInt64, Shape{}));
  args.outputs[0].as<int64_t>()[0] = args.inputs[0].elements();
  return {};
}

Status write(const KernelArgs& args, const Tensor& value) {
  OPENRKNN_CHECK_OK(require(args, 0));
  OPENRKNN_CHECK_OK(require_output(args, 0, value.dtype(), value.shape()));
  if (value.bytes() > 0) std::memcpy(args.outputs[0].data, value.data(), value.bytes());
  return {};
}

Status constant(const KernelArgs& args) {
  const Attributes& a = args.attributes;
  if (const auto* v = a.get<Tensor>("value")) return write(args, *v);
  if (const auto* v = a.get<float>("value_float")) return write(args, Tensor::scalar(*v));
  if (const auto* v = a.get<int64_t>("value_int")) return write(args, Tensor::scalar(*v));
  if (const auto* v = a.get<std::vector<float>>("value_floats"))
    return write(args, Tensor::from(Shape{static_cast<int64_t>(v->size())}, *v));
  if (const auto* v = a.get<std::vector<int64_t>>("value_ints")) return write(args, Tensor::ints(*v));
  return kernel_error("the constant has no numeric value");
}

Status constant_of_shape(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const auto* value = args.attributes.get<Tensor>("value");
  const Tensor fill = value != nullptr ? *value : Tensor::scalar(0.0F);
  OPENRKNN_TRY(const Shape shape, Shape::make(to_ints(args.inputs[0])));
  OPENRKNN_CHECK_OK(require_output(args, 0, fill.dtype(), shape));
  if (fill.elements() != 1) return kernel_error("the fill value is no scalar", ErrorCode::kShape);
  fill_elements(args.outputs[0].data, shape.elements(), fill.data(), dtype_size(fill.dtype()));
  return {};
}

Status range(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  for (size_t i = 0; i < 3; ++i) {
    if (args.inputs[i].elements() != 1)
      return kernel_error(fmt::format("operand {} is no scalar", i), ErrorCode::kShape);
  }
  const MutableTensorView& out = args.outputs[0];
  const auto n = static_cast<size_t>(out.elements());
  if (out.dtype != args.inputs[0].dtype) return kernel_error("the result has another type", ErrorCode::kShape);
  if (is_integer(out.dtype)) {
    const auto start = static_cast<uint64_t>(to_ints(args.inputs[0])[0]);
    const auto delta = static_cast<uint64_t>(to_ints(args.inputs[2])[0]);
    std::vector<int64_t> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<int64_t>(start + i * delta);
    const Tensor made = cast(Tensor::ints(values).view(), out.dtype);
    if (made.bytes() > 0) std::memcpy(out.data, made.data(), made.bytes());
    return {};
  }
  const double start = to_doubles(args.inputs[0])[0];
  const double delta = to_doubles(args.inputs[2])[0];
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = start + static_cast<double>(i) * delta;
  const Tensor made = cast(Tensor::from(Shape{static_cast<int64_t>(n)}, values).view(), out.dtype);
  if (made.bytes() > 0) std::memcpy(out.data, made.data(), made.bytes());
  return {};
}

// The result's type says what to convert to: Cast and CastLike alike.
Status cast_kernel(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& in = args.inputs[0];
  const MutableTensorView& out = args.outputs[0];
  const auto numeric = [](DType d) {
    return d == DType::kBool || is_integer(d) || (is_float(d) && dtype_size(d) >= 2);
  };
  if (!numeric(in.dtype) || !numeric(out.dtype)) {
    return kernel_error(fmt::format("conversion of {} to {}", dtype_name(in.dtype), dtype_name(out.dtype)));
  }
  if (!(in.shape == out.shape)) return kernel_error("the result has another shape", ErrorCode::kShape);
  const Tensor made = cast(in, out.dtype);
  if (made.bytes() > 0) std::memcpy(out.data, made.data(), made.bytes());
  return {};
}

// The bits as another type of the same size.
Status bit_cast(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, out.dtype, in.shape));
  if (out.bytes() != in.bytes()) return kernel_error("types of different sizes", ErrorCode::kShape);
  if (out.bytes() > 0) std::memcpy(out.data, in.data, out.bytes());
  return {};
}

Status eye_like(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const Shape& shape = args.inputs[0].shape;
  const MutableTensorView& out = args.outputs[0];
  if (shape.rank() != 2) return kernel_error("a matrix is needed", ErrorCode::kShape);
  OPENRKNN_CHECK_OK(require_output(args, 0, out.dtype, shape));
  const size_t size = dtype_size(out.dtype);
  if (size == 0) return kernel_error(fmt::format("{} values", dtype_name(out.dtype)));
  const Tensor value = cast(Tensor::scalar(1.0F).view(), out.dtype);
  if (out.bytes() > 0) std::memset(out.data, 0, out.bytes());
  const int64_t k = std::clamp<int64_t>(args.attributes.int_or("k", 0), -shape[0], shape[1]);
  for (int64_t row = std::max<int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row) {
    std::memcpy(static_cast<std::byte*>(out.data) + static_cast<size_t>(row * shape[1] + row + k) * size, value.data(),
                size);
  }
  return {};
}

}  // namespace

void register_shape(Registry& registry) {
  registry.add("Shape", shape_of);
  registry.add("Size", size_of);
  registry.add("Constant", constant);
  registry.add("ConstantOfShape", constant_of_shape);
  registry.add("Range", range);
  registry.add("Cast", cast_kernel);
  registry.add("CastLike", cast_kernel);
  registry.add("EyeLike", eye_like);
  registry.add("BitCast", bit_cast);
}

}  // namespace openrknn::cpu
