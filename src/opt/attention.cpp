// Attention in the operators that the NPU has. Only without a mask: with one, the scores would be a sum with very large
// negative numbers, which int8 cannot hold beside them.
#include <cmath>

#include "kernels/attention_plan.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

bool is_plain(const Graph& graph, const Node& node) {
  if (node.op != "Attention" || node.inputs.size() < 3) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i < 3 ? !known(graph, node.inputs[i]) || !is_float32(graph, node.inputs[i]) : node.inputs[i].valid())
      return false;
  }
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    const ValueId result = node.outputs[i];
    if (result.valid() && (!graph.value(result).users.empty() || graph.is_output(result))) return false;
  }
  return node.attributes.int_or("is_causal", 0) == 0 && !(node.attributes.float_or("softcap", 0.0F) > 0.0F);
}

// [batch, heads, length, size], from [batch, length, heads * size] when `flat`.
ValueId heads_of(Patch& patch, ValueId value, bool flat, const Shape& shape) {
  if (!flat) return value;
  return patch.transpose(patch.reshape(value, Shape{shape[0], shape[2], shape[1], shape[3]}), {0, 2, 1, 3});
}

Result<bool> attention(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_plain(graph, node)) return false;
  const auto shape = [&](size_t i) { return &shape_of(graph, node.inputs[i]); };
  const auto made = attention_plan(node.attributes, {shape(0), shape(1), shape(2), nullptr, nullptr, nullptr, nullptr});
  if (!made.ok() || made->scores.elements() == 0 || made->output.elements() == 0) return false;
  const AttentionPlan& plan = *made;
  const auto by_size = static_cast<float>(1.0 / std::sqrt(static_cast<double>(plan.size)));
  const float scale = node.attributes.float_or("scale", by_size);

  Patch patch(graph);
  ValueId q = heads_of(patch, node.inputs[0], plan.flat, Shape{plan.batch, plan.q_heads, plan.q_length, plan.size});
  const ValueId k = heads_of(patch, node.inputs[1], plan.flat, plan.present_key);
  const ValueId v = heads_of(patch, node.inputs[2], plan.flat, plan.present_value);
  // Heads of q that share one of k stand next to each other: together they are one head with more positions.
  const int64_t rows = plan.q_heads / plan.kv_heads * plan.q_length;
  q = patch.reshape(q, Shape{plan.batch, plan.kv_heads, rows, plan.size});
  q = patch.add("Mul", {q, patch.constant(Tensor::scalar(scale), "scale")});
  const ValueId scores = patch.add("MatMul", {q, patch.transpose(k, {0, 1, 3, 2})});
  Attributes last;
  last.set("axis", -1);
  ValueId y = patch.add("MatMul", {patch.add("Softmax", {scores}, std::move(last)), v});
  y = patch.reshape(y, Shape{plan.batch, plan.q_heads, plan.q_length, plan.v_size});
  if (plan.flat) y = patch.reshape(patch.transpose(y, {0, 2, 1, 3}), plan.output);
  patch.replace(node.outputs[0], y);
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_attention(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_attention", attention);
}

}  // namespace openrknn::opt
