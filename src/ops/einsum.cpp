// Einsum.
#include "base/checked.hpp"
#include "kernels/einsum_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Result<EinsumPlan> plan_of(const InferInput& in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.inputs.size(); ++i) {
    if (!in.has(i)) return infer_error(fmt::format("operand {}", i), "it is absent");
    OPENRKNN_CHECK_OK(same_dtype(in, 0, i));
    shapes.push_back(in.shape(i));
  }
  return einsum_plan(in.attributes.string_or("equation", ""), shapes);
}

Types infer_einsum(const InferInput& in) {
  OPENRKNN_TRY(const EinsumPlan plan, plan_of(in));
  return one(in.dtype(0), plan.shape);
}

// One a combination of all indices; fewer when more than two operands are contracted in steps.
int64_t macs(const InferInput& in, std::span<const TensorType>) {
  const auto plan = plan_of(in);
  if (!plan.ok()) return 0;
  std::optional<int64_t> count = 1;
  for (const int64_t extent : plan->extents) {
    if (extent >= 0 && count) count = checked_mul(*count, extent);
  }
  return count.value_or(INT64_MAX);
}

}  // namespace

void register_einsum(Registry& registry) {
  registry.add({.name = "Einsum",
                .op_class = OpClass::kCompute,
                .max_inputs = -1,
                .attributes = {{"equation", AttrKind::kString, true, "indices of every operand and of the result"}},
                .infer = infer_einsum,
                .macs = macs,
                .doc = "Products summed over indices, in Einstein's notation, ellipsis and diagonals included"});
}

}  // namespace openrknn::ops
