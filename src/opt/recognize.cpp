// Activations that exporters spell as several elementwise nodes. A part of the graph that is a function of one tensor,
// element by element, is evaluated on a grid of points; what equals a known function there is that function. This
// covers every algebraic spelling at once, and says nothing about how a pattern is written.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ops/evaluate.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

constexpr size_t kMaxNodes = 14;
// Above the rounding of the longest spelling, far below the distance of the two Gelu forms (4e-4).
constexpr double kTolerance = 4e-6;

// Nodes that compute one value from `x` and scalar constants only, operands first.
struct Cone {
  ValueId x;
  std::vector<NodeId> nodes;
};

bool maps_elements(const Graph& graph, const Node& node) {
  const ops::OpDef* def = ops::registry().find(node.op);
  if (def == nullptr || node.outputs.size() != 1 || !is_float32(graph, node.outputs[0])) return false;
  return def->op_class == ops::OpClass::kElementwise || def->op_class == ops::OpClass::kActivation;
}

// Collects the nodes between x and the value; false when something else than x and scalars is read.
bool collect(const Graph& graph, ValueId value, ValueId x, std::vector<NodeId>& nodes) {
  if (value == x) return true;
  if (graph.constant(value) != nullptr) return scalar(graph, value).has_value();
  const NodeId id = graph.value(value).producer;
  if (!id.valid() || !maps_elements(graph, graph.node(id)) || nodes.size() >= kMaxNodes) return false;
  if (std::find(nodes.begin(), nodes.end(), id) != nodes.end()) return true;
  for (const ValueId input : graph.node(id).inputs) {
    if (input.valid() && !collect(graph, input, x, nodes)) return false;
  }
  nodes.push_back(id);
  return nodes.size() <= kMaxNodes;
}

// Inner results must not be read from outside: they go with the rewrite.
bool closed(const Graph& graph, const std::vector<NodeId>& nodes, ValueId root) {
  for (const NodeId id : nodes) {
    const ValueId value = graph.node(id).outputs[0];
    if (value == root) continue;
    if (graph.is_output(value)) return false;
    for (const Use& use : graph.value(value).users) {
      if (std::find(nodes.begin(), nodes.end(), use.node) == nodes.end()) return false;
    }
  }
  return true;
}

// All cones that end in the node, largest first.
std::vector<Cone> cones(const Graph& graph, NodeId id) {
  const ValueId root = graph.node(id).outputs[0];
  std::vector<ValueId> candidates;
  std::vector<NodeId> waiting{id};
  std::set<NodeId> seen{id};
  for (size_t i = 0; i < waiting.size() && waiting.size() <= kMaxNodes; ++i) {
    for (const ValueId input : graph.node(waiting[i]).inputs) {
      if (!input.valid() || graph.constant(input) != nullptr) continue;
      if (std::find(candidates.begin(), candidates.end(), input) == candidates.end()) candidates.push_back(input);
      const NodeId before = graph.value(input).producer;
      if (before.valid() && maps_elements(graph, graph.node(before)) && seen.insert(before).second) {
        waiting.push_back(before);
      }
    }
  }
  std::vector<Cone> result;
  for (const ValueId x : candidates) {
    if (!is_float32(graph, x) || !known(graph, x) || !(shape_of(graph, x) == shape_of(graph, root))) continue;
    Cone cone{x, {}};
    if (collect(graph, root, x, cone.nodes) && closed(graph, cone.nodes, root)) result.push_back(std::move(cone));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Cone& a, const Cone& b) { return a.nodes.size() > b.nodes.size(); });
  return result;
}

Tensor make_grid() {
  std::vector<float> points;
  for (int i = -240; i <= 240; ++i) points.push_back(static_cast<float>(i) / 20.0F);
  for (const float far : {16.0F, 20.0F, 30.0F, 50.0F, 80.0F}) {
    points.push_back(far);
    points.push_back(-far);
  }
  return Tensor::from(Shape{static_cast<int64_t>(points.size())}, points);
}

const Tensor& grid() {
  static const Tensor kGrid = make_grid();
  return kGrid;
}

