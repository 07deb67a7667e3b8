#include "quant/embedded.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "quant/observer.hpp"

namespace openrknn::quant {
namespace {

struct Scale {
  double scale = 0;
  int64_t zero = 0;
  bool operator==(const Scale&) const = default;
};

// The one scale and zero point of a QuantizeLinear or DequantizeLinear; nullopt for anything else.
std::optional<Scale> scale_of(const Graph& graph, const Node& node) {
  const Tensor* scale = graph.constant(node.inputs[1]);
  if (scale == nullptr || scale->elements() != 1 || node.attributes.int_or("block_size", 0) != 0) return std::nullopt;
  Scale made{to_doubles(scale->view())[0], 0};
  if (node.inputs.size() > 2 && node.inputs[2].valid()) {
    const Tensor* zero = graph.constant(node.inputs[2]);
    if (zero == nullptr || zero->elements() != 1) return std::nullopt;
    made.zero = to_ints(zero->view())[0];
  }
  if (!(made.scale > 0) || !std::isfinite(made.scale)) return std::nullopt;
  return made;
}

// What a pair that ends in `back` says; nullopt when it is not one to take out.
std::optional<Range> range_of_pair(const Graph& graph, const Node& back, NodeId front_id) {
  const Node& front = graph.node(front_id);
  if (front.op != "QuantizeLinear") return std::nullopt;
  const DType stored = graph.value(front.outputs[0]).dtype;
  const bool floats =
      graph.value(front.inputs[0]).dtype == DType::kFloat32 && graph.value(back.outputs[0]).dtype == DType::kFloat32;
  if (!floats || (stored != DType::kInt8 && stored != DType::kUInt8)) return std::nullopt;
  const auto scale = scale_of(graph, front);
  if (!scale || scale != scale_of(graph, back)) return std::nullopt;
  Range range;
  range.min = static_cast<double>(dtype_min(stored) - scale->zero) * scale->scale;
  range.max = static_cast<double>(dtype_max(stored) - scale->zero) * scale->scale;
  range.seen = true;
  return range;
}

bool within(const Range& inner, const Range& outer) { return inner.min >= outer.min && inner.max <= outer.max; }

// What the values of a tensor lie in, as far as the graph says it: quantizers drop a Relu or Clip whose bounds are
// those of the type, so a cut may only go where nothing can be outside.
class Bounds {
 public:
  explicit Bounds(const Graph& graph) : graph_(graph) {}

  void set(ValueId id, const Range& range) { known_[id] = range; }

  // Nodes are asked in topological order: what they read is known already, or never will be.
  std::optional<Range> of(ValueId id) {
    const auto at = known_.find(id);
    if (at != known_.end()) return at->second;
    const NodeId producer = graph_.value(id).producer;
    if (!producer.valid()) return std::nullopt;
    return from_operands(graph_.node(producer));
  }

  // Notes what the results of a node lie in.
  void note(const Node& node) {
    const auto range = from_operands(node);
    for (const ValueId out : node.outputs) {
      if (range && out.valid() && graph_.value(out).dtype == DType::kFloat32) known_.emplace(out, *range);
    }
  }

 private:
  std::optional<Range> from_operands(const Node& node) const {
    // Each result is one of the operand's elements, or lies between some.
    static const std::set<std::string, std::less<>> kBetween = {
        "Reshape", "Flatten",      "Squeeze",      "Unsqueeze", "Identity",          "Transpose",     "Slice",
        "Split",   "DepthToSpace", "SpaceToDepth", "Gather",    "MaxPool",           "GlobalMaxPool", "Tile",
        "Expand",  "ReduceMax",    "ReduceMin",    "Concat",    "GlobalAveragePool", "ReduceMean",    "AveragePool",
        "Dropout"};
    if (node.op == "Softmax" || node.op == "Sigmoid" || node.op == "HardSigmoid") return Range{0, 1, true, 0};
    if (node.op == "Tanh") return Range{-1, 1, true, 0};
    if (!kBetween.contains(node.op)) return std::nullopt;
    std::optional<Range> all;
    for (const ValueId input : node.inputs) {
      if (!input.valid() || graph_.value(input).dtype != DType::kFloat32) continue;
      const auto at = known_.find(input);
      if (at == known_.end()) return std::nullopt;
      if (!all) all = at->second;
      all->min = std::min(all->min, at->second.min);
      all->max = std::max(all->max, at->second.max);
    }
    // An average may count padding, which is 0.
    if (all && node.op == "AveragePool") {
      all->min = std::min(all->min, 0.0);
      all->max = std::max(all->max, 0.0);
    }
    return all;
  }

