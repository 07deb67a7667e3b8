// Contrib operators on quantized numbers: what they stand for between DequantizeLinear and QuantizeLinear.
#include <array>

#include "import/onnx_contrib_expansion.hpp"

namespace openrknn::import {
namespace {

// Operands at `slot`: number, scale and, perhaps, zero point.
Result<ValueId> real(Expansion& e, size_t slot) {
  return e.node("DequantizeLinear", {e.in(slot), e.in(slot + 1), e.in(slot + 2)});
}

// Scale at `slot`, zero point behind it.
Status give_integers(Expansion& e, ValueId value, size_t slot) {
  Attributes attributes;
  if (!e.has(slot + 1)) attributes.set("output_dtype", e.dtype(e.in(0)) == DType::kInt8 ? 3 : 2);
  OPENRKNN_TRY(const ValueId y, e.node("QuantizeLinear", {value, e.in(slot), e.in(slot + 1)}, std::move(attributes)));
  return e.give(0, y);
}

Status integer_binary(Expansion& e, std::string_view op) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(const ValueId a, real(e, 0));
  OPENRKNN_TRY(const ValueId b, real(e, 3));
  OPENRKNN_TRY(const ValueId sum, e.node(op, {a, b}));
  return give_integers(e, sum, 6);
}

Status qlinear_add(Expansion& e) { return integer_binary(e, "Add"); }
Status qlinear_mul(Expansion& e) { return integer_binary(e, "Mul"); }

Status integer_unary(Expansion& e, std::string_view op, Attributes attributes) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(const ValueId x, real(e, 0));
  OPENRKNN_TRY(const ValueId y, e.node(op, {x}, std::move(attributes)));
  return give_integers(e, y, 3);
}

Status qlinear_sigmoid(Expansion& e) { return integer_unary(e, "Sigmoid", {}); }
Status qlinear_leaky_relu(Expansion& e) { return integer_unary(e, "LeakyRelu", e.attributes()); }

Status qlinear_softmax(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  const int64_t axis = e.attributes().int_or("axis", -1);
  OPENRKNN_TRY(const Shape x, e.shape(e.in(0)));
  // Before opset 13 all axes from `axis` on were one.
  if (e.attributes().int_or("opset", 13) < 13 && axis != -1 && axis != x.rank() - 1)
    return refusal("attribute 'opset' below 13 with another axis than the last is not supported");
  return integer_unary(e, "Softmax", with("axis", axis));
}

// A, its scale and zero, B with one scale or one a column, bias in steps of both scales, scale and zero of the result;
// without these the result is float.
Status quantized_gemm(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(6));
  OPENRKNN_TRY(const ValueId a, real(e, 0));
  const int64_t columns = e.attributes().int_or("transB", 0) != 0 ? 0 : 1;
  OPENRKNN_TRY(const ValueId b, e.node("DequantizeLinear", {e.in(3), e.in(4), e.in(5)}, with("axis", columns)));
  OPENRKNN_TRY(ValueId y, e.node("Gemm", {a, b}, e.attributes()));
  if (e.has(6)) {
    OPENRKNN_TRY(const ValueId steps, e.node("Cast", {e.in(6)}, with("to", int64_t{1})));
    OPENRKNN_TRY(ValueId step, e.node("Mul", {e.in(1), e.in(4)}));
    const float alpha = e.attributes().float_or("alpha", 1.0F);
    if (alpha != 1.0F) {
      OPENRKNN_TRY(step, e.node("Mul", {step, e.scalar(alpha)}));
    }
    OPENRKNN_TRY(const ValueId bias, e.node("Mul", {steps, step}));
    OPENRKNN_TRY(y, e.node("Add", {y, bias}));
  }
  return e.has(7) ? give_integers(e, y, 7) : e.give(0, y);
}

Status qlinear_global_pool(Expansion& e) {
  if (e.attributes().int_or("channels_last", 0) != 0) return refusal("attribute 'channels_last' = 1 is not supported");
  return integer_unary(e, "GlobalAveragePool", {});
}

Status qlinear_average_pool(Expansion& e) {
  if (e.attributes().int_or("channels_last", 0) != 0) return refusal("attribute 'channels_last' = 1 is not supported");
  Attributes attributes = e.attributes();
  attributes.erase("channels_last");
  return integer_unary(e, "AveragePool", std::move(attributes));
}

Status qlinear_concat(Expansion& e) {
  if (e.operands() < 5 || (e.operands() - 2) % 3 != 0)
    return refusal(fmt::format("{} operands are given, 2 and 3 for each part are needed", e.operands()),
                   ErrorCode::kFormat);
  Values parts;
  for (size_t slot = 2; slot < e.operands(); slot += 3) {
    OPENRKNN_TRY(const ValueId part, real(e, slot));
    parts.push_back(part);
  }
  OPENRKNN_TRY(const ValueId all, e.node("Concat", std::move(parts), e.attributes()));
  return give_integers(e, all, 0);
}

Status quantize(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(const ValueId y, e.node("QuantizeLinear", {e.in(0), e.in(1), e.in(2)}, e.attributes()));
  return e.give(0, y);
}

Status dequantize(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(const ValueId y, e.node("DequantizeLinear", {e.in(0), e.in(1), e.in(2)}, e.attributes()));
  return e.give(0, y);
}

constexpr std::string_view kPool =
    "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides channels_last";

constexpr std::array kTable = std::to_array<ContribOperator>({
    {"DequantizeLinear", dequantize, "axis"},
    {"QGemm", quantized_gemm, "alpha transA transB"},
    {"QLinearAdd", qlinear_add, ""},
    {"QLinearAveragePool", qlinear_average_pool, kPool},
    {"QLinearConcat", qlinear_concat, "axis"},
    {"QLinearGlobalAveragePool", qlinear_global_pool, "channels_last"},
    {"QLinearLeakyRelu", qlinear_leaky_relu, "alpha"},
    {"QLinearMul", qlinear_mul, ""},
    {"QLinearSigmoid", qlinear_sigmoid, ""},
    {"QLinearSoftmax", qlinear_softmax, "axis opset"},
    {"QuantizeLinear", quantize, "axis"},
});

}  // namespace

std::span<const ContribOperator> contrib_integers() { return kTable; }

}  // namespace openrknn::import
