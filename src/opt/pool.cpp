// Pools and means over windows that the NPU does not have, as chains of smaller ones.
#include <algorithm>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// Kernels (each equal to its stride) whose product is at least `extent`; empty for extent 1. When the extent has a
// prime factor above `limit`, the next larger product is taken: the rest is padding, less than the first kernel.
std::vector<int64_t> factors(int64_t extent, int64_t limit, bool exact) {
  if (limit < 2) return {};
  for (int64_t product = extent;; ++product) {
    std::vector<int64_t> kernels;
    int64_t rest = product;
    for (int64_t f = limit; f >= 2; --f) {
      for (; rest % f == 0; rest /= f) kernels.push_back(f);
    }
    if (rest == 1) return kernels;
    if (exact) return {};
  }
}

struct Stage {
  std::vector<int64_t> kernel, pads_end;
};

// The chain that reduces each extent to 1; extents of axes that stay are 1. Stages with fewer factors are filled by 1.
std::vector<Stage> chain(const std::vector<int64_t>& extents, int64_t limit, bool exact) {
  std::vector<Stage> stages;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const auto kernels = factors(extents[axis], limit, exact);
    if (kernels.empty() && extents[axis] != 1) return {};
    int64_t product = 1;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (stages.size() <= i) {
        stages.push_back({std::vector<int64_t>(extents.size(), 1), std::vector<int64_t>(extents.size(), 0)});
      }
      stages[i].kernel[axis] = kernels[i];
      product *= kernels[i];
    }
    if (!kernels.empty()) stages[0].pads_end[axis] = product - extents[axis];
  }
  return stages;
}

int64_t product_of(const std::vector<int64_t>& values) {
  int64_t product = 1;
  for (const int64_t v : values) product *= v;
  return product;
}

Attributes stage_attributes(const Stage& stage) {
  Attributes attributes;
  attributes.set("kernel_shape", stage.kernel);
  attributes.set("strides", stage.kernel);
  std::vector<int64_t> pads(stage.kernel.size(), 0);
  pads.insert(pads.end(), stage.pads_end.begin(), stage.pads_end.end());
  attributes.set("pads", std::move(pads));
  return attributes;
}

Shape depthwise_shape(int64_t channels, const std::vector<int64_t>& kernel) {
  return kernel.size() == 1 ? Shape{channels, 1, kernel[0]} : Shape{channels, 1, kernel[0], kernel[1]};
}

// Depthwise convolutions that sum to the mean: zero padding adds nothing, so the last stage makes good for it.
ValueId mean_by_convolutions(Patch& patch, ValueId x, const std::vector<Stage>& stages, int64_t elements,
                             const std::string& name) {
  const int64_t channels = patch.shape(x)[1];
  double left = 1.0 / static_cast<double>(elements);
  for (size_t i = 0; i < stages.size(); ++i) {
    const double weight = i + 1 == stages.size() ? left : 1.0 / static_cast<double>(product_of(stages[i].kernel));
    left /= weight;
    Attributes attributes = stage_attributes(stages[i]);
    attributes.set("dilations", std::vector<int64_t>(stages[i].kernel.size(), 1));
    attributes.set("group", Attribute(channels));
    const ValueId w = patch.constant(filled(depthwise_shape(channels, stages[i].kernel), static_cast<float>(weight)),
                                     name + "_mean_weights");
    x = patch.add("Conv", {x, w}, std::move(attributes));
  }
  return x;
}

// A reduction over spatial axes only: extents of the reduced axes, 1 for the others. nullopt for other nodes.
std::optional<std::vector<int64_t>> spatial_reduction(const Graph& graph, const Node& node, std::string_view reduce,
                                                      std::string_view global) {
  if (node.op != reduce && node.op != global) return std::nullopt;
  const ValueId x = node.inputs[0];
  if (!known(graph, x) || !known(graph, node.outputs[0]) || !is_float32(graph, x)) return std::nullopt;
  const Shape& shape = shape_of(graph, x);
  if ((shape.rank() != 3 && shape.rank() != 4) || shape.elements() == 0) return std::nullopt;
  std::vector<int64_t> extents(static_cast<size_t>(shape.rank() - 2), 1);
  if (node.op == global) {
    for (int i = 2; i < shape.rank(); ++i) extents[static_cast<size_t>(i - 2)] = shape[i];
    return extents;
  }
  const auto axes = axes_of(graph, node, 1);
  if (!axes || axes->empty()) return std::nullopt;
  for (const int axis : *axes) {
    if (axis < 2) return std::nullopt;
    extents[static_cast<size_t>(axis - 2)] = shape[axis];
  }
  return extents;
}

