// Comparisons, logic and Where under numpy broadcasting.
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_compare(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  return computed(DType::kBool, broadcast(in.shape(0), in.shape(1)));
}

Types infer_logic(const InferInput& in) {
  for (size_t i = 0; i < in.inputs.size(); ++i) {
    if (in.dtype(i) != DType::kBool)
      return infer_error(fmt::format("operand {}", i), fmt::format("type {}, bool expected", dtype_name(in.dtype(i))));
  }
  return in.inputs.size() == 1 ? like_first(in) : infer_compare(in);
}

Types infer_where(const InferInput& in) {
  if (in.dtype(0) != DType::kBool)
    return infer_error("condition", fmt::format("type {}, bool expected", dtype_name(in.dtype(0))));
  OPENRKNN_CHECK_OK(same_dtype(in, 1, 2));
  OPENRKNN_TRY(const Shape pair, broadcast(in.shape(1), in.shape(2)));
  return computed(in.dtype(1), broadcast(in.shape(0), pair));
}

OpDef def(std::string_view name, int inputs, Infer infer, std::string_view doc) {
  return {.name = name,
          .op_class = OpClass::kElementwise,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = infer,
          .doc = doc};
}

}  // namespace

void register_logic(Registry& registry) {
  registry.add(def("Equal", 2, infer_compare, "a == b"));
  registry.add(def("Greater", 2, infer_compare, "a > b"));
  registry.add(def("GreaterOrEqual", 2, infer_compare, "a >= b"));
  registry.add(def("Less", 2, infer_compare, "a < b"));
  registry.add(def("LessOrEqual", 2, infer_compare, "a <= b"));
  registry.add(def("And", 2, infer_logic, "a and b"));
  registry.add(def("Or", 2, infer_logic, "a or b"));
  registry.add(def("Xor", 2, infer_logic, "either a or b"));
  registry.add(def("Not", 1, infer_logic, "not x"));
  registry.add(def("Where", 3, infer_where, "Elements of input 1 where input 0 is true, else of input 2"));
}

}  // namespace openrknn::ops
