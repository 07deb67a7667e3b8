#include "quant/embedded.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

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

// Quantizers drop a Relu or Clip whose bounds are those of the type: the cut has to stay where one may have been. It
// costs nothing behind these, whose tasks end in one.
bool may_hide_a_cut(const Graph& graph, ValueId x) {
  static const std::set<std::string, std::less<>> kArithmetic = {
      "Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div", "Sum", "BatchNormalization"};
  const NodeId producer = graph.value(x).producer;
  return producer.valid() && kArithmetic.contains(graph.node(producer).op);
}

// The node becomes one that hands `x` on, cut to the range where that may matter. An Identity is removed by the
// optimiser, which knows how the names of graph outputs are kept.
void replace_by_cut(Graph& graph, NodeId id, ValueId x, const Range& range) {
  const bool cut = may_hide_a_cut(graph, x);
  const std::string name = graph.value(x).name;
  for (int slot = 0; slot < static_cast<int>(graph.node(id).inputs.size()); ++slot)
    graph.set_input(id, slot, ValueId{});
  graph.set_input(id, 0, x);
  graph.node(id).inputs.resize(1);
  graph.node(id).attributes = {};
  graph.node(id).op = cut ? "Clip" : "Identity";
  if (!cut) return;
  graph.append_input(id, graph.add_constant(name + "_min", Tensor::scalar(static_cast<float>(range.min))));
  graph.append_input(id, graph.add_constant(name + "_max", Tensor::scalar(static_cast<float>(range.max))));
}

void remove_unread(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const Value& made = graph.value(node.outputs[0]);
  if (!made.users.empty() || graph.is_output(node.outputs[0])) return;
  graph.remove_node(id);
}

}  // namespace

Result<EmbeddedRanges> absorb_quantization(Graph& graph) {
  OPENRKNN_TRY(const auto order, graph.topological_order());
  EmbeddedRanges embedded;
  for (const NodeId id : order) {
    const Node back = graph.node(id);  // a copy: the node goes
    if (back.op != "DequantizeLinear" || !graph.value(back.inputs[0]).producer.valid()) continue;
    const NodeId front = graph.value(back.inputs[0]).producer;
    const auto range = range_of_pair(graph, back, front);
    if (!range) continue;
    const ValueId x = graph.node(front).inputs[0];
    embedded[graph.value(x).name] = *range;
    embedded[graph.value(back.outputs[0]).name] = *range;
    replace_by_cut(graph, id, x, *range);
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
