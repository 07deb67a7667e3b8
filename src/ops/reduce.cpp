// Reductions over axes.
#include "kernels/reduce_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_reduce(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const ReducePlan plan, reduce_plan(in.attributes, in.shape(0), in.ints(1)));
  return one(in.dtype(0), plan.output);
}

Types infer_arg(const InferInput& in) {
  int axis = 0;
  return computed(DType::kInt64, arg_reduce_shape(in.attributes, in.shape(0), axis));
}

}  // namespace

void register_reduce(Registry& registry) {
  const auto add = [&registry](std::string_view name, std::string_view doc) {
    registry.add({.name = name,
                  .op_class = OpClass::kCompute,
                  .min_inputs = 1,
                  .max_inputs = 2,
                  .attributes = {{"keepdims", AttrKind::kInt, false, "1 (default): reduced axes stay with extent 1"},
                                 {"noop_with_empty_axes", AttrKind::kInt, false,
                                  "1: no axes means nothing is reduced; default 0: everything is"}},
                  .infer = infer_reduce,
                  .doc = doc});
  };
  add("ReduceMean", "Mean over the axes of operand 1");
  add("ReduceSum", "Sum over the axes of operand 1");
  add("ReduceMax", "Largest element over the axes of operand 1");
  add("ReduceMin", "Smallest element over the axes of operand 1");
  add("ReduceProd", "Product over the axes of operand 1");
  add("ReduceL1", "Sum of magnitudes over the axes of operand 1");
  add("ReduceL2", "Square root of the sum of squares over the axes of operand 1");
  add("ReduceSumSquare", "Sum of squares over the axes of operand 1");
  add("ReduceLogSum", "Logarithm of the sum over the axes of operand 1");
  add("ReduceLogSumExp", "Logarithm of the sum of exponentials over the axes of operand 1");
  for (const std::string_view name : {"ArgMax", "ArgMin"}) {
    registry.add({.name = name,
                  .op_class = OpClass::kCompute,
                  .attributes = {{"axis", AttrKind::kInt, false, "axis searched, default 0"},
                                 {"keepdims", AttrKind::kInt, false, "1 (default): the axis stays with extent 1"},
                                 {"select_last_index", AttrKind::kInt, false, "1: the last of equals; default 0"}},
                  .infer = infer_arg,
                  .doc = name == "ArgMax" ? "Position of the largest element along an axis"
                                          : "Position of the smallest element along an axis"});
  }
}

}  // namespace openrknn::ops
