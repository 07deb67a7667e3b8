#include "eval/fusion.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/activation.hpp"

namespace openrknn::eval {
namespace {

constexpr size_t kResidual = 3;       // operand of a convolution
constexpr size_t kFirstOfStages = 5;  // operands of stages behind a convolution come from here on

std::optional<Combine> combine_of(const Node& node) {
  if (node.inputs.size() != 2 || node.attributes.has("activation")) return std::nullopt;
  if (node.op == "Add") return Combine::kAdd;
  if (node.op == "Sub") return Combine::kSubtract;
  if (node.op == "Mul") return Combine::kMultiply;
  if (node.op == "Div") return Combine::kDivide;
  return std::nullopt;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<NodeId>& order, size_t slots)
      : graph_(graph), order_(order), made_at_(slots, 0), taken_(order.size(), false) {
    for (size_t step = 0; step < order.size(); ++step) {
      for (const ValueId id : graph.node(order[step]).outputs) {
        if (id.valid()) made_at_[id.index] = step + 1;
      }
    }
  }

  // A Pad with zeros that the one convolution behind it does itself; that is executed instead.
  bool left_to_convolution(size_t step) const {
    const Node& pad = graph_.node(order_[step]);
    if (pad.op != "Pad" || pad.outputs.size() != 1 || !pad.outputs[0].valid()) return false;
    const Value& value = graph_.value(pad.outputs[0]);
    if (value.users.size() != 1 || graph_.is_output(pad.outputs[0]) || value.users[0].slot != 0) return false;
    const Node& conv = graph_.node(value.users[0].node);
    return conv.op == "Conv" && takes_in(conv) && padded(conv, pad).has_value();
  }

  // The node of a step with what can be taken in; no stages and the node itself: nothing.
  Unit unit(size_t step) {
    const Node& node = graph_.node(order_[step]);
    if (node.op == "Conv" || node.op == "ConvTranspose") return behind_convolution(step, node);
    if (auto chain = elementwise(step, node)) return std::move(*chain);
    return plain(node);
  }

  bool taken(size_t step) const { return taken_[step]; }

  static Unit plain(const Node& node) {
    // A node of the graph, which outlives the evaluator: a pointer that owns nothing.
    return {std::shared_ptr<const Node>(std::shared_ptr<const Node>(), &node), cpu::kernels().find(node.op), {}};
  }

 private:
  // Nodes taken into one, in the order of their stages.
  struct Group {
    size_t step = 0;              // where it is executed
    Shape shape;                  // of all values
    bool broadcasts = false;      // operands of any shape that broadcasts; otherwise those behind a convolution
    std::vector<ValueId> values;  // value 0, if there is one, and the results of the stages
    std::vector<ValueId> inputs;  // operands of the unit
    std::vector<cpu::Stage> stages;
    std::vector<size_t> steps;  // of the stages' nodes
  };

  Unit behind_convolution(size_t step, const Node& conv) {
    Unit unit = plain(conv);
    if (!takes_in(conv)) return unit;
    auto made = std::make_shared<Node>(conv);
    std::vector<std::string> names;
    const size_t operand_made = made_at_[conv.inputs[0].index];
    if (operand_made > 0 && left_to_convolution(operand_made - 1)) {
      const Node& pad = graph_.node(order_[operand_made - 1]);
      made->attributes.set("pads", Attribute(*padded(conv, pad)));
      made->inputs[0] = pad.inputs[0];
      unit.node = made;
    }
    const bool simple = conv.inputs.size() <= kResidual && !conv.attributes.has("activation") && conv.op == "Conv";
    while (const Node* next = simple ? only_reader(made->outputs[0]) : nullptr) {
      const bool done = made->attributes.has("activation");
      if (done || !(take_addition(step, *next, *made) || take_activation(*next, *made))) break;
      take(made_at_[next->outputs[0].index] - 1, names);
      made->outputs = next->outputs;
    }
    Group group;
    group.step = step;
    group.shape = *graph_.value(conv.outputs[0]).shape;
    group.values = {made->outputs[0]};
    group.inputs = made->inputs;
    group.inputs.resize(kFirstOfStages);
    grow(group);
    if (!group.stages.empty()) {
      made->outputs = {group.values.back()};
      made->inputs = group.inputs;
      for (const size_t taken : group.steps) take(taken, names);
      unit.stages = std::move(group.stages);
    }
    if (names.empty()) return unit;
    made->attributes.set("stages", Attribute(std::move(names)));
    unit.node = std::move(made);
    return unit;
  }