bool within(const std::vector<int64_t>& extents, int64_t limit) {
  return std::all_of(extents.begin(), extents.end(), [limit](int64_t e) { return e <= limit; });
}

Attributes whole_window(const std::vector<int64_t>& extents) {
  Attributes attributes;
  attributes.set("kernel_shape", extents);
  attributes.set("strides", std::vector<int64_t>(extents.size(), 1));
  attributes.set("pads", std::vector<int64_t>(2 * extents.size(), 0));
  return attributes;
}

Result<bool> global_mean(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const auto extents = spatial_reduction(graph, node, "ReduceMean", "GlobalAveragePool");
  if (!extents || !rewriter.capabilities().lower_to_conv) return false;
  const int64_t elements = product_of(*extents);
  Patch patch(graph);
  ValueId y = node.inputs[0];
  if (elements > 1 && within(*extents, rewriter.capabilities().pool_kernel_max)) {
    y = patch.add("AveragePool", {y}, whole_window(*extents));
  } else if (elements > 1) {
    const auto stages = chain(*extents, rewriter.capabilities().depthwise_kernel_max, false);
    if (stages.empty()) return false;
    y = mean_by_convolutions(patch, y, stages, elements, graph.value(node.outputs[0]).name);
  }
  patch.replace(node.outputs[0], patch.reshape(y, shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

Result<bool> global_max(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const auto extents = spatial_reduction(graph, node, "ReduceMax", "GlobalMaxPool");
  if (!extents) return false;
  Patch patch(graph);
  ValueId y = node.inputs[0];
  if (product_of(*extents) > 1) {
    const auto stages = chain(*extents, rewriter.capabilities().pool_kernel_max, false);
    if (stages.empty()) return false;
    for (const Stage& stage : stages) y = patch.add("MaxPool", {y}, stage_attributes(stage));
  }
  patch.replace(node.outputs[0], patch.reshape(y, shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

// Output extents that the window gives without rounding up.
bool rounds_down(const Graph& graph, const Node& node, const Window& window) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t room = shape_of(graph, node.inputs[0])[axis] + window.pads_begin[i] + window.pads_end[i] -
                         (window.kernel[i] - 1) * window.dilations[i] - 1;
    if (room < 0 || room / window.strides[i] + 1 != shape_of(graph, node.outputs[0])[axis]) return false;
  }
  return true;
}

std::optional<Window> pool_window(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || !known(graph, node.inputs[0]) || !known(graph, node.outputs[0])) return std::nullopt;
  if (!is_float32(graph, node.inputs[0])) return std::nullopt;
  auto window = window_of(node, node.attributes.ints_or("kernel_shape", {}));
  if (!window || window->rank() > 2 || shape_of(graph, node.inputs[0]).rank() != static_cast<int>(window->rank()) + 2) {
    return std::nullopt;
  }
  if (!rounds_down(graph, node, *window)) return std::nullopt;
  return window;
}

// AveragePool beyond the pool's limit: one depthwise convolution, or a chain where the windows do not overlap.
Result<bool> big_average(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const Capabilities& can = rewriter.capabilities();
  if (node.op != "AveragePool" || !can.lower_to_conv) return false;
  const auto window = pool_window(graph, node);
  if (!window || within(window->kernel, can.pool_kernel_max)) return false;
  const bool counts = window->no_pads() || node.attributes.int_or("count_include_pad", 0) != 0;
  if (!counts || !std::all_of(window->dilations.begin(), window->dilations.end(), [](int64_t d) { return d == 1; })) {
    return false;
  }
  const std::string& name = graph.value(node.outputs[0]).name;
  const int64_t elements = product_of(window->kernel);
  const int64_t channels = shape_of(graph, node.inputs[0])[1];
  Patch patch(graph);
  ValueId y = node.inputs[0];
  if (within(window->kernel, can.depthwise_kernel_max)) {
    Attributes attributes = conv_attributes(window->kernel, window->strides, channels);
    store_pads(attributes, *window);
    const Tensor weights = filled(depthwise_shape(channels, window->kernel), 1.0F / static_cast<float>(elements));
    y = patch.add("Conv", {y, patch.constant(weights, name + "_mean_weights")}, std::move(attributes));
  } else {
    const auto dims = shape_of(graph, y).dims();
    const bool whole = std::equal(window->kernel.begin(), window->kernel.end(), dims.begin() + 2);
    if (!window->no_pads() || (!whole && window->strides != window->kernel)) return false;
    const auto stages = chain(window->kernel, can.depthwise_kernel_max, !whole);
    if (stages.empty()) return false;
    y = mean_by_convolutions(patch, y, stages, elements, name);
  }
  patch.replace(node.outputs[0], y);
  return rewriter.commit(patch);
}

// A maximum over k is a maximum over k1, step by step, and then one over k - k1 + 1 of those.
Result<bool> big_max(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const int64_t limit = rewriter.capabilities().pool_kernel_max;
  if (node.op != "MaxPool" || node.outputs.size() != 1 || limit < 2) return false;
  const auto window = pool_window(graph, node);
  // Beyond three steps the work is larger than what is saved.
  if (!window || within(window->kernel, limit) || !within(window->kernel, 3 * limit - 2)) return false;
  if (!std::all_of(window->dilations.begin(), window->dilations.end(), [](int64_t d) { return d == 1; })) return false;
  Window first = *window, second = *window;
  for (size_t i = 0; i < window->rank(); ++i) {
    if (window->pads_begin[i] >= window->kernel[i] || window->pads_end[i] >= window->kernel[i]) return false;
    first.kernel[i] = std::min(window->kernel[i], limit);
    first.strides[i] = 1;
    second.kernel[i] = window->kernel[i] - first.kernel[i] + 1;
    first.pads_begin[i] = std::min(window->pads_begin[i], first.kernel[i] - 1);
    first.pads_end[i] = std::min(window->pads_end[i], first.kernel[i] - 1);
    second.pads_begin[i] -= first.pads_begin[i];
    second.pads_end[i] -= first.pads_end[i];
  }
  const auto attributes = [](const Window& w) {
    Attributes result;
    result.set("kernel_shape", w.kernel);
    result.set("strides", w.strides);
    store_pads(result, w);
    return result;
  };
  Patch patch(graph);
  const ValueId y = patch.add("MaxPool", {node.inputs[0]}, attributes(first));
  patch.replace(node.outputs[0], patch.add("MaxPool", {y}, attributes(second)));
  return rewriter.commit(patch);
}

// Sum or mean over the channels: a convolution with one output channel.
Result<bool> channel_reduction(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if ((node.op != "ReduceMean" && node.op != "ReduceSum") || !rewriter.capabilities().lower_to_conv) return false;
  const ValueId x = node.inputs[0];
  if (!known(graph, x) || !known(graph, node.outputs[0]) || !is_float32(graph, x)) return false;
  const Shape& shape = shape_of(graph, x);
  const auto axes = axes_of(graph, node, 1);
  if ((shape.rank() != 3 && shape.rank() != 4) || !axes || *axes != std::vector<int>{1}) return false;
  if (shape.elements() == 0) return false;
  const std::vector<int64_t> ones(static_cast<size_t>(shape.rank() - 2), 1);
  const float weight = node.op == "ReduceSum" ? 1.0F : 1.0F / static_cast<float>(shape[1]);
  const Shape weights = ones.size() == 1 ? Shape{1, shape[1], 1} : Shape{1, shape[1], 1, 1};
  Patch patch(graph);
  const ValueId w = patch.constant(filled(weights, weight), graph.value(node.outputs[0]).name + "_weights");
  const ValueId y = patch.add("Conv", {x, w}, conv_attributes(ones, ones, 1));
  patch.replace(node.outputs[0], patch.reshape(y, shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_global_average(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_global_average", global_mean);
}
Result<int> convert_global_max(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_global_max", global_max);
}
Result<int> split_average_pool(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "split_average_pool", big_average);
}
Result<int> split_max_pool(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "split_max_pool", big_max);
}
Result<int> convert_channel_reduce_to_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_channel_reduce_to_conv", channel_reduction);
}

}  // namespace openrknn::opt
