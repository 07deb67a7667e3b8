// Per-channel scales and shifts (BatchNormalization, Mul, Div, Add, Sub) move into the convolution they stand behind or
// in front of: conv(x) * s + t has weights w * s and bias b * s + t.
#include <cmath>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

struct Affine {
  ValueId x;                         // the operand that is scaled
  std::vector<double> scale, shift;  // one per channel (axis 1)
};

std::optional<Affine> batchnorm_affine(const Graph& graph, const Node& node) {
  if (node.op != "BatchNormalization" || !is_float32(graph, node.inputs[0]) || !known(graph, node.inputs[0])) {
    return std::nullopt;
  }
  const Shape& shape = shape_of(graph, node.inputs[0]);
  if (shape.rank() < 2 || node.attributes.int_or("training_mode", 0) != 0) return std::nullopt;
  const auto channels = static_cast<size_t>(shape[1]);
  std::vector<double> operands[4];
  for (size_t i = 0; i < 4; ++i) {
    const Tensor* tensor = graph.constant(input_of(node, i + 1));
    if (tensor == nullptr || tensor->dtype() != DType::kFloat32) return std::nullopt;
    operands[i] = to_doubles(tensor->view());
    if (operands[i].size() != channels) return std::nullopt;
  }
  const double epsilon = static_cast<double>(node.attributes.float_or("epsilon", 1e-5F));
  Affine affine{node.inputs[0], std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    affine.scale[c] = operands[0][c] / std::sqrt(operands[3][c] + epsilon);
    affine.shift[c] = operands[1][c] - operands[2][c] * affine.scale[c];
  }
  return affine;
}

// x op c, c op x with a constant that varies over channels only.
std::optional<Affine> elementwise_affine(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2 || has_activation(node) || !is_float32(graph, node.outputs[0])) return std::nullopt;
  if (!known(graph, node.outputs[0]) || shape_of(graph, node.outputs[0]).rank() < 2) return std::nullopt;
  const Shape& shape = shape_of(graph, node.outputs[0]);
  const bool constant_first = graph.constant(node.inputs[0]) != nullptr;
  const ValueId x = node.inputs[constant_first ? 1 : 0];
  if (graph.constant(x) != nullptr || !(shape_of(graph, x) == shape)) return std::nullopt;
  auto c = along_axis(graph, node.inputs[constant_first ? 0 : 1], shape, 1);
  if (!c) return std::nullopt;
  Affine affine{x, std::vector<double>(c->size(), 1.0), std::vector<double>(c->size(), 0.0)};
  if (node.op == "Add") {
    affine.shift = *c;
  } else if (node.op == "Mul") {
    affine.scale = *c;
  } else if (node.op == "Sub") {
    affine.shift = *c;
    for (double& v : constant_first ? affine.scale : affine.shift) v = -v;
  } else if (node.op == "Div" && !constant_first) {
    for (size_t i = 0; i < c->size(); ++i) affine.scale[i] = 1.0 / (*c)[i];
  } else {
    return std::nullopt;
  }
  for (const double s : affine.scale) {
    if (!std::isfinite(s)) return std::nullopt;
  }
  return affine;
}

bool scales(const Node& node) { return node.op == "Mul" || node.op == "Div"; }
bool shifts(const Node& node) { return node.op == "Add" || node.op == "Sub"; }

Tensor scaled_outputs(const PlainConv& conv, const std::vector<double>& scale) {
  Tensor weights = conv.weights->reshaped(conv.weights->shape());
  const Shape& shape = weights.shape();
  const auto data = weights.mutable_as<float>();
  const int64_t inner = shape.elements(2, shape.rank());
  const int64_t columns = shape[1];
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t channel = conv.transposed ? row / (conv.in_channels / conv.group) * columns + column : row;
      float* at = data.data() + (row * columns + column) * inner;
      for (int64_t i = 0; i < inner; ++i) {
        at[i] = static_cast<float>(static_cast<double>(at[i]) * scale[static_cast<size_t>(channel)]);
      }
    }
  }
  return weights;
}

