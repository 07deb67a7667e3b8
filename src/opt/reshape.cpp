// Reshape in all its spellings: one form, no chains, behind elementwise nodes so that these can fuse.
#include <algorithm>

#include "opt/layout.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

bool is_reshape(const Node& node) {
  return node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" || node.op == "Unsqueeze";
}

// Flatten, Squeeze, Unsqueeze, and Reshape with zeros or -1, become Reshape to the written shape.
Result<bool> canonical(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_reshape(node) || !known(graph, node.inputs[0]) || !known(graph, node.outputs[0])) return false;
  const Shape& to = shape_of(graph, node.outputs[0]);
  if (node.op == "Reshape") {
    const auto given = ints(graph, input_of(node, 1));
    if (given && *given == to.to_vector() && node.attributes.empty()) return false;
  }
  if (to.elements() == 0) return false;
  Patch patch(graph);
  const ValueId shape = patch.constant(Tensor::ints(to.to_vector()), graph.value(node.outputs[0]).name + "_shape");
  patch.replace(node.outputs[0], patch.add("Reshape", {node.inputs[0], shape}));
  return rewriter.commit(patch);
}

// Reshape(Reshape(x)) is one Reshape, or nothing when it leads back to x's shape.
Result<bool> two_reshapes(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_reshape(node) || !known(graph, node.outputs[0])) return false;
  const Node* before = producer(graph, node.inputs[0]);
  if (before == nullptr || !is_reshape(*before) || !known(graph, before->inputs[0])) return false;
  if (shape_of(graph, node.outputs[0]).elements() == 0) return false;
  Patch patch(graph);
  const ValueId x = before->inputs[0];
  const Shape& to = shape_of(graph, node.outputs[0]);
  // A graph output cannot be a graph input: there the node that writes it stays.
  patch.replace(node.outputs[0], patch.reshape(x, to));
  return rewriter.commit(patch);
}

// A Transpose that moves only axes of extent 1 is a Reshape.
Result<bool> transpose_to_reshape(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Transpose" || !known(graph, node.inputs[0])) return false;
  const Shape& from = shape_of(graph, node.inputs[0]);
  if (from.elements() == 0) return false;
  int64_t last = -1;
  for (const int64_t axis : perm_of(graph, node)) {
    if (from[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.reshape(node.inputs[0], shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

// f(Reshape(x)) is Reshape(f(x)) for functions of single elements. Only towards shapes that the NPU holds well.
Result<bool> sink(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const auto operand = elementwise_operand(graph, node);
  if (!operand) return false;
  const ValueId value = node.inputs[*operand];
  const Node* before = producer(graph, value, "Reshape");
  if (before == nullptr || !single_use(graph, value) || !known(graph, before->inputs[0])) return false;
  const Shape& from = shape_of(graph, before->inputs[0]);
  if (from.rank() > 4 || (shape_of(graph, value).rank() == 4 && from.rank() != 4)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != *operand && node.inputs[i].valid() && shape_of(graph, node.inputs[i]).elements() != 1) return false;
    if (i != *operand && shape_of(graph, node.inputs[i]).rank() > from.rank()) return false;
  }
  if (!(shape_of(graph, node.outputs[0]) == shape_of(graph, value))) return false;
  Patch patch(graph);
  std::vector<ValueId> inputs = node.inputs;
  inputs[*operand] = before->inputs[0];
  const ValueId moved = patch.add(node.op, inputs, node.attributes);
  patch.replace(node.outputs[0], patch.reshape(moved, shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_to_reshape(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_to_reshape", canonical);
}
Result<int> fuse_two_reshape(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_two_reshape", two_reshapes);
}
Result<int> convert_transpose_to_reshape(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_transpose_to_reshape", transpose_to_reshape);
}
Result<int> sink_reshape(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "sink_reshape", sink);
}

}  // namespace openrknn::opt
