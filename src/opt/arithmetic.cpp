// Elementwise arithmetic in fewer forms: n-ary sums as additions, division by a constant as multiplication, ...
#include <algorithm>
#include <cmath>
#include <functional>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

bool is_pair(const Graph& graph, const Node& node, std::string_view op) {
  return node.op == op && node.inputs.size() == 2 && !has_activation(node) && is_float32(graph, node.outputs[0]);
}

// Sum, Mean, Max and Min of more than two operands (one is an identity) become chains of pairs.
Result<bool> split_nary(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const bool sums = node.op == "Sum" || node.op == "Mean";
  if (!sums && node.op != "Max" && node.op != "Min") return false;
  if (node.inputs.size() < (node.op == "Max" || node.op == "Min" ? 3U : 2U)) return false;
  if (!is_float32(graph, node.outputs[0])) return false;
  Patch patch(graph);
  ValueId total = node.inputs[0];
  for (size_t i = 1; i < node.inputs.size(); ++i) total = patch.add(sums ? "Add" : node.op, {total, node.inputs[i]});
  if (node.op == "Mean") {
    const float factor = 1.0F / static_cast<float>(node.inputs.size());
    total = patch.add("Mul", {total, patch.constant(Tensor::scalar(factor), "mean_factor")});
  }
  patch.replace(node.outputs[0], total);
  return rewriter.commit(patch);
}

Tensor mapped(const Tensor& tensor, const std::function<double(double)>& f) {
  std::vector<double> values = to_doubles(tensor.view());
  for (double& v : values) v = f(v);
  return floats(tensor.shape(), values);
}

bool all_finite(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

Result<bool> replace_constant(Rewriter& rewriter, const Node& node, std::string_view op, Tensor constant) {
  Patch patch(rewriter.graph());
  const ValueId c = patch.constant(std::move(constant), rewriter.graph().value(node.inputs[1]).name);
  patch.replace(node.outputs[0], patch.add(op, {node.inputs[0], c}, node.attributes));
  return rewriter.commit(patch);
}

// x / c is x * (1 / c), within one rounding.
Result<bool> div_to_mul(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_pair(graph, node, "Div")) return false;
  const Tensor* divisor = graph.constant(node.inputs[1]);
  if (divisor == nullptr || graph.constant(node.inputs[0]) != nullptr) return false;
  Tensor inverse = mapped(*divisor, [](double v) { return 1.0 / v; });
  if (!all_finite(inverse)) return false;
  return replace_constant(rewriter, node, "Mul", std::move(inverse));
}

Result<bool> sub_to_add(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Sub" || !is_float32(graph, node.outputs[0])) return false;
  const Tensor* constant = graph.constant(node.inputs[1]);
  if (constant == nullptr || graph.constant(node.inputs[0]) != nullptr) return false;
  return replace_constant(rewriter, node, "Add", mapped(*constant, [](double v) { return -v; }));
}

// Pow(x, 2) is x * x.
Result<bool> pow_to_mul(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_pair(graph, node, "Pow") || scalar(graph, node.inputs[1]) != 2.0F) return false;
  if (!(shape_of(graph, node.inputs[0]) == shape_of(graph, node.outputs[0]))) return false;
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add("Mul", {node.inputs[0], node.inputs[0]}));
  return rewriter.commit(patch);
}

// (x op c1) op c2 is x op (c1 op c2), when the constants together are no larger than the larger of them.
Result<bool> merge_constants(Rewriter& rewriter, NodeId id, std::string_view op) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_pair(graph, node, op)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor* outer = graph.constant(node.inputs[1 - i]);
    const Node* inner = producer(graph, node.inputs[i], op);
    if (outer == nullptr || inner == nullptr || !is_pair(graph, *inner, op) || !single_use(graph, node.inputs[i]))
      continue;
    for (size_t k = 0; k < 2; ++k) {
      const Tensor* first = graph.constant(inner->inputs[1 - k]);
      const ValueId x = inner->inputs[k];
      if (first == nullptr || graph.constant(x) != nullptr || outer->elements() == 0 || first->elements() == 0)
        continue;
      const bool same = first->shape() == outer->shape();
      if (!same && first->elements() != 1 && outer->elements() != 1) continue;
      const Tensor& large = first->elements() >= outer->elements() ? *first : *outer;
      const Tensor& small = &large == first ? *outer : *first;
      if (large.shape().rank() < small.shape().rank()) continue;
      const auto a = to_doubles(large.view());
      const auto b = to_doubles(small.view());
      std::vector<double> merged(a.size());
      for (size_t e = 0; e < a.size(); ++e) {
        const double other = b[same ? e : 0];
        merged[e] = op == "Mul" ? a[e] * other : a[e] + other;
      }
      Tensor constant = floats(large.shape(), merged);
      if (!all_finite(constant)) continue;
      Patch patch(graph);
      const ValueId c = patch.constant(std::move(constant), graph.value(node.inputs[1 - i]).name);
      patch.replace(node.outputs[0], patch.add(op, {x, c}));
      return rewriter.commit(patch);
    }
  }
  return false;
}

Result<bool> two_muls(Rewriter& rewriter, NodeId id) { return merge_constants(rewriter, id, "Mul"); }
Result<bool> two_adds(Rewriter& rewriter, NodeId id) { return merge_constants(rewriter, id, "Add"); }

}  // namespace

Result<int> convert_sum_to_add(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_sum_to_add", split_nary);
}
Result<int> convert_div_to_mul(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_div_to_mul", div_to_mul);
}
Result<int> convert_sub_to_add(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_sub_to_add", sub_to_add);
}
Result<int> convert_pow_to_mul(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_pow_to_mul", pow_to_mul);
}
Result<int> fuse_two_mul(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_two_mul", two_muls);
}
Result<int> fuse_two_add(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_two_add", two_adds);
}

}  // namespace openrknn::opt
