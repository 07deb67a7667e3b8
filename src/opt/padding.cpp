// Padding: implicit forms become explicit, Pad nodes move into the window that follows.
#include <algorithm>
#include <limits>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// Kernel of a Conv or pool; empty for other nodes.
std::vector<int64_t> kernel_of(const Graph& graph, const Node& node) {
  if (node.op == "Conv") {
    const Shape& shape = shape_of(graph, node.inputs[1]);
    if (shape.rank() < 3) return {};
    return {shape.dims().begin() + 2, shape.dims().end()};
  }
  if (node.op == "MaxPool" || node.op == "AveragePool") return node.attributes.ints_or("kernel_shape", {});
  return {};
}

Result<bool> explicit_pads(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const std::string auto_pad = node.attributes.string_or("auto_pad", "NOTSET");
  const bool upper = auto_pad == "SAME_UPPER";
  if (!upper && auto_pad != "SAME_LOWER" && auto_pad != "VALID") return false;
  const auto kernel = kernel_of(graph, node);
  if (kernel.empty() || !known(graph, node.inputs[0]) || !known(graph, node.outputs[0])) return false;
  Attributes attributes = node.attributes;
  attributes.erase("auto_pad");
  Node bare = node;
  bare.attributes = attributes;
  bare.attributes.erase("pads");
  auto window = window_of(bare, kernel);
  if (!window) return false;
  if (auto_pad != "VALID") {
    for (size_t i = 0; i < window->rank(); ++i) {
      const int axis = static_cast<int>(i) + 2;
      const int64_t reach = (window->kernel[i] - 1) * window->dilations[i] + 1;
      const int64_t needed = (shape_of(graph, node.outputs[0])[axis] - 1) * window->strides[i] + reach;
      const int64_t total = std::max<int64_t>(0, needed - shape_of(graph, node.inputs[0])[axis]);
      window->pads_begin[i] = upper ? total / 2 : total - total / 2;
      window->pads_end[i] = total - window->pads_begin[i];
    }
  }
  store_pads(attributes, *window);
  Patch patch(graph);
  const auto outputs = patch.add_all(node.op, node.inputs, std::move(attributes), node.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].valid()) patch.replace(node.outputs[i], outputs[i]);
  }
  return rewriter.commit(patch);
}

struct SpatialPad {
  ValueId x;
  std::vector<int64_t> begin, end;
  float value = 0.0F;
};

// A Pad with one constant value, of spatial axes only, that removes nothing.
std::optional<SpatialPad> spatial_pad(const Graph& graph, const Node& node) {
  if (node.op != "Pad" || node.attributes.string_or("mode", "constant") != "constant") return std::nullopt;
  if (!is_float32(graph, node.inputs[0]) || !known(graph, node.inputs[0])) return std::nullopt;
  const int rank = shape_of(graph, node.inputs[0]).rank();
  const auto pads = ints(graph, input_of(node, 1));
  if (!pads || rank < 3) return std::nullopt;
  std::vector<int64_t> all(static_cast<size_t>(2 * rank), 0);
  std::vector<int64_t> axes;
  if (const ValueId operand = input_of(node, 3); operand.valid()) {
    const auto given = ints(graph, operand);
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size()) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normalize_axis(axes[i], rank);
    if (!axis.ok()) return std::nullopt;
    all[static_cast<size_t>(*axis)] = (*pads)[i];
    all[static_cast<size_t>(*axis + rank)] = (*pads)[i + axes.size()];
  }
  if (std::any_of(all.begin(), all.end(), [](int64_t pad) { return pad < 0; })) return std::nullopt;
  const auto at = [&](int i) { return all[static_cast<size_t>(i)]; };
  if (at(0) != 0 || at(1) != 0 || at(rank) != 0 || at(rank + 1) != 0) return std::nullopt;
  SpatialPad pad{node.inputs[0], {}, {}, 0.0F};
  for (int i = 2; i < rank; ++i) {
    pad.begin.push_back(at(i));
    pad.end.push_back(at(i + rank));
  }
  if (const ValueId value = input_of(node, 2); value.valid()) {
    const auto constant = scalar(graph, value);
    if (!constant) return std::nullopt;
    pad.value = *constant;
  }
  return pad;
}

bool never_negative(const Graph& graph, ValueId value) {
  const Node* node = producer(graph, value);
  if (node == nullptr) return false;
  const std::string kind = has_activation(*node) ? node->attributes.string_or("activation", "") : node->op;
  if (kind == "Relu" || kind == "Sigmoid" || kind == "HardSigmoid" || kind == "Softplus") return true;
  if (kind == "Clip" && has_activation(*node)) return node->attributes.float_or("activation_min", -1.0F) >= 0.0F;
  if (kind == "Clip") return scalar(graph, input_of(*node, 1)).value_or(-1.0F) >= 0.0F;
  return kind == "MaxPool" && never_negative(graph, node->inputs[0]);
}

// Whether the padding that the window itself does means the same as the Pad in front.
bool same_padding(const Graph& graph, const Node& node, const SpatialPad& pad, const Window& window) {
  if (node.op == "Conv") return pad.value == 0.0F;
  if (node.attributes.int_or("ceil_mode", 0) != 0 || node.outputs.size() != 1) return false;
  // ONNX wants the padding of a pool smaller than its kernel.
  for (size_t i = 0; i < window.rank(); ++i) {
    if (window.dilations[i] != 1 || pad.begin[i] + window.pads_begin[i] >= window.kernel[i] ||
        pad.end[i] + window.pads_end[i] >= window.kernel[i]) {
      return false;
    }
  }
  if (node.op == "AveragePool") {
    const bool counts = window.no_pads() || node.attributes.int_or("count_include_pad", 0) != 0;
    return counts && pad.value == 0.0F;
  }
  if (pad.value <= std::numeric_limits<float>::lowest()) return true;
  // Zeros never win against values that are not negative, and every window holds one of those.
  return pad.value == 0.0F && never_negative(graph, pad.x);
}

Result<bool> pad_into_window(Rewriter& rewriter, NodeId id, bool conv) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if ((node.op == "Conv") != conv) return false;
  const auto kernel = kernel_of(graph, node);
  if (kernel.empty() || !single_use(graph, node.inputs[0])) return false;
  const Node* before = producer(graph, node.inputs[0], "Pad");
  if (before == nullptr) return false;
  const auto pad = spatial_pad(graph, *before);
  auto window = window_of(node, kernel);
  if (!pad || !window || window->rank() != pad->begin.size() || !same_padding(graph, node, *pad, *window)) return false;
  for (size_t i = 0; i < window->rank(); ++i) {
    window->pads_begin[i] += pad->begin[i];
    window->pads_end[i] += pad->end[i];
  }
  Attributes attributes = node.attributes;
  store_pads(attributes, *window);
  if (node.op == "AveragePool") attributes.set("count_include_pad", 1);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = pad->x;
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add(node.op, inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

Result<bool> pad_into_conv(Rewriter& rewriter, NodeId id) { return pad_into_window(rewriter, id, true); }
Result<bool> pad_into_pool(Rewriter& rewriter, NodeId id) { return pad_into_window(rewriter, id, false); }

}  // namespace

Result<int> make_padding_explicit(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "make_padding_explicit", explicit_pads);
}
Result<int> fuse_pad_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_pad_into_conv", pad_into_conv);
}
Result<int> fuse_pad_into_pool(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_pad_into_pool", pad_into_pool);
}

}  // namespace openrknn::opt
