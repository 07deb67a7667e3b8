// Convolutions and products of quantized integers.
#include "kernels/conv_plan.hpp"
#include "kernels/matmul_plan.hpp"
#include "kernels/quantize_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Status eight_bits(const InferInput& in, size_t i) {
  if (in.dtype(i) == DType::kInt8 || in.dtype(i) == DType::kUInt8) return {};
  return infer_error(fmt::format("operand {}", i),
                     fmt::format("{} values, int8 or uint8 are supported", dtype_name(in.dtype(i))));
}

// One value, or `count` of them.
Status parameter_count(const InferInput& in, size_t i, int64_t count) {
  if (!in.has(i) || in.shape(i).elements() == 1 || in.shape(i) == Shape{count}) return {};
  return infer_error(fmt::format("operand {}", i),
                     fmt::format("shape {}, expected one value or {}", in.shape(i).to_string(), count));
}

// Operands x, w and their parameters by position; `zero_x` and `zero_w` may be absent.
Result<ConvPlan> check_conv(const InferInput& in, size_t w, size_t zero_x, size_t zero_w) {
  OPENRKNN_CHECK_OK(eight_bits(in, 0));
  OPENRKNN_CHECK_OK(eight_bits(in, w));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, zero_x));
  OPENRKNN_CHECK_OK(same_dtype(in, w, zero_w));
  OPENRKNN_TRY(ConvPlan plan, conv_plan(in.attributes, in.shape(0), in.shape(w)));
  OPENRKNN_CHECK_OK(parameter_count(in, zero_x, 1));
  OPENRKNN_CHECK_OK(parameter_count(in, zero_w, plan.out_channels));
  return plan;
}

Types infer_conv_integer(const InferInput& in) {
  OPENRKNN_TRY(const ConvPlan plan, check_conv(in, 1, 2, 3));
  return one(DType::kInt32, plan.output);
}

Types infer_qlinear_conv(const InferInput& in) {
  OPENRKNN_TRY(const ConvPlan plan, check_conv(in, 3, 2, 5));
  OPENRKNN_CHECK_OK(eight_bits(in, 7));
  OPENRKNN_CHECK_OK(parameter_count(in, 1, 1));
  OPENRKNN_CHECK_OK(parameter_count(in, 4, plan.out_channels));
  OPENRKNN_CHECK_OK(parameter_count(in, 6, 1));
  OPENRKNN_CHECK_OK(parameter_count(in, 7, 1));
  if (in.has(8) && (in.dtype(8) != DType::kInt32 || !(in.shape(8) == Shape{plan.out_channels}))) {
    return infer_error("operand 8", fmt::format("bias {} {}, expected int32 [{}]", dtype_name(in.dtype(8)),
                                                in.shape(8).to_string(), plan.out_channels));
  }
  return one(in.dtype(7), plan.output);
}

Result<MatMulPlan> check_matmul(const InferInput& in, size_t b, size_t zero_a, size_t zero_b) {
  OPENRKNN_CHECK_OK(eight_bits(in, 0));
  OPENRKNN_CHECK_OK(eight_bits(in, b));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, zero_a));
  OPENRKNN_CHECK_OK(same_dtype(in, b, zero_b));
  return matmul_plan(in.shape(0), in.shape(b));
}

Status check_lines(const InferInput& in, size_t parameter, size_t operand, bool rows) {
  if (!in.has(parameter)) return {};
  auto lines = line_parameters(in.shape(parameter), in.shape(operand), rows);
  if (!lines.ok()) return lines.error().within(fmt::format("operand {}", parameter));
  return {};
}

Types infer_matmul_integer(const InferInput& in) {
  OPENRKNN_TRY(const MatMulPlan plan, check_matmul(in, 1, 2, 3));
  OPENRKNN_CHECK_OK(check_lines(in, 2, 0, true));
  OPENRKNN_CHECK_OK(check_lines(in, 3, 1, false));
  return one(DType::kInt32, plan.output);
}

Types infer_qlinear_matmul(const InferInput& in) {
  OPENRKNN_TRY(const MatMulPlan plan, check_matmul(in, 3, 2, 5));
  OPENRKNN_CHECK_OK(eight_bits(in, 7));
  for (const size_t i : {size_t{1}, size_t{2}}) OPENRKNN_CHECK_OK(check_lines(in, i, 0, true));
  for (const size_t i : {size_t{4}, size_t{5}}) OPENRKNN_CHECK_OK(check_lines(in, i, 3, false));
  for (const size_t i : {size_t{6}, size_t{7}}) OPENRKNN_CHECK_OK(parameter_count(in, i, 1));
  return one(in.dtype(7), plan.output);
}

template <size_t kWeights>
int64_t conv_macs(const InferInput& in, std::span<const TensorType> outputs) {
  const Shape& w = in.shape(kWeights);
  return outputs[0].shape->elements() * (w.elements() / std::max<int64_t>(1, w[0]));
}

int64_t matmul_macs(const InferInput& in, std::span<const TensorType> outputs) {
  return outputs[0].shape->elements() * in.shape(0).dim(-1);
}

std::vector<AttrSpec> conv_attributes() {
  return {{"auto_pad", AttrKind::kString, false, "NOTSET (default), SAME_UPPER, SAME_LOWER or VALID"},
          {"dilations", AttrKind::kInts, false, "distance of taps per axis, default 1"},
          {"group", AttrKind::kInt, false, "groups of channels, default 1"},
          {"kernel_shape", AttrKind::kInts, false, "extents of the window, default those of the weights"},
          {"pads", AttrKind::kInts, false, "zero points at the begin of all axes, then at the end, default 0"},
          {"strides", AttrKind::kInts, false, "step of the window per axis, default 1"}};
}

}  // namespace

void register_integer(Registry& registry) {
  registry.add({.name = "ConvInteger",
                .min_inputs = 2,
                .max_inputs = 4,
                .attributes = conv_attributes(),
                .infer = infer_conv_integer,
                .macs = conv_macs<1>,
                .doc = "Convolution of 8-bit integers to int32, zero points in operands 2 and 3"});
  registry.add({.name = "QLinearConv",
                .min_inputs = 8,
                .max_inputs = 9,
                .attributes = conv_attributes(),
                .infer = infer_qlinear_conv,
                .macs = conv_macs<3>,
                .doc = "Convolution of 8-bit integers to 8-bit integers"});
  registry.add({.name = "MatMulInteger",
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = infer_matmul_integer,
                .macs = matmul_macs,
                .doc = "Matrix product of 8-bit integers to int32, zero points in operands 2 and 3"});
  registry.add({.name = "QLinearMatMul",
                .min_inputs = 8,
                .max_inputs = 8,
                .infer = infer_qlinear_matmul,
                .macs = matmul_macs,
                .doc = "Matrix product of 8-bit integers to 8-bit integers"});
}

}  // namespace openrknn::ops
