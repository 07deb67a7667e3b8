// Functions of one operand, element by element.
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_number(const InferInput& in) {
  if (!is_float(in.dtype(0)) && !is_integer(in.dtype(0)))
    return infer_error("operand 0", fmt::format("type {}, a number is needed", dtype_name(in.dtype(0))));
  return like_first(in);
}

Types infer_float(const InferInput& in) {
  if (!is_float(in.dtype(0)))
    return infer_error("operand 0", fmt::format("type {}, a float type is needed", dtype_name(in.dtype(0))));
  return like_first(in);
}

Types infer_integer(const InferInput& in) {
  if (!is_integer(in.dtype(0)))
    return infer_error("operand 0", fmt::format("type {}, an integer type is needed", dtype_name(in.dtype(0))));
  return like_first(in);
}

Types infer_test(const InferInput& in) {
  OPENRKNN_CHECK_OK(infer_float(in));
  return one(DType::kBool, in.shape(0));
}

OpDef def(std::string_view name, Infer infer, std::string_view doc, std::vector<AttrSpec> attributes = {}) {
  return {
      .name = name, .op_class = OpClass::kElementwise, .attributes = std::move(attributes), .infer = infer, .doc = doc};
}

}  // namespace

void register_unary(Registry& registry) {
  registry.add(def("Neg", infer_number, "-x"));
  registry.add(def("Abs", infer_number, "|x|"));
  registry.add(def("Sign", infer_number, "-1, 0 or 1"));
  registry.add(def("Floor", infer_float, "Largest integer not above x"));
  registry.add(def("Ceil", infer_float, "Smallest integer not below x"));
  registry.add(def("Round", infer_float, "Nearest integer, halves to even"));
  registry.add(def("Reciprocal", infer_float, "1 / x"));
  registry.add(def("Sqrt", infer_float, "Square root"));
  registry.add(def("Exp", infer_float, "e to the power x"));
  registry.add(def("Log", infer_float, "Natural logarithm"));
  registry.add(def("Erf", infer_float, "Error function"));
  registry.add(def("Sin", infer_float, "Sine"));
  registry.add(def("Cos", infer_float, "Cosine"));
  registry.add(def("Tan", infer_float, "Tangent"));
  registry.add(def("Asin", infer_float, "Inverse sine"));
  registry.add(def("Acos", infer_float, "Inverse cosine"));
  registry.add(def("Atan", infer_float, "Inverse tangent"));
  registry.add(def("Sinh", infer_float, "Hyperbolic sine"));
  registry.add(def("Cosh", infer_float, "Hyperbolic cosine"));
  registry.add(def("Asinh", infer_float, "Inverse hyperbolic sine"));
  registry.add(def("Acosh", infer_float, "Inverse hyperbolic cosine"));
  registry.add(def("Atanh", infer_float, "Inverse hyperbolic tangent"));
  registry.add(def("IsNaN", infer_test, "x is not a number"));
  registry.add(def("IsInf", infer_test, "x is infinite",
                   {{"detect_positive", AttrKind::kInt, false, "default 1"},
                    {"detect_negative", AttrKind::kInt, false, "default 1"}}));
  registry.add(def("BitwiseNot", infer_integer, "Every bit of an integer inverted"));
  registry.add(
      def("Shrink", infer_number, "x < -lambd ? x + bias : x > lambd ? x - bias : 0",
          {{"bias", AttrKind::kFloat, false, "default 0"}, {"lambd", AttrKind::kFloat, false, "default 0.5"}}));
}

}  // namespace openrknn::ops
