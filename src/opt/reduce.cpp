// Norms spelled as squares, sum and root.
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// sqrt(y) or y ^ 0.5: y.
ValueId rooted_operand(const Graph& graph, const Node& node) {
  if (node.op == "Sqrt") return node.inputs[0];
  if (node.op == "Pow" && !has_activation(node) && scalar(graph, node.inputs[1]) == 0.5F) return node.inputs[0];
  return {};
}

// The squares and their sum may leave the range of fp16 where their root does not; ReduceL2 sums in fp32.
Result<bool> reduce_l2(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const ValueId sum = rooted_operand(graph, node);
  if (!sum.valid() || !is_float32(graph, node.outputs[0])) return false;
  const Node* reduce = producer(graph, sum);
  if (reduce == nullptr || (reduce->op != "ReduceSum" && reduce->op != "ReduceSumSquare")) return false;
  const ValueId x = reduce->op == "ReduceSumSquare" ? reduce->inputs[0] : squared_operand(graph, reduce->inputs[0]);
  if (!x.valid()) return false;
  std::vector<ValueId> inputs = reduce->inputs;
  inputs[0] = x;
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add("ReduceL2", inputs, reduce->attributes));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> fuse_reduce_l2(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_reduce_l2", reduce_l2);
}

}  // namespace openrknn::opt