  // Whether a convolution can do more than its own work: its result's shape is known before the run.
  bool takes_in(const Node& conv) const {
    return conv.inputs.size() <= kFirstOfStages && conv.outputs.size() == 1 && conv.outputs[0].valid() &&
           is_float32(conv.outputs[0]);
  }

  // An elementwise node and those behind it.
  std::optional<Unit> elementwise(size_t step, const Node& node) {
    if (node.outputs.size() != 1 || !node.outputs[0].valid() || !is_float32(node.outputs[0])) return std::nullopt;
    Group group;
    group.step = step;
    group.shape = *graph_.value(node.outputs[0]).shape;
    group.broadcasts = true;
    group.values = {ValueId{}};
    if (!add(group, step)) return std::nullopt;
    grow(group);
    // A function alone is its kernel's.
    if (group.stages.size() < 2 && !combine_of(node) && !is_square(node)) return std::nullopt;
    auto made = std::make_shared<Node>(node);
    made->outputs = {group.values.back()};
    made->inputs = group.inputs;
    std::vector<std::string> names;
    for (size_t i = 1; i < group.steps.size(); ++i) take(group.steps[i], names);
    if (!names.empty()) made->attributes.set("stages", Attribute(std::move(names)));
    return Unit{std::move(made), cpu::run_stages, std::move(group.stages)};
  }

  // The convolution's pads with those of a Pad in front of it.
  std::optional<std::vector<int64_t>> padded(const Node& conv, const Node& pad) const {
    if (pad.inputs.size() < 2 || pad.inputs.size() > 3 || !is_float32(pad.inputs[0]) || !is_float32(pad.outputs[0]))
      return std::nullopt;
    const Tensor* amounts = graph_.constant(pad.inputs[1]);
    const bool filled = pad.inputs.size() == 3 && pad.inputs[2].valid();
    const Tensor* filling = filled ? graph_.constant(pad.inputs[2]) : nullptr;
    if (amounts == nullptr || pad.attributes.string_or("mode", "constant") != "constant") return std::nullopt;
    if (filled && (filling == nullptr || filling->elements() != 1)) return std::nullopt;
    const double value = filled ? to_doubles(filling->view())[0] : 0.0;
    if (value != 0.0 || std::signbit(value)) return std::nullopt;
    const std::vector<int64_t> by_axis = to_ints(amounts->view());
    const auto rank = static_cast<size_t>(graph_.value(pad.inputs[0]).shape->rank());
    std::vector<int64_t> pads = conv.attributes.ints_or("pads", {});
    if (rank < 3 || by_axis.size() != 2 * rank || conv.attributes.string_or("auto_pad", "NOTSET") != "NOTSET")
      return std::nullopt;
    if (pads.empty()) pads.resize(2 * (rank - 2), 0);
    if (pads.size() != 2 * (rank - 2)) return std::nullopt;
    constexpr int64_t kMost = 255;
    for (size_t i = 0; i < by_axis.size(); ++i) {
      const size_t axis = i % rank;
      if (by_axis[i] < 0 || by_axis[i] > (axis < 2 ? 0 : kMost)) return std::nullopt;
      if (axis < 2) continue;
      int64_t& own = pads[i / rank * (rank - 2) + axis - 2];
      if (own > kMost) return std::nullopt;
      own += by_axis[i];
    }
    return pads;
  }

  void take(size_t step, std::vector<std::string>& names) {
    taken_[step] = true;
    names.push_back(graph_.node(order_[step]).op);
  }

  // Takes in as many nodes as leave one value that others read, the last.
  void grow(Group& group) const {
    Group best = group;
    while (const auto next = next_of(group)) {
      if (!add(group, *next)) break;
      if (closed(group)) best = group;
    }
    group = std::move(best);
  }

