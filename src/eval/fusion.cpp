#include "eval/fusion.hpp"

#include <algorithm>

#include "kernels/activation.hpp"

namespace openrknn::eval {
namespace {

constexpr size_t kResidual = 3;  // operand of a convolution

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<NodeId>& order, size_t slots)
      : graph_(graph), made_at_(slots, 0), taken_(order.size(), false) {
    for (size_t step = 0; step < order.size(); ++step) {
      for (const ValueId id : graph.node(order[step]).outputs) {
        if (id.valid()) made_at_[id.index] = step + 1;
      }
    }
  }

  // The convolution of a step with what can be taken in; nullptr: nothing.
  std::shared_ptr<const Node> fused(size_t step, const Node& conv) {
    if (conv.op != "Conv" || conv.inputs.size() > kResidual || conv.attributes.find("activation") != nullptr)
      return nullptr;
    auto made = std::make_shared<Node>(conv);
    while (const Node* next = only_reader(made->outputs[0])) {
      const bool done = made->attributes.find("activation") != nullptr;
      if (done || !(take_addition(step, *next, *made) || take_activation(*next, *made))) break;
      taken_[made_at_[next->outputs[0].index] - 1] = true;
      made->outputs = next->outputs;
    }
    if (made->outputs == conv.outputs) return nullptr;
    return made;
  }

  bool taken(size_t step) const { return taken_[step]; }

 private:
  bool is_float32(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.dtype == DType::kFloat32 && value.shape.has_value();
  }

  const Node* only_reader(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.users.size() != 1 || graph_.is_output(id) || !is_float32(id)) return nullptr;
    const Node& node = graph_.node(value.users[0].node);
    const bool simple = node.outputs.size() == 1 && node.outputs[0].valid() && is_float32(node.outputs[0]) &&
                        *graph_.value(node.outputs[0]).shape == *value.shape;
    return simple ? &node : nullptr;
  }

  bool take_addition(size_t step, const Node& node, Node& conv) const {
    if (node.op != "Add" || conv.inputs.size() > kResidual || node.inputs.size() != 2 ||
        node.attributes.find("activation") != nullptr)
      return false;
    const ValueId other = node.inputs[node.inputs[0] == conv.outputs[0] ? 1 : 0];
    if (!other.valid() || other == conv.outputs[0] || !is_float32(other) || made_at_[other.index] > step) return false;
    if (!(*graph_.value(other).shape == *graph_.value(conv.outputs[0]).shape)) return false;
    conv.inputs.resize(kResidual);
    conv.inputs.push_back(other);
    return true;
  }

  bool take_activation(const Node& node, Node& conv) const {
    static constexpr std::string_view kPlain[] = {"Relu", "Sigmoid", "Tanh", "HardSwish"};
    if (std::find(std::begin(kPlain), std::end(kPlain), node.op) != std::end(kPlain)) {
      conv.attributes.set("activation", Attribute(node.op));
      return true;
    }
    if (node.op != "Clip") return false;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const Tensor* bound = graph_.constant(node.inputs[i]);
      if (bound == nullptr || bound->dtype() != DType::kFloat32 || bound->elements() != 1) return false;
    }
    const char* names[] = {"", "activation_min", "activation_max"};
    for (size_t i = 1; i < node.inputs.size() && i < std::size(names); ++i) {
      if (node.inputs[i].valid())
        conv.attributes.set(names[i], Attribute(graph_.constant(node.inputs[i])->as<float>()[0]));
    }
    conv.attributes.set("activation", Attribute(node.op));
    return true;
  }

  const Graph& graph_;
  std::vector<size_t> made_at_;  // by value: its step plus 1; 0 for inputs and constants
  std::vector<bool> taken_;
};

}  // namespace

std::vector<std::shared_ptr<const Node>> fuse_behind_convolutions(const Graph& graph, const std::vector<NodeId>& order,
                                                                  size_t slots) {
  Fuser fuser(graph, order, slots);
  std::vector<std::shared_ptr<const Node>> nodes;
  for (size_t step = 0; step < order.size(); ++step) {
    if (fuser.taken(step)) continue;
    const Node& node = graph.node(order[step]);
    if (auto fused = fuser.fused(step, node)) {
      nodes.push_back(std::move(fused));
    } else {
      nodes.emplace_back(std::shared_ptr<const Node>(), &node);
    }
  }
  return nodes;
}

}  // namespace openrknn::eval
