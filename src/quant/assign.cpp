// Ranges to quantization parameters: which tensors share one, and what constants get.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "quant/calibration.hpp"
#include "quant/embedded.hpp"
#include "quant/rules.hpp"
#include "quant/weights.hpp"

namespace openrknn::quant {
namespace {

// Values that must have one scale, as disjoint sets.
class SharedRanges {
 public:
  ValueId root(ValueId id) {
    auto it = parent_.find(id);
    if (it == parent_.end() || it->second == id) return id;
    return it->second = root(it->second);
  }
  // The two sets become one; its range is the union of theirs.
  void unite(ValueId leader, ValueId member) {
    const ValueId a = root(leader);
    const ValueId b = root(member);
    if (a != b) parent_[b] = a;
  }

 private:
  std::map<ValueId, ValueId> parent_;
};

bool is_int8(const Placement& placement, NodeId id) { return placement.at(id).format == Format::kInt8; }

// A producer that ends in an output stage can write any scale; one that only moves values cannot.
bool requantizes(const Graph& graph, const Placement& placement, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  return producer.valid() && is_int8(placement, producer) && format_role(graph.node(producer)) == FormatRole::kOwn;
}

std::set<ValueId> int8_values(const Graph& graph, const Placement& placement) {
  std::set<ValueId> values;
  for (const NodeId id : graph.nodes()) {
    if (!is_int8(placement, id)) continue;
    const Node& node = graph.node(id);
    for (const ValueId v : node.inputs) {
      if (v.valid() && is_float(graph.value(v).dtype)) values.insert(v);
    }
    for (const ValueId v : node.outputs) {
      if (v.valid()) values.insert(v);
    }
  }
  return values;
}

void share_ranges(const Graph& graph, const Placement& placement, SharedRanges& shared) {
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!is_int8(placement, id) || format_role(node) != FormatRole::kFollows) continue;
    const ValueId output = node.outputs[0];
    if (node.op == "Concat") {
      // A producer that nobody else reads writes the Concat's scale; the others are requantized by the copy.
      for (const ValueId input : node.inputs) {
        if (graph.only_use(input) && requantizes(graph, placement, input)) shared.unite(output, input);
      }
      continue;
    }
    for (const ValueId out : node.outputs) {
      if (out.valid()) shared.unite(node.inputs[0], out);
    }
  }
}

bool is_weight(const Graph& graph, ValueId id) {
  const auto& users = graph.value(id).users;
  return graph.constant(id) != nullptr && std::any_of(users.begin(), users.end(), [&](const Use& u) {
           const std::string& op = graph.node(u.node).op;
           return (op == "Conv" || op == "ConvTranspose") && u.slot >= 1 && u.slot != 3;
         });
}

}  // namespace

Status assign_params(Graph& graph, const Placement& placement, const Ranges& ranges, const std::string& method) {
  const std::set<ValueId> values = int8_values(graph, placement);
  SharedRanges shared;
  share_ranges(graph, placement, shared);
  std::map<ValueId, Range> group_range;
  for (const ValueId id : values) {
    const auto it = ranges.find(id);
    if (it == ranges.end() || !it->second.seen || is_weight(graph, id)) continue;
    Range& g = group_range[shared.root(id)];
    g.min = g.seen ? std::min(g.min, it->second.min) : it->second.min;
    g.max = g.seen ? std::max(g.max, it->second.max) : it->second.max;
    g.seen = true;
  }
  for (const ValueId id : values) {
    Value& v = graph.value(id);
    if (is_weight(graph, id)) continue;
    const auto it = group_range.find(shared.root(id));
    const Range range = it == group_range.end() ? Range{} : it->second;
    v.quant = asymmetric_params(DType::kInt8, range.min, range.max);
  }
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!is_int8(placement, id) || (node.op != "Conv" && node.op != "ConvTranspose")) continue;
    const ValueId w = node.inputs[1];
    const Tensor* weights = graph.constant(w);
    if (weights == nullptr) continue;
    const bool channel_axis_last = node.op == "ConvTranspose" && node.attributes.int_or("group", 1) == 1;
    const bool per_layer = method == "layer";
    graph.value(w).quant = weight_params(*weights, per_layer ? -1 : (channel_axis_last ? 1 : 0));
  }
  return {};
}

std::vector<std::string> without_range(const Graph& graph, const Placement& placement, const Ranges& ranges) {
  SharedRanges shared;
  share_ranges(graph, placement, shared);
  std::set<ValueId> known;
  for (const auto& [id, range] : ranges) {
    if (range.seen) known.insert(shared.root(id));
  }
  std::vector<std::string> names;
  for (const ValueId id : int8_values(graph, placement)) {
    if (!is_weight(graph, id) && !known.contains(shared.root(id))) names.push_back(graph.value(id).name);
  }
  return names;
}

std::vector<std::string> crowded_concats(const Graph& graph, const Placement& placement, const Ranges& ranges) {
  std::vector<std::string> lines;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op != "Concat" || !is_int8(placement, id)) continue;
    const Value& result = graph.value(node.outputs[0]);
    if (!result.quant) continue;
    for (const ValueId input : node.inputs) {
      const auto it = ranges.find(input);
      if (it == ranges.end() || !it->second.seen || it->second.max <= it->second.min) continue;
      const double width = it->second.max - it->second.min;
      const double levels = width / result.quant->scale();
      if (levels >= kLeastLevels) continue;
      lines.push_back(fmt::format(
          "Concat '{}' leaves operand '{}' ({:.4g} to {:.4g}) {:.0f} of 256 int8 levels, since one scale has to reach "
          "all "
          "operands; end the model before it with --output, or keep it in float16 with --layer-dtype {}=fp16",
          result.name, graph.value(input).name, it->second.min, it->second.max, std::ceil(levels), result.name));
    }
  }
  return lines;
}

}  // namespace openrknn::quant