  const Graph& graph_;
  std::map<ValueId, Range> known_;
};

// The task of these ends in a cut, so that their result's range is that behind it.
bool ends_in_a_cut(const Graph& graph, ValueId x) {
  static const std::set<std::string, std::less<>> kArithmetic = {
      "Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div", "Sum", "BatchNormalization"};
  const NodeId producer = graph.value(x).producer;
  return producer.valid() && kArithmetic.contains(graph.node(producer).op);
}

// The node becomes one that hands `x` on, cut to the range when asked. An Identity is removed by the optimiser, which
// knows how the names of graph outputs are kept.
void replace_by_cut(Graph& graph, NodeId id, ValueId x, const Range& range, bool cut) {
  const std::string name = graph.value(x).name;
  for (int slot = 0; slot < static_cast<int>(graph.node(id).inputs.size()); ++slot)
    graph.set_input(id, slot, ValueId{});
  graph.set_input(id, 0, x);
  graph.node(id).inputs.resize(1);
  graph.node(id).attributes = {};
  graph.node(id).op = cut ? "Clip" : "Identity";
  if (!cut) return;
  graph.append_input(
      id, graph.add_constant(graph.unique_name(name + "_min"), Tensor::scalar(static_cast<float>(range.min))));
  graph.append_input(
      id, graph.add_constant(graph.unique_name(name + "_max"), Tensor::scalar(static_cast<float>(range.max))));
}

void remove_unread(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const Value& made = graph.value(node.outputs[0]);
  if (!made.users.empty() || graph.is_output(node.outputs[0])) return;
  graph.remove_node(id);
}

// The node stays where it is and becomes another.
void become(Graph& graph, NodeId id, const char* op, const std::vector<ValueId>& inputs, Attributes attributes) {
  for (int slot = 0; slot < static_cast<int>(graph.node(id).inputs.size()); ++slot)
    graph.set_input(id, slot, ValueId{});
  graph.node(id).inputs.clear();
  for (const ValueId input : inputs) graph.append_input(id, input);
  graph.node(id).op = op;
  graph.node(id).attributes = std::move(attributes);
}

bool is_bytes(const Graph& graph, ValueId id) {
  return graph.value(id).dtype == DType::kInt8 || graph.value(id).dtype == DType::kUInt8;
}

// The float that constant quantized values stand for, `scale` per channel or one.
std::optional<Tensor> dequantized(const Tensor& values, const Tensor& scale, const Tensor& zero) {
  Attributes along_channels;
  along_channels.set("axis", 0);
  auto made = ops::evaluate("DequantizeLinear", along_channels, std::vector<Tensor>{values, scale, zero}, 1);
  if (!made.ok()) return std::nullopt;
  return (*made)[0];
}

// Bias of a QLinearConv: int32 in steps of the input's scale times the weights'.
std::optional<Tensor> dequantized_bias(const Tensor& bias, double x_scale, const Tensor& w_scale) {
  std::vector<float> steps;
  for (const double scale : to_doubles(w_scale.view())) steps.push_back(static_cast<float>(x_scale * scale));
  return dequantized(bias, Tensor::from(w_scale.shape(), steps), Tensor());
}

// QLinearConv as DequantizeLinear, Conv, QuantizeLinear: x, x scale, x zero, w, w scale, w zero, y scale, y zero, bias.
Status expand_convolution(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const auto constant = [&](size_t i) { return i < node.inputs.size() ? graph.constant(node.inputs[i]) : nullptr; };
  const bool biased = node.inputs.size() > 8 && node.inputs[8].valid();
  for (size_t i = 1; i < (biased ? 9U : 8U); ++i) {
    if (constant(i) == nullptr) return {};
  }
  auto weights = dequantized(*constant(3), *constant(4), *constant(5));
  std::optional<Tensor> bias;
  if (biased) bias = dequantized_bias(*constant(8), to_doubles(constant(1)->view())[0], *constant(4));
  if (!weights || biased != bias.has_value()) return {};
  const std::string name = graph.value(node.outputs[0]).name;
  OPENRKNN_TRY(const auto x, ops::add_node(graph, "DequantizeLinear", name + "_x",
                                           {node.inputs[0], node.inputs[1], node.inputs[2]}, {}, node.source));
  std::vector<ValueId> operands = {x[0], graph.add_constant(name + "_w", std::move(*weights))};
  if (biased) operands.push_back(graph.add_constant(name + "_b", std::move(*bias)));
  OPENRKNN_TRY(const auto y, ops::add_node(graph, "Conv", name + "_float", operands, node.attributes, node.source));
  become(graph, id, "QuantizeLinear", {y[0], node.inputs[6], node.inputs[7]}, {});
  return {};
}

// What moves bytes, or takes the largest, does the same to the floats that they stand for.
Status expand_movement(Graph& graph, NodeId id) {
  static const std::set<std::string, std::less<>> kSame = {"MaxPool",   "Reshape",  "Flatten",  "Squeeze",
                                                           "Unsqueeze", "Identity", "Transpose"};
  const Node node = graph.node(id);
  if (!kSame.contains(node.op) || node.outputs.size() != 1 || !is_bytes(graph, node.inputs[0])) return {};
  const NodeId producer = graph.value(node.inputs[0]).producer;
  if (!producer.valid() || graph.node(producer).op != "QuantizeLinear") return {};
  const Node front = graph.node(producer);
  if (!scale_of(graph, front) || graph.value(front.inputs[0]).dtype != DType::kFloat32) return {};
  std::vector<ValueId> parameters(front.inputs.begin() + 1, front.inputs.end());
  std::vector<ValueId> quantized = {node.inputs[0]};
  quantized.insert(quantized.end(), parameters.begin(), parameters.end());
  const std::string name = graph.value(node.outputs[0]).name;
  OPENRKNN_TRY(const auto x, ops::add_node(graph, "DequantizeLinear", name + "_x", quantized, {}, node.source));
  std::vector<ValueId> operands = node.inputs;
  operands[0] = x[0];
  OPENRKNN_TRY(const auto y, ops::add_node(graph, node.op, name + "_float", operands, node.attributes, node.source));
  quantized[0] = y[0];
  become(graph, id, "QuantizeLinear", quantized, front.attributes);
  return {};
}

// Operators on quantized values as operators on floats between pairs.
Status expand_quantized(Graph& graph) {
  OPENRKNN_TRY(const auto order, graph.topological_order());
  for (const NodeId id : order) {
    if (graph.node(id).op == "QLinearConv") {
      OPENRKNN_CHECK_OK(expand_convolution(graph, id));
    } else if (!graph.node(id).inputs.empty() && graph.node(id).inputs[0].valid()) {
      OPENRKNN_CHECK_OK(expand_movement(graph, id));
    }
  }
  return {};
}

}  // namespace

Result<EmbeddedRanges> absorb_quantization(Graph& graph, bool inputs_saturate) {
  OPENRKNN_CHECK_OK(expand_quantized(graph));
  OPENRKNN_TRY(const auto order, graph.topological_order());
  EmbeddedRanges embedded;
  Bounds bounds(graph);
  for (const NodeId id : order) {
    const Node back = graph.node(id);  // a copy: the node goes
    const bool pair = back.op == "DequantizeLinear" && graph.value(back.inputs[0]).producer.valid();
    const NodeId front = pair ? graph.value(back.inputs[0]).producer : NodeId{};
    const auto range = pair ? range_of_pair(graph, back, front) : std::nullopt;
    if (!range) {
      bounds.note(back);
      continue;
    }
    const ValueId x = graph.node(front).inputs[0];
    const auto lies_in = bounds.of(x);
    const bool inside = (lies_in && within(*lies_in, *range)) || (graph.is_input(x) && inputs_saturate);
    if (inside || ends_in_a_cut(graph, x)) embedded[graph.value(x).name] = *range;
    embedded[graph.value(back.outputs[0]).name] = *range;
    bounds.set(back.outputs[0], lies_in && inside ? *lies_in : *range);
    replace_by_cut(graph, id, x, *range, !inside);
    remove_unread(graph, front);
  }
  for (const ValueId id : graph.values()) {  // scales and zero points that served the pairs
    if (graph.constant(id) != nullptr && graph.value(id).users.empty() && !graph.is_output(id)) graph.remove_value(id);
  }
  return embedded;
}

namespace {

// The largest sum of magnitudes of the weights of one output channel of a plain Conv; infinity for other nodes.
double largest_gain(const Graph& graph, const Node& node) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const bool plain = node.op == "Conv" && !(node.inputs.size() > 2 && node.inputs[2].valid()) &&
                     !(node.inputs.size() > 3 && node.inputs[3].valid());
  const Tensor* weights = plain ? graph.constant(node.inputs[1]) : nullptr;
  if (weights == nullptr || weights->elements() == 0) return kUnknown;
  const std::vector<double> values = to_doubles(weights->view());
  const size_t per_channel = values.size() / static_cast<size_t>(weights->shape()[0]);
  double largest = 0;
  for (size_t first = 0; first < values.size(); first += per_channel) {
    double sum = 0;
    for (size_t i = first; i < first + per_channel; ++i) sum += std::fabs(values[i]);
    largest = std::max(largest, sum);
  }
  return largest;
}

// An average, which lowering makes of pools, lies in the range of what it averages.
void bound_averages(const Graph& graph, Ranges& ranges) {
  const auto order = graph.topological_order();
  if (!order.ok()) return;
  for (const NodeId id : *order) {
    const Node& node = graph.node(id);
    if (ranges[node.outputs[0]].seen || largest_gain(graph, node) > 1.001) continue;
    Range range = ranges[node.inputs[0]];
    if (!range.seen) continue;
    range.min = std::min(range.min, 0.0);
    range.max = std::max(range.max, 0.0);
    ranges[node.outputs[0]] = range;
  }
}

}  // namespace

void apply_embedded(const Graph& graph, const EmbeddedRanges& embedded, Ranges& ranges) {
  for (const ValueId id : graph.values()) {
    const Value& value = graph.value(id);
    auto at = embedded.find(value.name);
    for (auto alias = value.aliases.begin(); at == embedded.end() && alias != value.aliases.end(); ++alias)
      at = embedded.find(*alias);
    if (at != embedded.end()) ranges[id] = at->second;
    const Tensor* constant = graph.constant(id);
    if (constant != nullptr && constant->dtype() == DType::kFloat32 && !ranges[id].seen)
      observe(constant->as<float>(), ranges[id]);
  }
  bound_averages(graph, ranges);
}

}  // namespace openrknn::quant