  bool holds(const Group& group, ValueId id) const {
    return std::find(group.values.begin(), group.values.end(), id) != group.values.end();
  }

  // The first step that reads a value of the group and can be its next stage.
  std::optional<size_t> next_of(const Group& group) const {
    std::optional<size_t> next;
    for (const ValueId id : group.values) {
      if (!id.valid() || graph_.value(id).users.size() > cpu::kMostStages) continue;
      for (const Use& use : graph_.value(id).users) {
        const Node& node = graph_.node(use.node);
        if (node.outputs.size() != 1 || !node.outputs[0].valid() || holds(group, node.outputs[0])) continue;
        const size_t step = made_at_[node.outputs[0].index] - 1;
        if ((next && step >= *next) || taken_[step]) continue;
        Group tried = group;
        if (add(tried, step)) next = step;
      }
    }
    return next;
  }

  // All values but the last are read by nodes of the group alone.
  bool closed(const Group& group) const {
    for (size_t i = 0; i + 1 < group.values.size(); ++i) {
      const ValueId id = group.values[i];
      if (!id.valid()) continue;
      if (graph_.is_output(id)) return false;
      for (const Use& use : graph_.value(id).users) {
        const std::vector<ValueId>& outputs = graph_.node(use.node).outputs;
        if (outputs.size() != 1 || !outputs[0].valid() || !holds(group, outputs[0])) return false;
      }
    }
    return true;
  }

  bool add(Group& group, size_t step) const {
    const Node& node = graph_.node(order_[step]);
    if (group.stages.size() == cpu::kMostStages || node.outputs.size() != 1 || !node.outputs[0].valid()) return false;
    const ValueId result = node.outputs[0];
    if (!is_float32(result) || !(*graph_.value(result).shape == group.shape) || node.inputs.empty()) return false;
    cpu::Stage stage;
    if (!read_operation(node, group, stage)) return false;
    const auto a = operand(group, node.inputs[0]);
    if (!a) return false;
    stage.a = *a;
    if (stage.op == cpu::Stage::Op::kCombine) {
      const auto b = node.op == "Pow" ? a : operand(group, node.inputs[1]);
      if (!b) return false;
      stage.b = *b;
    }
    group.stages.push_back(stage);
    group.values.push_back(result);
    group.steps.push_back(step);
    return true;
  }

  bool read_operation(const Node& node, Group& group, cpu::Stage& stage) const {
    if (const auto combine = is_square(node) ? std::optional(Combine::kMultiply) : combine_of(node)) {
      stage.op = cpu::Stage::Op::kCombine;
      stage.combine = *combine;
      return true;
    }
    if (node.op == "BatchNormalization") return read_normalization(node, group, stage);
    stage.op = cpu::Stage::Op::kActivation;
    if ((node.op == "Erf" || node.op == "Sqrt") && node.inputs.size() == 1) {
      stage.op = node.op == "Erf" ? cpu::Stage::Op::kErf : cpu::Stage::Op::kSqrt;
      return true;
    }
    if (node.op == "Clip") {
      if (!has_constant_bounds(node)) return false;
      stage.activation.kind = Activation::kClip;
      if (node.inputs.size() > 1 && node.inputs[1].valid()) stage.activation.min = bound(node.inputs[1]);
      if (node.inputs.size() > 2 && node.inputs[2].valid()) stage.activation.max = bound(node.inputs[2]);
      return true;
    }
    if (node.inputs.size() != 1 || !activation_from_name(node.op)) return false;
    const auto spec = activation_of(node.op, node.attributes);
    if (!spec.ok()) return false;
    stage.activation = *spec;
    return true;
  }

  // x * x in double, rounded once, is the product in float.
  bool is_square(const Node& node) const {
    if (node.op != "Pow" || node.inputs.size() != 2) return false;
    const Tensor* exponent = graph_.constant(node.inputs[1]);
    return exponent != nullptr && exponent->elements() == 1 && is_float(exponent->dtype()) &&
           to_doubles(exponent->view())[0] == 2.0;
  }

