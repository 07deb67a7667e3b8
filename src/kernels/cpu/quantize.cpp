// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_requantize.hpp"
#include "kernels/quantize_plan.hpp"

namespace openrknn::cpu {
namespace {

struct Parameters {
  QuantizePlan plan;
  Tensor scales;               // float32
  std::vector<int64_t> zeros;  // as many, or one for all

  float scale(int64_t i) const { return scales.as<float>()[static_cast<size_t>(i)]; }
  int64_t zero(int64_t i) const { return zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(i)]; }
};

Result<Parameters> read_parameters(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const Shape& shape = args.inputs[1].shape;
  OPENRKNN_TRY(const QuantizePlan plan, quantize_plan(args.attributes, args.inputs[0].shape, shape));
  Parameters made{plan, cast(args.inputs[1], DType::kFloat32), {0}};
  if (const auto zeros = ints_operand(args, 2)) made.zeros = *zeros;
  if (made.zeros.size() != 1 && static_cast<int64_t>(made.zeros.size()) != shape.elements())
    return kernel_error(fmt::format("{} zero points for {} scales", made.zeros.size(), shape.elements()));
  return made;
}

// Calls f(first element, count, first parameter, step of the parameters) for runs of elements.
template <typename F>
void for_each_run(const QuantizePlan& plan, F&& f) {
  const bool single = plan.axis_step == 0;
  parallel_for(plan.outer * plan.extent, std::max<int64_t>(1, 4096 / std::max<int64_t>(plan.inner, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   const int64_t o = line / plan.extent;
                   const int64_t a = line % plan.extent / plan.block;
                   const int64_t parameter = single ? 0 : o * plan.outer_step + a * plan.axis_step;
                   f(line * plan.inner, plan.inner, parameter, plan.inner_step);
                 }
               });
}

template <typename T>
void quantize_into(const Parameters& p, const float* x, DType dtype, T* y) {
  const Requantizer round(dtype);
  for_each_run(p.plan, [&](int64_t first, int64_t count, int64_t parameter, int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = parameter + i * step;
      y[first + i] = static_cast<T>(round(x[first + i] / p.scale(at), p.zero(at)));
    }
  });
}

// Calls f(pointer) with the storage type of a quantized type.
template <typename F>
Status with_storage(const MutableTensorView& out, F&& f) {
  switch (out.dtype) {
    case DType::kInt8:
    case DType::kInt4:
      f(out.as<int8_t>().data());
      return {};
    case DType::kUInt8:
    case DType::kUInt4:
      f(out.as<uint8_t>().data());
      return {};
    case DType::kInt16:
      f(out.as<int16_t>().data());
      return {};
    case DType::kUInt16:
      f(out.as<uint16_t>().data());
      return {};
    default:
      return kernel_error(fmt::format("quantization to {} is not supported", dtype_name(out.dtype)));
  }
}

Status quantize(const KernelArgs& args) {
  OPENRKNN_TRY(const Parameters p, read_parameters(args));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, out.dtype, args.inputs[0].shape));
  if (dtype_size(args.inputs[0].dtype) == 0) return kernel_error("the operand has no numbers");
  Tensor converted;
  TensorView x = args.inputs[0];
  if (x.dtype != DType::kFloat32) {
    converted = cast(x, DType::kFloat32);
    x = converted.view();
  }
  return with_storage(out, [&](auto* y) { quantize_into(p, x.as<float>().data(), out.dtype, y); });
}

template <typename T>
void dequantize_from(const Parameters& p, const T* x, float* y) {
  for_each_run(p.plan, [&](int64_t first, int64_t count, int64_t parameter, int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = parameter + i * step;
      y[first + i] = static_cast<float>(static_cast<int64_t>(x[first + i]) - p.zero(at)) * p.scale(at);
    }
  });
}

Status dequantize_to_float(const KernelArgs& args, float* y) {
  OPENRKNN_TRY(const Parameters p, read_parameters(args));
  const TensorView& x = args.inputs[0];
  switch (x.dtype) {
    case DType::kInt8:
    case DType::kInt4:
      dequantize_from(p, x.as<int8_t>().data(), y);
      return {};
    case DType::kUInt8:
    case DType::kUInt4:
      dequantize_from(p, x.as<uint8_t>().data(), y);
      return {};
    case DType::kInt16:
      dequantize_from(p, x.as<int16_t>().data(), y);
      return {};
    case DType::kUInt16:
      dequantize_from(p, x.as<uint16_t>().data(), y);
      return {};
    case DType::kInt32:
      dequantize_from(p, x.as<int32_t>().data(), y);
      return {};
    default:
      return kernel_error(fmt::format("quantized values of {} are not supported", dtype_name(x.dtype)));
  }
}

Status dequantize(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, out.dtype, args.inputs[0].shape));
  if (out.dtype == DType::kFloat32) return dequantize_to_float(args, out.as<float>().data());
  if (!is_float(out.dtype) || dtype_size(out.dtype) < 2)
    return kernel_error(fmt::format("dequantization to {} is not supported", dtype_name(out.dtype)));
  OPENRKNN_TRY(Tensor wide, Tensor::make(DType::kFloat32, out.shape));
  OPENRKNN_CHECK_OK(dequantize_to_float(args, wide.mutable_as<float>().data()));
  const Tensor narrow = cast(wide.view(), out.dtype);
  if (out.bytes() > 0) std::memcpy(out.data, narrow.data(), out.bytes());
  return {};
}

// A range of nothing but zeros has a scale of 1, as in onnxruntime.
Status dynamic_quantize(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  if (args.inputs[0].dtype != DType::kFloat32)
    return kernel_error(fmt::format("operand 0 is {}, expected float32", dtype_name(args.inputs[0].dtype)));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kUInt8, args.inputs[0].shape));
  const auto x = args.inputs[0].as<float>();
  float low = 0.0F, high = 0.0F;
  for (const float v : x) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const float scale = high == low ? 1.0F : (high - low) / 255.0F;
  const int32_t zero = Requantizer(DType::kUInt8)(std::clamp(-low / scale, 0.0F, 255.0F), 0);
  if (args.has_output(1)) {
    OPENRKNN_CHECK_OK(require_output(args, 1, DType::kFloat32, Shape{}));
    args.outputs[1].as<float>()[0] = scale;
  }
  if (args.has_output(2)) {
    OPENRKNN_CHECK_OK(require_output(args, 2, DType::kUInt8, Shape{}));
    args.outputs[2].as<uint8_t>()[0] = static_cast<uint8_t>(zero);
  }
  Parameters p{{}, Tensor::scalar(scale), {zero}};
  p.plan.inner = args.inputs[0].elements();
  quantize_into(p, x.data(), DType::kUInt8, args.outputs[0].as<uint8_t>().data());
  return {};
}

}  // namespace

void register_quantize(Registry& registry) {
  registry.add("QuantizeLinear", quantize);
  registry.add("DequantizeLinear", dequantize);
  registry.add("DynamicQuantizeLinear", dynamic_quantize);
}

}  // namespace openrknn::cpu