std::optional<Tensor> evaluate_cone(const Graph& graph, const Cone& cone, const Tensor& points) {
  std::map<ValueId, Tensor> values{{cone.x, points}};
  Tensor last;
  for (const NodeId id : cone.nodes) {
    const Node& node = graph.node(id);
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) {
      // Scalars lose their rank, which could be above that of the points; operands that must have it keep it.
      const Tensor* constant = graph.constant(input);
      if (constant != nullptr) {
        inputs.push_back(constant->reshaped(Shape{}));
      } else {
        inputs.push_back(input.valid() ? values[input] : Tensor());
      }
    }
    auto results = ops::evaluate(node.op, node.attributes, inputs, 1);
    if (!results.ok()) return std::nullopt;
    last = (*results)[0];
    values[node.outputs[0]] = last;
  }
  if (!(last.shape() == points.shape())) return std::nullopt;
  return last;
}

double at(const Graph& graph, const Cone& cone, float point) {
  const auto value = evaluate_cone(graph, cone, Tensor::from<float>(Shape{1}, std::vector<float>{point}));
  return value ? static_cast<double>(value->as<float>()[0]) : std::nan("");
}

struct Function {
  std::string op;
  Attributes attributes;
  std::optional<float> low, high;  // of Clip
};

Function named(const char* op) { return {op, {}, std::nullopt, std::nullopt}; }

bool same_function(const Function& function, const Tensor& wanted) {
  std::vector<Tensor> inputs(function.low || function.high ? 3 : 1);
  inputs[0] = grid();
  if (function.low) inputs[1] = Tensor::scalar(*function.low);
  if (function.high) inputs[2] = Tensor::scalar(*function.high);
  const auto got = ops::evaluate(function.op, function.attributes, inputs, 1);
  if (!got.ok()) return false;
  const auto a = wanted.as<float>();
  const auto b = (*got)[0].as<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    const double wide_a = static_cast<double>(a[i]), wide_b = static_cast<double>(b[i]);
    if (!(std::abs(wide_a - wide_b) <= kTolerance * std::max(1.0, std::abs(wide_b)))) return false;
  }
  return true;
}

using Guess = std::vector<Function> (*)(const Graph&, const Cone&);

Result<bool> recognize(Rewriter& rewriter, NodeId id, std::initializer_list<std::string_view> roots, Guess guess) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (std::find(roots.begin(), roots.end(), node.op) == roots.end()) return false;
  if (!maps_elements(graph, node) || !known(graph, node.outputs[0])) return false;
  for (const Cone& cone : cones(graph, id)) {
    // Most guesses take a point or two: the whole grid is evaluated only for cones that one is made for.
    const std::vector<Function> functions = guess(graph, cone);
    if (functions.empty()) continue;
    const auto values = evaluate_cone(graph, cone, grid());
    if (!values) continue;
    for (const Function& function : functions) {
      if (cone.nodes.size() == 1 && function.op == node.op) continue;
      if (!same_function(function, *values)) continue;
      Patch patch(graph);
      std::vector<ValueId> inputs{cone.x};
      if (function.low || function.high) {
        const std::string& name = graph.value(node.outputs[0]).name;
        inputs.push_back(function.low ? patch.constant(Tensor::scalar(*function.low), name + "_min") : ValueId{});
        if (function.high) inputs.push_back(patch.constant(Tensor::scalar(*function.high), name + "_max"));
      }
      patch.replace(node.outputs[0], patch.add(function.op, inputs, function.attributes));
      return rewriter.commit(patch);
    }
  }
  return false;
}

std::vector<Function> guess_swish(const Graph&, const Cone&) { return {named("exSwish")}; }
std::vector<Function> guess_mish(const Graph&, const Cone&) { return {named("exMish")}; }
std::vector<Function> guess_hardswish(const Graph&, const Cone&) { return {named("HardSwish")}; }