std::string constant_name(const Graph& graph, const Node& node, size_t slot, const char* suffix) {
  const ValueId id = input_of(node, slot);
  return id.valid() ? graph.value(id).name : graph.value(node.outputs[0]).name + suffix;
}

// The Reshape [N, C, 1, ..] -> [N, C, ..] of a value that only adds or drops axes of extent 1 behind the channels.
const Node* channel_keeping_reshape(const Graph& graph, ValueId value) {
  const Node* reshape = producer(graph, value, "Reshape");
  if (reshape == nullptr || !single_use(graph, value) || !known(graph, reshape->inputs[0])) return nullptr;
  const Shape& from = shape_of(graph, reshape->inputs[0]);
  const Shape& to = shape_of(graph, value);
  if (from.rank() < 2 || to.rank() < 2 || from[0] != to[0] || from[1] != to[1]) return nullptr;
  const bool only_units = from.elements(2, from.rank()) == 1 && to.elements(2, to.rank()) == 1;
  return only_units ? reshape : nullptr;
}

Result<bool> fuse_behind(Rewriter& rewriter, const Node& node, const std::optional<Affine>& affine) {
  const Graph& graph = rewriter.graph();
  if (!affine) return false;
  const Node* reshape = channel_keeping_reshape(graph, affine->x);
  const auto conv = plain_conv_before(graph, reshape == nullptr ? affine->x : reshape->inputs[0]);
  if (!conv) return false;
  const Node& before = graph.node(conv->id);
  std::vector<double> bias = conv->bias;
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine->scale[c] + affine->shift[c];
  Patch patch(graph);
  const ValueId w = patch.constant(scaled_outputs(*conv, affine->scale), constant_name(graph, before, 1, "_weights"));
  const ValueId b = patch.constant(floats(Shape{conv->out_channels}, bias), constant_name(graph, before, 2, "_bias"));
  const ValueId y = patch.add(before.op, {before.inputs[0], w, b}, before.attributes);
  patch.replace(node.outputs[0], patch.reshape(y, shape_of(graph, node.outputs[0])));
  return rewriter.commit(patch);
}

Result<bool> batchnorm_into_conv(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.graph().node(id);
  return fuse_behind(rewriter, node, batchnorm_affine(rewriter.graph(), node));
}

Result<bool> add_into_conv(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.graph().node(id);
  if (!shifts(node)) return false;
  return fuse_behind(rewriter, node, elementwise_affine(rewriter.graph(), node));
}

Result<bool> mul_into_conv(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.graph().node(id);
  if (!scales(node)) return false;
  return fuse_behind(rewriter, node, elementwise_affine(rewriter.graph(), node));
}

// conv(x * s + t): weights w * s along the input channels, bias b + sum w * t; a shift needs a convolution without
// padding, since the padding stands for zeros of the shifted input.
Result<bool> fuse_in_front(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const auto conv = plain_conv(graph, id);
  if (!conv || conv->transposed) return false;
  const Node& node = graph.node(id);
  const Node* before = producer(graph, node.inputs[0]);
  if (before == nullptr || !single_use(graph, node.inputs[0])) return false;
  const bool normalizes = before->op == "BatchNormalization";
  if (!normalizes && !scales(*before) && !shifts(*before)) return false;
  const auto affine = normalizes ? batchnorm_affine(graph, *before) : elementwise_affine(graph, *before);
  if (!affine) return false;
  const Shape& shape = conv->weights->shape();
  const auto window = window_of(node, {shape.dims().begin() + 2, shape.dims().end()});
  bool shifted = false;
  for (const double t : affine->shift) shifted |= t != 0.0;
  if (shifted && (!window || !window->no_pads())) return false;

  Tensor weights = conv->weights->reshaped(shape);
  const auto data = weights.mutable_as<float>();
  std::vector<double> bias = conv->bias;
  const int64_t inner = shape.elements(2, shape.rank());
  for (int64_t m = 0; m < shape[0]; ++m) {
    const int64_t first = m / (conv->out_channels / conv->group) * shape[1];
    for (int64_t c = 0; c < shape[1]; ++c) {
      const auto channel = static_cast<size_t>(first + c);
      float* at = data.data() + (m * shape[1] + c) * inner;
      for (int64_t i = 0; i < inner; ++i) {
        bias[static_cast<size_t>(m)] += static_cast<double>(at[i]) * affine->shift[channel];
        at[i] = static_cast<float>(static_cast<double>(at[i]) * affine->scale[channel]);
      }
    }
  }
  Patch patch(graph);
  std::vector<ValueId> inputs{affine->x, patch.constant(std::move(weights), constant_name(graph, node, 1, "_weights"))};
  if (shifted || input_of(node, 2).valid()) {
    inputs.push_back(patch.constant(floats(Shape{conv->out_channels}, bias), constant_name(graph, node, 2, "_bias")));
  }
  patch.replace(node.outputs[0], patch.add("Conv", inputs, node.attributes));
  return rewriter.commit(patch);
}

