#include "kernels/linear_attention_plan.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace openrknn {
namespace {

Error unfit(std::string where, std::string why) {
  return {ErrorCode::kShape, "the node's operands do not fit", std::move(where), std::move(why), "repair the model"};
}

// The extents of a packed operand [batch, length, heads * size]; the size, or an error.
Result<int64_t> packed_size(const Shape& shape, const LinearAttentionPlan& plan, int64_t heads, const char* operand) {
  if (shape.rank() == 3 && shape[0] == plan.batch && shape[1] == plan.length && shape[2] % heads == 0)
    return shape[2] / heads;
  return unfit(operand, fmt::format("shape {} for {} heads", shape.to_string(), heads));
}

Status read_rule(const std::string& rule, const LinearAttentionShapes& s, LinearAttentionPlan& plan) {
  plan.gated = rule == "gated" || rule == "gated_delta";
  plan.delta = rule == "delta" || rule == "gated_delta";
  if (!plan.gated && !plan.delta && rule != "linear")
    return unfit("attribute 'update_rule'", fmt::format("'{}' is not linear, gated, delta or gated_delta", rule));
  if (plan.gated && s.decay == nullptr) return unfit("operand 4", "the rule needs a decay");
  if (plan.delta && s.beta == nullptr) return unfit("operand 5", "the rule needs a rate");
  return {};
}

}  // namespace

Result<CausalConvPlan> causal_conv_plan(const Shape& x, const Shape& weights, const Shape* bias, const Shape* past) {
  if (x.rank() != 3) return unfit("operand 0", fmt::format("shape {}, rank 3 expected", x.to_string()));
  if (weights.rank() != 3 || weights[0] != x[1] || weights[1] != 1 || weights[2] < 1)
    return unfit("operand 1", fmt::format("weights {} for {}", weights.to_string(), x.to_string()));
  CausalConvPlan plan{x[0], x[1], x[2], weights[2], Shape{x[0], x[1], weights[2] - 1}};
  if (bias != nullptr && !(*bias == Shape{x[1]}))
    return unfit("operand 2", fmt::format("bias {} for {} channels", bias->to_string(), x[1]));
  if (past != nullptr && !(*past == plan.state))
    return unfit("operand 3", fmt::format("state {}, expected {}", past->to_string(), plan.state.to_string()));
  return plan;
}

Result<LinearAttentionPlan> linear_attention_plan(const Attributes& attributes, const LinearAttentionShapes& s) {
  LinearAttentionPlan plan;
  plan.q_heads = attributes.int_or("q_num_heads", 0);
  plan.kv_heads = attributes.int_or("kv_num_heads", 0);
  constexpr int64_t kMost = 65536;  // more are damage, and products with them might overflow
  if (plan.kv_heads < 1 || plan.q_heads < 1 || plan.q_heads > kMost || plan.q_heads % plan.kv_heads != 0)
    return unfit("attribute 'q_num_heads'", fmt::format("{} for {} of keys", plan.q_heads, plan.kv_heads));
  if (s.query->rank() != 3) return unfit("operand 0", fmt::format("shape {}, rank 3 expected", s.query->to_string()));
  plan.batch = (*s.query)[0];
  plan.length = (*s.query)[1];
  OPENRKNN_CHECK_OK(read_rule(attributes.string_or("update_rule", "gated_delta"), s, plan));
  OPENRKNN_TRY(plan.key_size, packed_size(*s.query, plan, plan.q_heads, "operand 0"));
  OPENRKNN_TRY(const int64_t size, packed_size(*s.key, plan, plan.kv_heads, "operand 1"));
  OPENRKNN_TRY(plan.value_size, packed_size(*s.value, plan, plan.kv_heads, "operand 2"));
  if (size != plan.key_size)
    return unfit("operand 1", fmt::format("{} elements a head, those of queries have {}", size, plan.key_size));
  if (s.decay != nullptr) {
    OPENRKNN_TRY(plan.decay_size, packed_size(*s.decay, plan, plan.kv_heads, "operand 4"));
    if (plan.decay_size != 1 && plan.decay_size != plan.key_size)
      return unfit("operand 4", fmt::format("{} numbers a head", plan.decay_size));
  }
  if (s.beta != nullptr) {
    OPENRKNN_TRY(plan.beta_heads, packed_size(*s.beta, plan, 1, "operand 5"));
    if (plan.beta_heads != 1 && plan.beta_heads != plan.kv_heads)
      return unfit("operand 5", fmt::format("{} rates for {} heads", plan.beta_heads, plan.kv_heads));
  }
  using Dims = std::vector<int64_t>;
  const auto state = Shape::make(Dims{plan.batch, plan.kv_heads, plan.key_size, plan.value_size});
  OPENRKNN_TRY(plan.state, state);
  if (s.past != nullptr && !(*s.past == plan.state))
    return unfit("operand 3", fmt::format("state {}, expected {}", s.past->to_string(), plan.state.to_string()));
  OPENRKNN_TRY(plan.output, Shape::make(Dims{plan.batch, plan.length, plan.q_heads * plan.value_size}));
  return plan;
}

}  // namespace openrknn
