#include "kernels/attention_plan.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace openrknn {
namespace {

Error unfit(std::string where, std::string why) {
  return {ErrorCode::kShape, "the node's operands do not fit", std::move(where), std::move(why), "repair the model"};
}

struct Heads {
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;
};

Result<Heads> read_heads(const Shape& x, int64_t heads, const char* operand) {
  if (x.rank() == 4) return Heads{x[1], x[2], x[3]};
  constexpr int64_t kMost = 65536;  // more are damage, and products with them might overflow
  if (heads < 1 || heads > kMost || x[2] % heads != 0)
    return unfit(operand, fmt::format("shape {} with {} heads", x.to_string(), heads));
  return Heads{heads, x[1], x[2] / heads};
}

Status check_past(const Shape* past, int64_t batch, const Heads& heads, const char* operand) {
  if (past == nullptr) return {};
  const bool fits = past->rank() == 4 && (*past)[0] == batch && (*past)[1] == heads.heads && (*past)[3] == heads.size;
  return fits ? Status() : unfit(operand, fmt::format("shape {}", past->to_string()));
}

// The mask broadcasts to the scores; its last axis may be shorter.
Status check_mask(const Shape* mask, const Shape& scores) {
  if (mask == nullptr) return {};
  bool fits = mask->rank() >= 1 && mask->rank() <= 4 && mask->dim(-1) <= scores[3];
  for (int i = 0; fits && i < mask->rank() - 1; ++i) {
    const int64_t wanted = scores[4 - mask->rank() + i];
    fits = (*mask)[i] == 1 || (*mask)[i] == wanted;
  }
  return fits ? Status() : unfit("operand 3", fmt::format("mask {} for {}", mask->to_string(), scores.to_string()));
}

}  // namespace

Result<AttentionPlan> attention_plan(const Attributes& attributes, const AttentionShapes& s) {
  const int rank = s.q->rank();
  if ((rank != 3 && rank != 4) || s.k->rank() != rank || s.v->rank() != rank) {
    return unfit("operands", fmt::format("shapes {}, {}, {}: rank 3 or 4 expected", s.q->to_string(), s.k->to_string(),
                                         s.v->to_string()));
  }
  const int64_t kv_heads = attributes.int_or("kv_num_heads", 0);
  OPENRKNN_TRY(const Heads q, read_heads(*s.q, attributes.int_or("q_num_heads", 0), "operand 0"));
  OPENRKNN_TRY(const Heads k, read_heads(*s.k, kv_heads, "operand 1"));
  OPENRKNN_TRY(const Heads v, read_heads(*s.v, kv_heads, "operand 2"));
  AttentionPlan plan;
  plan.flat = rank == 3;
  plan.batch = (*s.q)[0];
  const bool fits = (*s.k)[0] == plan.batch && (*s.v)[0] == plan.batch && k.size == q.size && v.heads == k.heads &&
                    v.length == k.length && k.heads >= 1 && q.heads % k.heads == 0;
  if (!fits) {
    return unfit("operands", fmt::format("keys {} and values {} for queries {}", s.k->to_string(), s.v->to_string(),
                                         s.q->to_string()));
  }
  if ((s.past_key == nullptr) != (s.past_value == nullptr)) return unfit("operand 4", "past keys without past values");
  OPENRKNN_CHECK_OK(check_past(s.past_key, plan.batch, k, "operand 4"));
  OPENRKNN_CHECK_OK(check_past(s.past_value, plan.batch, v, "operand 5"));
  if (s.past_key != nullptr && (*s.past_key)[2] != (*s.past_value)[2])
    return unfit("operand 5", "past keys and values differ in length");
  if (s.valid != nullptr && !(*s.valid == Shape{plan.batch}))
    return unfit("operand 6", fmt::format("shape {} for {} samples", s.valid->to_string(), plan.batch));
  plan.q_heads = q.heads;
  plan.kv_heads = k.heads;
  plan.q_length = q.length;
  plan.kv_length = k.length;
  plan.past = s.past_key != nullptr ? (*s.past_key)[2] : 0;
  plan.total = plan.past + plan.kv_length;
  plan.size = q.size;
  plan.v_size = v.size;
  using Dims = std::vector<int64_t>;
  OPENRKNN_TRY(plan.output, Shape::make(plan.flat ? Dims{plan.batch, q.length, q.heads * v.size}
                                                  : Dims{plan.batch, q.heads, q.length, v.size}));
  OPENRKNN_TRY(plan.present_key, Shape::make(Dims{plan.batch, k.heads, plan.total, k.size}));
  OPENRKNN_TRY(plan.present_value, Shape::make(Dims{plan.batch, k.heads, plan.total, v.size}));
  OPENRKNN_TRY(plan.scores, Shape::make(Dims{plan.batch, q.heads, q.length, plan.total}));
  OPENRKNN_CHECK_OK(check_mask(s.mask, plan.scores));
  return plan;
}

Result<RotaryPlan> rotary_plan(const Attributes& attributes, const Shape& x, const Shape& cos, const Shape& sin,
                               const Shape* positions) {
  if (x.rank() != 3 && x.rank() != 4) return unfit("operand 0", fmt::format("shape {}", x.to_string()));
  OPENRKNN_TRY(const Heads heads, read_heads(x, attributes.int_or("num_heads", 0), "operand 0"));
  RotaryPlan plan{x.rank() == 3, x[0], heads.heads, heads.length, heads.size, heads.size};
  if (const int64_t part = attributes.int_or("rotary_embedding_dim", 0); part != 0) plan.rotated = part;
  if (plan.rotated < 0 || plan.rotated > plan.size || plan.rotated % 2 != 0)
    return unfit("attribute 'rotary_embedding_dim'", fmt::format("{} of {} elements", plan.rotated, plan.size));
  if (positions != nullptr && !(*positions == Shape{plan.batch, plan.length}))
    return unfit("operand 3", fmt::format("positions {} for {}", positions->to_string(), x.to_string()));
  const bool whole = cos == Shape{plan.batch, plan.length, plan.rotated / 2};
  const bool table = cos.rank() == 2 && cos[1] == plan.rotated / 2;
  if (!(cos == sin) || !(positions != nullptr ? table : whole))
    return unfit("operand 1", fmt::format("caches {} and {} for {}", cos.to_string(), sin.to_string(), x.to_string()));
  return plan;
}

}  // namespace openrknn