  bool read_normalization(const Node& node, Group& group, cpu::Stage& stage) const {
    if (group.broadcasts || node.inputs.size() != 5 || node.attributes.int_or("training_mode", 0) != 0) return false;
    for (size_t i = 1; i < 5; ++i) {
      const Tensor* constant = graph_.constant(node.inputs[i]);
      const bool fits = constant != nullptr && constant->dtype() == DType::kFloat32 && group.shape.rank() > 1 &&
                        constant->shape() == Shape{group.shape[1]};
      if (!fits) return false;
    }
    stage.op = cpu::Stage::Op::kNormalize;
    stage.epsilon = node.attributes.float_or("epsilon", 1e-5F);
    stage.b = {cpu::StageOperand::From::kInput, group.inputs.size()};
    group.inputs.insert(group.inputs.end(), node.inputs.begin() + 1, node.inputs.end());
    return true;
  }

  // A value of the group, or an operand that is there when the unit is executed.
  std::optional<cpu::StageOperand> operand(Group& group, ValueId id) const {
    if (!id.valid()) return std::nullopt;
    const auto value = std::find(group.values.begin(), group.values.end(), id);
    if (value != group.values.end())
      return cpu::StageOperand{cpu::StageOperand::From::kValue, static_cast<size_t>(value - group.values.begin())};
    if (!is_float32(id) || made_at_[id.index] > group.step || !fits(group, *graph_.value(id).shape))
      return std::nullopt;
    const size_t first = group.broadcasts ? 0 : kFirstOfStages;
    const auto at = std::find(group.inputs.begin() + static_cast<std::ptrdiff_t>(first), group.inputs.end(), id);
    const auto number = static_cast<size_t>(at - group.inputs.begin());
    if (at == group.inputs.end()) {
      if (number - first == cpu::kMostStageInputs) return std::nullopt;
      group.inputs.push_back(id);
    }
    return cpu::StageOperand{cpu::StageOperand::From::kInput, number};
  }

  static bool fits(const Group& group, const Shape& shape) {
    if (group.broadcasts) {
      const auto both = broadcast(shape, group.shape);
      return both.ok() && *both == group.shape;
    }
    if (shape.rank() > group.shape.rank()) return false;
    if (shape.elements() == 1 || shape == group.shape) return true;
    const int channel_axis = 1 - (group.shape.rank() - shape.rank());
    return channel_axis >= 0 && shape[channel_axis] == group.shape[1] && shape.elements() == group.shape[1];
  }

  bool is_float32(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.dtype == DType::kFloat32 && value.shape.has_value();
  }

  bool has_constant_bounds(const Node& node) const {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const Tensor* constant = graph_.constant(node.inputs[i]);
      if (constant == nullptr || constant->dtype() != DType::kFloat32 || constant->elements() != 1) return false;
    }
    return true;
  }
  float bound(ValueId id) const { return graph_.constant(id)->as<float>()[0]; }

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
    if (node.op != "Clip" || !has_constant_bounds(node)) return false;
    const char* names[] = {"", "activation_min", "activation_max"};
    for (size_t i = 1; i < node.inputs.size() && i < std::size(names); ++i) {
      if (node.inputs[i].valid()) conv.attributes.set(names[i], Attribute(bound(node.inputs[i])));
    }
    conv.attributes.set("activation", Attribute(node.op));
    return true;
  }

  const Graph& graph_;
  const std::vector<NodeId>& order_;
  std::vector<size_t> made_at_;  // by value: its step plus 1; 0 for inputs and constants
  std::vector<bool> taken_;
};

}  // namespace

std::vector<Unit> plain_units(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<Unit> units;
  for (const NodeId id : order) units.push_back(Fuser::plain(graph.node(id)));
  return units;
}

std::vector<Unit> fused_units(const Graph& graph, const std::vector<NodeId>& order, size_t slots) {
  Fuser fuser(graph, order, slots);
  std::vector<Unit> units;
  for (size_t step = 0; step < order.size(); ++step) {
    if (!fuser.taken(step) && !fuser.left_to_convolution(step)) units.push_back(fuser.unit(step));
  }
  return units;
}

}  // namespace openrknn::eval
