// Conversions between float values and quantized ones.
#include "kernels/quantize_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Status check_parameters(const InferInput& in) {
  OPENRKNN_TRY([[maybe_unused]] const auto plan, quantize_plan(in.attributes, in.shape(0), in.shape(1)));
  if (in.has(2) && !(in.shape(2) == in.shape(1)) && in.shape(2).elements() * in.shape(1).elements() != 1) {
    return infer_error("operand 2",
                       fmt::format("zero points {} for scales {}", in.shape(2).to_string(), in.shape(1).to_string()));
  }
  return {};
}

// A type that an attribute names; 0 or absent: `fallback`.
Result<DType> named_type(const InferInput& in, std::string_view attribute, DType fallback) {
  const int64_t number = in.attributes.int_or(attribute, 0);
  if (number == 0) return fallback;
  const auto dtype = dtype_from_onnx_number(number);
  if (!dtype) return infer_error(std::string(attribute), fmt::format("type number {} is not supported", number));
  return *dtype;
}

Types infer_quantize(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_parameters(in));
  OPENRKNN_TRY(const DType dtype, named_type(in, "output_dtype", in.has(2) ? in.dtype(2) : DType::kUInt8));
  if (in.has(2) && in.dtype(2) != dtype) {
    return infer_error("output_dtype",
                       fmt::format("{}, the zero points are {}", dtype_name(dtype), dtype_name(in.dtype(2))));
  }
  if (!is_quantized_type(dtype))
    return infer_error("output type", fmt::format("quantization to {} is not supported", dtype_name(dtype)));
  return one(dtype, in.shape(0));
}

Types infer_dequantize(const InferInput& in) {
  if (!is_quantized_type(in.dtype(0)) && in.dtype(0) != DType::kInt32)
    return infer_error("operand 0", fmt::format("quantized values of {} are not supported", dtype_name(in.dtype(0))));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  OPENRKNN_CHECK_OK(check_parameters(in));
  OPENRKNN_TRY(const DType dtype, named_type(in, "output_dtype", in.dtype(1)));
  if (!is_float(dtype) || dtype_size(dtype) < 2)
    return infer_error("output type", fmt::format("{} is no float type of 16 bits or more", dtype_name(dtype)));
  return one(dtype, in.shape(0));
}

Types infer_dynamic(const InferInput& in) {
  return std::vector<TensorType>{{DType::kUInt8, in.shape(0)}, {DType::kFloat32, Shape{}}, {DType::kUInt8, Shape{}}};
}

const AttrSpec kAxis{"axis", AttrKind::kInt, false, "axis of several scales; default 1"};
const AttrSpec kBlock{"block_size", AttrKind::kInt, false,
                      "elements along the axis that share a scale; default: all of it"};
const AttrSpec kType{"output_dtype", AttrKind::kInt, false,
                     "number of the result's type, default that of operand 2, else uint8"};

}  // namespace

void register_quantize(Registry& registry) {
  registry.add(
      {.name = "QuantizeLinear",
       .op_class = OpClass::kCompute,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {kAxis,
                      kBlock,
                      kType,
                      {"precision", AttrKind::kInt, false, "type of the division; it is always done in float32"},
                      {"saturate", AttrKind::kInt, false, "of float8 only, unused"}},
       .infer = infer_quantize,
       .doc = "round(x / scale) + zero point, ties to even, cut to the type's range"});
  registry.add(
      {.name = "DequantizeLinear",
       .op_class = OpClass::kCompute,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {kAxis,
                      kBlock,
                      {"output_dtype", AttrKind::kInt, false, "number of the result's type, default the scale's"}},
       .infer = infer_dequantize,
       .doc = "(x - zero point) * scale"});
  registry.add({.name = "DynamicQuantizeLinear",
                .op_class = OpClass::kCompute,
                .max_outputs = 3,
                .infer = infer_dynamic,
                .doc = "Quantizes to uint8 with a scale and zero point from the operand's own range"});
}

}  // namespace openrknn::ops
