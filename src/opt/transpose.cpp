// Transposes meet and cancel: they move down through nodes that do not care about the order of axes.
#include <algorithm>

#include "opt/layout.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

std::vector<int64_t> perm_of(const Graph& graph, const Node& node) {
  std::vector<int64_t> reversed;
  for (int i = shape_of(graph, node.inputs[0]).rank() - 1; i >= 0; --i) reversed.push_back(i);
  return node.attributes.ints_or("perm", reversed);
}

std::optional<size_t> elementwise_operand(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1) return std::nullopt;
  const ops::OpDef* def = ops::registry().find(node.op);
  if (def == nullptr) return std::nullopt;
  if (def->op_class != ops::OpClass::kElementwise && def->op_class != ops::OpClass::kActivation) return std::nullopt;
  std::optional<size_t> slot;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid() || graph.constant(node.inputs[i]) != nullptr) continue;
    if (slot || !known(graph, node.inputs[i])) return std::nullopt;
    slot = i;
  }
  return slot;
}

namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return result;
}

Result<bool> two_transposes(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Transpose" || !known(graph, node.inputs[0])) return false;
  const Node* before = producer(graph, node.inputs[0], "Transpose");
  if (before == nullptr) return false;
  const auto first = perm_of(graph, *before);
  std::vector<int64_t> perm = perm_of(graph, node);
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i) {
    perm[i] = first[static_cast<size_t>(perm[i])];
    identity &= perm[i] == static_cast<int64_t>(i);
  }
  Patch patch(graph);
  patch.replace(node.outputs[0], identity ? before->inputs[0] : patch.transpose(before->inputs[0], perm));
  return rewriter.commit(patch);
}

// The Transpose in front of a value, when moving it behind the one reader costs nothing.
const Node* movable(const Graph& graph, ValueId value) {
  const Node* before = producer(graph, value, "Transpose");
  if (before == nullptr || graph.is_output(value) || !known(graph, before->inputs[0])) return nullptr;
  const auto& users = graph.value(value).users;
  const bool one_reader =
      std::all_of(users.begin(), users.end(), [&](const Use& use) { return use.node == users[0].node; });
  return one_reader ? before : nullptr;
}

// The constant as it must look in front of the Transpose: axes that it lacks are added, then the order is undone.
ValueId untransposed(Patch& patch, const Graph& graph, ValueId constant, const std::vector<int64_t>& perm) {
  const Shape& shape = shape_of(graph, constant);
  if (shape.elements() == 1 && shape.rank() <= static_cast<int>(perm.size())) return constant;
  std::vector<int64_t> dims(perm.size() - static_cast<size_t>(shape.rank()), 1);
  for (const int64_t d : shape.dims()) dims.push_back(d);
  const auto full = Shape::make(dims);
  if (!full.ok()) return {};
  return patch.transpose(patch.reshape(constant, *full), inverse(perm));
}

// f(T(x)) is T(f(x)), with constant operands brought to the order of x; f(T(x), T(y)) is T(f(x, y)).
Result<bool> sink_elementwise(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const ops::OpDef* def = ops::registry().find(node.op);
  if (def == nullptr || node.outputs.size() != 1 || !known(graph, node.outputs[0])) return false;
  if (def->op_class != ops::OpClass::kElementwise && def->op_class != ops::OpClass::kActivation) return false;
  std::optional<std::vector<int64_t>> perm;
  for (const ValueId input : node.inputs) {
    if (!input.valid() || graph.constant(input) != nullptr) continue;
    const Node* before = movable(graph, input);
    if (before == nullptr || !(shape_of(graph, input) == shape_of(graph, node.outputs[0]))) return false;
    const auto here = perm_of(graph, *before);
    if (perm && *perm != here) return false;
    perm = here;
  }
  if (!perm) return false;
  Patch patch(graph);
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& input : inputs) {
    if (!input.valid()) continue;
    if (graph.constant(input) == nullptr) {
      input = producer(graph, input)->inputs[0];
    } else if (shape_of(graph, input).rank() > static_cast<int>(perm->size())) {
      return false;
    } else {
      input = untransposed(patch, graph, input, *perm);
    }
  }
  const ValueId moved = patch.add(node.op, inputs, node.attributes);
  patch.replace(node.outputs[0], patch.transpose(moved, *perm));
  return rewriter.commit(patch);
}

