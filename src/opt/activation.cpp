// Activations move into the convolution or the elementwise node in front of them; residual additions into a
// convolution.
#include <algorithm>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

bool fusable(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Relu",    "Clip",        "LeakyRelu", "PRelu", "Sigmoid",
                                              "Tanh",    "HardSigmoid", "HardSwish", "Elu",   "Softplus",
                                              "exSwish", "exGelu",      "exMish"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Adds activation* to the attributes as the node says; false when its parameters are not constant.
bool describe_activation(const Graph& graph, const Node& node, Attributes& attributes) {
  attributes.set("activation", node.op.c_str());
  if (node.op == "Clip") {
    const ValueId low = input_of(node, 1), high = input_of(node, 2);
    if ((low.valid() && !scalar(graph, low)) || (high.valid() && !scalar(graph, high))) return false;
    if (low.valid()) attributes.set("activation_min", Attribute(*scalar(graph, low)));
    if (high.valid()) attributes.set("activation_max", Attribute(*scalar(graph, high)));
  } else if (node.op == "LeakyRelu") {
    attributes.set("activation_alpha", Attribute(node.attributes.float_or("alpha", 0.01F)));
  } else if (node.op == "Elu") {
    attributes.set("activation_alpha", Attribute(node.attributes.float_or("alpha", 1.0F)));
  } else if (node.op == "HardSigmoid") {
    attributes.set("activation_alpha", Attribute(node.attributes.float_or("alpha", 0.2F)));
    attributes.set("activation_beta", Attribute(node.attributes.float_or("beta", 0.5F)));
  } else if (node.op == "exGelu") {
    // A fused exGelu is the exact form; there is no attribute for the other one.
    return node.attributes.string_or("approximate", "none") == "none";
  }
  return true;
}

bool is_conv(const Node& node) { return node.op == "Conv" || node.op == "ConvTranspose"; }

Result<bool> into_conv(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!fusable(node.op) || !single_use(graph, node.inputs[0])) return false;
  const Node* conv = producer(graph, node.inputs[0]);
  if (conv == nullptr || !is_conv(*conv) || has_activation(*conv) || input_of(*conv, 4).valid()) return false;
  if (!is_float32(graph, node.outputs[0]) || !known(graph, node.outputs[0])) return false;
  Attributes attributes = conv->attributes;
  if (!describe_activation(graph, node, attributes)) return false;
  std::vector<ValueId> inputs = conv->inputs;
  if (node.op == "PRelu") {
    if (!along_axis(graph, node.inputs[1], shape_of(graph, node.outputs[0]), 1)) return false;
    inputs.resize(4);
    inputs.push_back(node.inputs[1]);
  }
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add(conv->op, inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

Result<bool> into_elementwise(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if ((node.op != "Relu" && node.op != "Clip") || !single_use(graph, node.inputs[0])) return false;
  const Node* before = producer(graph, node.inputs[0]);
  if (before == nullptr || (before->op != "Add" && before->op != "Sub" && before->op != "Mul")) return false;
  if (has_activation(*before) || !is_float32(graph, node.outputs[0])) return false;
  Attributes attributes = before->attributes;
  if (!describe_activation(graph, node, attributes)) return false;
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add(before->op, before->inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

// Where in the order of execution a value exists: the longest chain of nodes behind it.
int depth(const Graph& graph, ValueId value, std::vector<int>& known_depths) {
  std::vector<ValueId> stack{value};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    if (known_depths.size() <= at.index) known_depths.resize(at.index + 1, -1);
    const Node* node = producer(graph, at);
    int deepest = 0;
    bool ready = true;
    for (const ValueId input : node == nullptr ? std::vector<ValueId>{} : node->inputs) {
      if (!input.valid()) continue;
      if (input.index >= known_depths.size() || known_depths[input.index] < 0) {
        stack.push_back(input);
        ready = false;
      } else {
        deepest = std::max(deepest, known_depths[input.index] + 1);
      }
    }
    if (!ready) continue;
    known_depths[at.index] = deepest;
    stack.pop_back();
  }
  return known_depths[value.index];
}

bool takes_residual(const Graph& graph, ValueId value, const Shape& shape) {
  if (!single_use(graph, value) || !known(graph, value) || !(shape_of(graph, value) == shape)) return false;
  const Node* conv = producer(graph, value, "Conv");
  return conv != nullptr && !has_activation(*conv) && !input_of(*conv, 3).valid() && !input_of(*conv, 4).valid();
}

// Add(conv, r): the convolution adds r itself. Of two candidates the later one, so that the other result is there.
Result<bool> residual_into_conv(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!rewriter.capabilities().fuse_residual || node.op != "Add" || !is_float32(graph, node.outputs[0])) return false;
  const ValueId y = node.outputs[0];
  if (!known(graph, y) || shape_of(graph, y).rank() < 3) return false;
  int best = -1;
  int best_depth = -1;
  std::vector<int> depths;
  for (int i = 0; i < 2; ++i) {
    const ValueId residual = node.inputs[static_cast<size_t>(1 - i)];
    if (!takes_residual(graph, node.inputs[static_cast<size_t>(i)], shape_of(graph, y))) continue;
    if (graph.constant(residual) != nullptr || !(shape_of(graph, residual) == shape_of(graph, y))) continue;
    const int d = depth(graph, node.inputs[static_cast<size_t>(i)], depths);
    if (d > best_depth) {
      best = i;
      best_depth = d;
    }
  }
  if (best < 0) return false;
  const Node& conv = *producer(graph, node.inputs[static_cast<size_t>(best)]);
  Attributes attributes = conv.attributes;
  for (const auto& [name, value] : node.attributes) attributes.set(name, value);
  std::vector<ValueId> inputs = conv.inputs;
  inputs.resize(3);
  inputs.push_back(node.inputs[static_cast<size_t>(1 - best)]);
  Patch patch(graph);
  patch.replace(y, patch.add("Conv", inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> fuse_activation_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_activation_into_conv", into_conv);
}
Result<int> fuse_activation_into_elementwise(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_activation_into_elementwise", into_elementwise);
}
Result<int> fuse_residual_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_residual_into_conv", residual_into_conv);
}

}  // namespace openrknn::opt