// x * scale + shift as a depthwise 1x1 convolution.
Result<bool> depthwise(Rewriter& rewriter, ValueId result, const Affine& affine, const std::string& scale_name,
                       const std::string& shift_name) {
  const Graph& graph = rewriter.graph();
  if (!rewriter.capabilities().lower_to_conv || !known(graph, affine.x)) return false;
  const Shape& shape = shape_of(graph, affine.x);
  if ((shape.rank() != 3 && shape.rank() != 4) || shape.elements() == 0) return false;
  const std::vector<int64_t> ones(static_cast<size_t>(shape.rank() - 2), 1);
  const Shape weights = shape.rank() == 3 ? Shape{shape[1], 1, 1} : Shape{shape[1], 1, 1, 1};
  Patch patch(graph);
  const ValueId w = patch.constant(floats(weights, affine.scale), scale_name);
  const ValueId b = patch.constant(floats(Shape{shape[1]}, affine.shift), shift_name);
  patch.replace(result, patch.add("Conv", {affine.x, w, b}, conv_attributes(ones, ones, shape[1])));
  return rewriter.commit(patch);
}

// A BatchNormalization that nothing absorbs.
Result<bool> batchnorm_to_conv(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const auto affine = batchnorm_affine(graph, node);
  if (!affine) return false;
  return depthwise(rewriter, node.outputs[0], *affine, constant_name(graph, node, 1, "_weights"),
                   constant_name(graph, node, 2, "_bias"));
}

// A factor and a summand that nothing absorbs: one task instead of two.
Result<bool> affine_to_conv(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!shifts(node)) return false;
  auto outer = elementwise_affine(graph, node);
  if (!outer || !single_use(graph, outer->x)) return false;
  const Node* before = producer(graph, outer->x);
  if (before == nullptr || !scales(*before)) return false;
  const auto inner = elementwise_affine(graph, *before);
  if (!inner) return false;
  outer->x = inner->x;
  for (size_t c = 0; c < outer->scale.size(); ++c) outer->scale[c] *= inner->scale[c];
  const std::string& name = graph.value(node.outputs[0]).name;
  return depthwise(rewriter, node.outputs[0], *outer, name + "_weights", name + "_bias");
}

}  // namespace

Result<int> fuse_batchnorm_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_batchnorm_into_conv", batchnorm_into_conv);
}
Result<int> fuse_add_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_add_into_conv", add_into_conv);
}
Result<int> fuse_mul_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_mul_into_conv", mul_into_conv);
}
Result<int> fuse_scale_before_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_scale_before_conv", fuse_in_front);
}
Result<int> convert_affine_to_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_affine_to_conv", affine_to_conv);
}
Result<int> convert_batchnorm_to_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_batchnorm_to_conv", batchnorm_to_conv);
}

}  // namespace openrknn::opt