// Concat(T(x), T(y)) along an axis is T(Concat(x, y)) along the axis it comes from.
Result<bool> sink_concat(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  std::vector<ValueId> inputs;
  std::vector<int64_t> perm;
  for (const ValueId input : node.inputs) {
    const Node* before = movable(graph, input);
    if (before == nullptr) return false;
    if (!perm.empty() && perm != perm_of(graph, *before)) return false;
    perm = perm_of(graph, *before);
    inputs.push_back(before->inputs[0]);
  }
  const auto axis = normalize_axis(node.attributes.int_or("axis", 0), static_cast<int>(perm.size()));
  if (!axis.ok()) return false;
  Attributes attributes = node.attributes;
  attributes.set("axis", Attribute(perm[static_cast<size_t>(*axis)]));
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.transpose(patch.add("Concat", inputs, std::move(attributes)), perm));
  return rewriter.commit(patch);
}

// Softmax(T(x)) along an axis is T(Softmax(x)) along the axis it comes from.
Result<bool> sink_softmax(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const Node* before = movable(graph, node.inputs[0]);
  if (before == nullptr) return false;
  const auto perm = perm_of(graph, *before);
  const auto axis = normalize_axis(node.attributes.int_or("axis", -1), static_cast<int>(perm.size()));
  if (!axis.ok()) return false;
  Attributes attributes = node.attributes;
  attributes.set("axis", Attribute(perm[static_cast<size_t>(*axis)]));
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.transpose(patch.add(node.op, {before->inputs[0]}, std::move(attributes)), perm));
  return rewriter.commit(patch);
}

// Pad(T(x)) is T(Pad(x)) with the amounts in the order of x.
Result<bool> sink_pad(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const Node* before = movable(graph, node.inputs[0]);
  const auto pads = ints(graph, input_of(node, 1));
  if (before == nullptr || !pads || input_of(node, 3).valid()) return false;
  const auto perm = perm_of(graph, *before);
  if (pads->size() != 2 * perm.size()) return false;
  std::vector<int64_t> moved(pads->size());
  for (size_t i = 0; i < perm.size(); ++i) {
    moved[static_cast<size_t>(perm[i])] = (*pads)[i];
    moved[static_cast<size_t>(perm[i]) + perm.size()] = (*pads)[i + perm.size()];
  }
  Patch patch(graph);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = before->inputs[0];
  inputs[1] = patch.constant(Tensor::ints(moved), graph.value(node.inputs[1]).name);
  patch.replace(node.outputs[0], patch.transpose(patch.add("Pad", inputs, node.attributes), perm));
  return rewriter.commit(patch);
}

// A reduction takes its axes from the order of x; the Transpose behind it keeps the axes that are left.
Result<bool> sink_reduce(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const Node* before = movable(graph, node.inputs[0]);
  const auto axes = axes_of(graph, node, 1);
  if (before == nullptr || !axes || axes->empty()) return false;
  const auto perm = perm_of(graph, *before);
  std::vector<int64_t> moved;
  std::vector<bool> reduced(perm.size(), false);
  for (const int axis : *axes) {
    moved.push_back(perm[static_cast<size_t>(axis)]);
    reduced[static_cast<size_t>(axis)] = true;
  }
  std::sort(moved.begin(), moved.end());
  std::vector<int64_t> left = perm;
  if (node.attributes.int_or("keepdims", 1) == 0) {
    left.clear();
    for (size_t i = 0; i < perm.size(); ++i) {
      if (reduced[i]) continue;
      const auto below = std::count_if(moved.begin(), moved.end(), [&](int64_t axis) { return axis < perm[i]; });
      left.push_back(perm[i] - below);
    }
  }
  Patch patch(graph);
  const ValueId operand = patch.constant(Tensor::ints(moved), graph.value(node.outputs[0]).name + "_axes");
  ValueId result = patch.add(node.op, {before->inputs[0], operand}, node.attributes);
  if (!left.empty()) result = patch.transpose(result, left);
  patch.replace(node.outputs[0], result);
  return rewriter.commit(patch);
}

Result<bool> sink(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.graph().node(id);
  if (node.op == "Concat") return sink_concat(rewriter, node);
  if (node.op == "Softmax") return sink_softmax(rewriter, node);
  if (node.op == "Pad") return sink_pad(rewriter, node);
  if (node.op == "ReduceMean" || node.op == "ReduceSum" || node.op == "ReduceMax") return sink_reduce(rewriter, node);
  return sink_elementwise(rewriter, node);
}

}  // namespace

Result<int> fuse_two_transpose(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_two_transpose", two_transposes);
}
Result<int> sink_transpose(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "sink_transpose", sink);
}

}  // namespace openrknn::opt