std::vector<Function> guess_gelu(const Graph&, const Cone&) {
  Function exact = named("exGelu"), by_tanh = named("exGelu");
  exact.attributes.set("approximate", "none");
  by_tanh.attributes.set("approximate", "tanh");
  return {exact, by_tanh};
}

// clip(alpha x + beta, 0, 1): both can be read off at points where it is not clipped.
std::vector<Function> guess_hardsigmoid(const Graph& graph, const Cone& cone) {
  const double beta = at(graph, cone, 0.0F);
  if (!(beta > 0.0 && beta < 1.0)) return {};
  for (const float h : {1.0F, 0.25F, 0.0625F}) {
    const double below = at(graph, cone, -h), above = at(graph, cone, h);
    if (!(below > 0.0 && above < 1.0 && below < above)) continue;
    Function function = named("HardSigmoid");
    function.attributes.set("alpha", Attribute(static_cast<float>((above - below) / (2.0 * static_cast<double>(h)))));
    function.attributes.set("beta", Attribute(static_cast<float>(beta)));
    return {function};
  }
  return {};
}

std::vector<Function> guess_leakyrelu(const Graph& graph, const Cone& cone) {
  const double alpha = -at(graph, cone, -1.0F);
  if (!(alpha > 0.0 && alpha < 1.0)) return {};
  Function function = named("LeakyRelu");
  function.attributes.set("alpha", Attribute(static_cast<float>(alpha)));
  return {function};
}

std::vector<Function> guess_clip(const Graph& graph, const Cone& cone) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const double low = at(graph, cone, -kLargest), high = at(graph, cone, kLargest);
  const bool bounded_low = low > -static_cast<double>(kLargest);
  const bool bounded_high = high < static_cast<double>(kLargest);
  // Bounds must be seen by the grid, and something must be left between them.
  if (!(low < high) || (bounded_low && std::abs(low) > 50.0) || (bounded_high && std::abs(high) > 50.0)) return {};
  if (!bounded_low && !bounded_high) return {};
  if (low == 0.0 && !bounded_high) return {named("Relu")};
  Function function = named("Clip");
  if (bounded_low) function.low = static_cast<float>(low);
  if (bounded_high) function.high = static_cast<float>(high);
  return {function};
}

Result<bool> swish(Rewriter& r, NodeId id) { return recognize(r, id, {"Mul", "Div", "Swish"}, guess_swish); }
Result<bool> gelu(Rewriter& r, NodeId id) { return recognize(r, id, {"Mul", "Div", "Gelu"}, guess_gelu); }
Result<bool> mish(Rewriter& r, NodeId id) { return recognize(r, id, {"Mul", "Mish"}, guess_mish); }
Result<bool> hardswish(Rewriter& r, NodeId id) { return recognize(r, id, {"Mul", "Div"}, guess_hardswish); }
Result<bool> hardsigmoid(Rewriter& r, NodeId id) {
  return recognize(r, id, {"Mul", "Div", "Clip", "Relu", "Min", "Max"}, guess_hardsigmoid);
}
Result<bool> leakyrelu(Rewriter& r, NodeId id) {
  return recognize(r, id, {"Max", "Add", "Sub", "PRelu"}, guess_leakyrelu);
}
Result<bool> clip(Rewriter& r, NodeId id) { return recognize(r, id, {"Clip", "Relu", "Min", "Max"}, guess_clip); }

}  // namespace

Result<int> fuse_swish(Graph& graph, PassContext& context) { return apply_rule(graph, context, "fuse_swish", swish); }
Result<int> fuse_gelu(Graph& graph, PassContext& context) { return apply_rule(graph, context, "fuse_gelu", gelu); }
Result<int> fuse_mish(Graph& graph, PassContext& context) { return apply_rule(graph, context, "fuse_mish", mish); }
Result<int> fuse_hardswish(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_hardswish", hardswish);
}
Result<int> fuse_hardsigmoid(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_hardsigmoid", hardsigmoid);
}
Result<int> fuse_leakyrelu(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_leakyrelu", leakyrelu);
}
Result<int> fuse_clip(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_clip", clip, Visit::kBackward);
}

}  // namespace openrknn::opt
