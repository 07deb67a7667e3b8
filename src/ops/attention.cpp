// Attention and the positions of its queries and keys.
#include "kernels/attention_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Result<AttentionPlan> plan_of(const InferInput& in) {
  const auto given = [&](size_t i) { return in.has(i) ? &in.shape(i) : nullptr; };
  return attention_plan(in.attributes, {given(0), given(1), given(2), given(3), given(4), given(5), given(6)});
}

Types infer_attention(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_TRY(const AttentionPlan plan, plan_of(in));
  const int64_t mode = in.attributes.int_or("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return infer_error("attribute 'qk_matmul_output_mode'", fmt::format("{}, 0 to 3 expected", mode));
  std::vector<TensorType> types = {{in.dtype(0), plan.output},
                                   {in.dtype(1), plan.present_key},
                                   {in.dtype(2), plan.present_value},
                                   {in.dtype(0), plan.scores}};
  types.resize(in.outputs);
  return types;
}

int64_t attention_macs(const InferInput& in, std::span<const TensorType>) {
  const auto plan = plan_of(in);
  return plan.ok() ? plan->scores.elements() * (plan->size + plan->v_size) : 0;
}

Types infer_rotary(const InferInput& in) {
  OPENRKNN_CHECK_OK(
      rotary_plan(in.attributes, in.shape(0), in.shape(1), in.shape(2), in.has(3) ? &in.shape(3) : nullptr));
  return like_first(in);
}

}  // namespace

void register_attention(Registry& registry) {
  registry.add({.name = "Attention",
                .op_class = OpClass::kCompute,
                .min_inputs = 3,
                .max_inputs = 7,
                .max_outputs = 4,
                .attributes = {{"is_causal", AttrKind::kInt, false, "1: a position sees none behind it; default 0"},
                               {"kv_num_heads", AttrKind::kInt, false, "heads of keys and values of rank 3"},
                               {"q_num_heads", AttrKind::kInt, false, "heads of queries of rank 3"},
                               {"qk_matmul_output_mode", AttrKind::kInt, false,
                                "result 3: 0 (default) raw, 1 after softcap, 2 with the mask, 3 after the softmax"},
                               {"scale", AttrKind::kFloat, false, "of the scores, default 1 / sqrt(size of a head)"},
                               {"softcap", AttrKind::kFloat, false, "bound of the scores; default 0: none"},
                               {"softmax_precision", AttrKind::kInt, false, "ignored: sums are in float64"}},
                .infer = infer_attention,
                .macs = attention_macs,
                .doc = "softmax(q k^T scale + mask) v: operands q, k, v, mask, past keys, past values, valid lengths"});
  registry.add({.name = "RotaryEmbedding",
                .op_class = OpClass::kCompute,
                .min_inputs = 3,
                .max_inputs = 4,
                .attributes = {{"interleaved", AttrKind::kInt, false, "1: pairs are neighbours; default 0: halves"},
                               {"num_heads", AttrKind::kInt, false, "heads of an operand of rank 3"},
                               {"rotary_embedding_dim", AttrKind::kInt, false,
                                "leading elements of a head that are turned; default 0: all"}},
                .infer = infer_rotary,
                .doc = "Turns pairs of elements by angles: operands x, cosines, sines, positions"});
}

}  // namespace openrknn::ops
