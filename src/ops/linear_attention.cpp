// Operators that carry a state of fixed size from step to step.
#include "kernels/linear_attention_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_causal_conv(const InferInput& in) {
  const auto given = [&](size_t i) { return in.has(i) ? &in.shape(i) : nullptr; };
  OPENRKNN_TRY(const CausalConvPlan plan, causal_conv_plan(in.shape(0), in.shape(1), given(2), given(3)));
  std::vector<TensorType> types = {{in.dtype(0), in.shape(0)}, {in.dtype(0), plan.state}};
  types.resize(in.outputs);
  return types;
}

int64_t causal_conv_macs(const InferInput& in, std::span<const TensorType>) {
  return in.shape(0).elements() * in.shape(1)[2];
}

Result<LinearAttentionPlan> plan_of(const InferInput& in) {
  const auto given = [&](size_t i) { return in.has(i) ? &in.shape(i) : nullptr; };
  return linear_attention_plan(in.attributes, {given(0), given(1), given(2), given(3), given(4), given(5)});
}

Types infer_linear_attention(const InferInput& in) {
  OPENRKNN_TRY(const LinearAttentionPlan plan, plan_of(in));
  std::vector<TensorType> types = {{in.dtype(0), plan.output}, {in.dtype(in.has(3) ? 3 : 0), plan.state}};
  types.resize(in.outputs);
  return types;
}

// The state is read and written once a step, and read once a head of queries.
int64_t linear_attention_macs(const InferInput& in, std::span<const TensorType>) {
  const auto plan = plan_of(in);
  if (!plan.ok()) return 0;
  const int64_t passes = (plan->delta ? 2 : 1) + plan->q_heads / plan->kv_heads;
  return plan->state.elements() * plan->length * passes;
}

}  // namespace

void register_linear_attention(Registry& registry) {
  registry.add({.name = "CausalConvWithState",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 4,
                .max_outputs = 2,
                .attributes = {{"activation", AttrKind::kString, false, "none (default), silu or swish"}},
                .infer = infer_causal_conv,
                .macs = causal_conv_macs,
                .doc = "Depthwise convolution over what came before: operands x, weights, bias, past state"});
  registry.add(
      {.name = "LinearAttention",
       .op_class = OpClass::kCompute,
       .min_inputs = 3,
       .max_inputs = 6,
       .max_outputs = 2,
       .attributes = {{"chunk_size", AttrKind::kInt, false, "ignored: a hint"},
                      {"kv_num_heads", AttrKind::kInt, true, "heads of keys and values"},
                      {"q_num_heads", AttrKind::kInt, true, "heads of queries"},
                      {"scale", AttrKind::kFloat, false, "of the result; default 0: 1 / sqrt(size of a head)"},
                      {"update_rule", AttrKind::kString, false, "gated_delta (default), delta, gated or linear"}},
       .infer = infer_linear_attention,
       .macs = linear_attention_macs,
       .doc = "Attention by a state: operands query, key, value, past state, decay, rate"});
}

}  // namespace openrknn::ops
