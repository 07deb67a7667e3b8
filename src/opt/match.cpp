#include "opt/match.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace openrknn::opt {

Result<bool> Rewriter::commit(const Patch& patch) {
  OPENRKNN_TRY(const bool fits, patch.applicable());
  if (!fits) return false;
  std::string what = patch.describe();
  if (!context_.log->allow(rule_, what)) return false;
  patch.apply(graph_);
  context_.log->applied(rule_, std::move(what));
  return true;
}

Result<int> apply_rule(Graph& graph, PassContext& context, std::string_view name, Rule rule, Visit visit) {
  RewriteLog own;
  if (context.log == nullptr) context.log = &own;
  Rewriter rewriter(graph, context, name);
  int count = 0;
  Result<int> outcome = 0;
  for (bool changed = true; changed && outcome.ok();) {
    changed = false;
    auto order = graph.topological_order();
    if (!order.ok()) return order.error();
    if (visit == Visit::kBackward) std::reverse(order->begin(), order->end());
    for (const NodeId id : *order) {
      if (!graph.node(id).alive) continue;
      const auto rewritten = rule(rewriter, id);
      if (!rewritten.ok()) {
        outcome = rewritten.error();
        break;
      }
      if (*rewritten) ++count;
      changed |= *rewritten;
    }
  }
  if (context.log == &own) context.log = nullptr;
  if (outcome.ok()) outcome = count;
  return outcome;
}

const Node* producer(const Graph& graph, ValueId value) {
  if (!value.valid() || !graph.value(value).producer.valid()) return nullptr;
  return &graph.node(graph.value(value).producer);
}

const Node* producer(const Graph& graph, ValueId value, std::string_view op) {
  const Node* node = producer(graph, value);
  return node != nullptr && node->op == op ? node : nullptr;
}

NodeId only_reader(const Graph& graph, ValueId value) {
  const auto use = graph.only_use(value);
  return use ? use->node : NodeId{};
}

bool single_use(const Graph& graph, ValueId value) { return graph.only_use(value).has_value(); }

ValueId input_of(const Node& node, size_t slot) { return slot < node.inputs.size() ? node.inputs[slot] : ValueId{}; }

bool known(const Graph& graph, ValueId value) { return value.valid() && graph.value(value).shape.has_value(); }

const Shape& shape_of(const Graph& graph, ValueId value) {
  static const Shape kNone;
  return known(graph, value) ? *graph.value(value).shape : kNone;
}

bool is_float32(const Graph& graph, ValueId value) {
  return value.valid() && graph.value(value).dtype == DType::kFloat32;
}

std::optional<float> scalar(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.constant(value);
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32 || tensor->elements() != 1) return std::nullopt;
  return tensor->as<float>()[0];
}

std::optional<std::vector<int64_t>> ints(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.constant(value);
  if (tensor == nullptr || !is_integer(tensor->dtype())) return std::nullopt;
  return to_ints(tensor->view());
}

std::optional<std::vector<double>> along_axis(const Graph& graph, ValueId constant, const Shape& result, int axis) {
  const Tensor* tensor = graph.constant(constant);
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32) return std::nullopt;
  const Shape& shape = tensor->shape();
  if (shape.rank() > result.rank()) return std::nullopt;
  for (int i = 0; i < shape.rank(); ++i) {
    const int at = i + result.rank() - shape.rank();
    if (shape[i] != 1 && (at != axis || shape[i] != result[at])) return std::nullopt;
  }
  std::vector<double> values = to_doubles(tensor->view());
  if (values.size() == 1) values.resize(static_cast<size_t>(result[axis]), values[0]);
  if (values.size() != static_cast<size_t>(result[axis])) return std::nullopt;
  return values;
}

std::optional<std::vector<int>> axes_of(const Graph& graph, const Node& node, size_t slot) {
  const int rank = shape_of(graph, node.inputs[0]).rank();
  std::vector<int64_t> given;
  if (const ValueId operand = input_of(node, slot); operand.valid()) {
    const auto values = ints(graph, operand);
    if (!values) return std::nullopt;
    given = *values;
  }
  if (given.empty() && node.attributes.int_or("noop_with_empty_axes", 0) != 0) return std::vector<int>{};
  std::set<int> axes;
  for (const int64_t axis : given) {
    const auto normal = normalize_axis(axis, rank);
    if (!normal.ok()) return std::nullopt;
    axes.insert(*normal);
  }
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) axes.insert(i);
  }
  return std::vector<int>(axes.begin(), axes.end());
}

bool has_activation(const Node& node) { return !node.attributes.string_or("activation", "").empty(); }

bool Window::no_pads() const {
  const auto zero = [](int64_t pad) { return pad == 0; };
  return std::all_of(pads_begin.begin(), pads_begin.end(), zero) && std::all_of(pads_end.begin(), pads_end.end(), zero);
}

bool Window::pointwise() const {
  const auto one = [](int64_t extent) { return extent == 1; };
  return no_pads() && std::all_of(kernel.begin(), kernel.end(), one) &&
         std::all_of(strides.begin(), strides.end(), one);
}

std::optional<Window> window_of(const Node& node, std::vector<int64_t> kernel) {
  const std::string auto_pad = node.attributes.string_or("auto_pad", "NOTSET");
  if (!auto_pad.empty() && auto_pad != "NOTSET" && auto_pad != "VALID") return std::nullopt;
  Window window;
  const size_t rank = kernel.size();
  window.kernel = std::move(kernel);
  window.strides = node.attributes.ints_or("strides", std::vector<int64_t>(rank, 1));
  window.dilations = node.attributes.ints_or("dilations", std::vector<int64_t>(rank, 1));
  auto pads = node.attributes.ints_or("pads", std::vector<int64_t>(2 * rank, 0));
  if (auto_pad == "VALID") pads.assign(2 * rank, 0);
  if (rank == 0 || window.strides.size() != rank || window.dilations.size() != rank || pads.size() != 2 * rank) {
    return std::nullopt;
  }
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pads_begin.assign(pads.begin(), middle);
  window.pads_end.assign(middle, pads.end());
  return window;
}

void store_pads(Attributes& attributes, const Window& window) {
  std::vector<int64_t> pads = window.pads_begin;
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  attributes.erase("auto_pad");
  attributes.set("pads", std::move(pads));
}

std::optional<PlainConv> plain_conv(const Graph& graph, NodeId id) {
  if (!id.valid()) return std::nullopt;
  const Node& node = graph.node(id);
  PlainConv conv;
  conv.id = id;
  conv.transposed = node.op == "ConvTranspose";
  if (!conv.transposed && node.op != "Conv") return std::nullopt;
  if (has_activation(node) || input_of(node, 3).valid() || input_of(node, 4).valid()) return std::nullopt;
  const ValueId x = node.inputs[0];
  const ValueId y = node.outputs[0];
  if (!known(graph, x) || !known(graph, y) || !is_float32(graph, x)) return std::nullopt;
  conv.weights = graph.constant(node.inputs[1]);
  if (conv.weights == nullptr || conv.weights->dtype() != DType::kFloat32) return std::nullopt;
  conv.group = node.attributes.int_or("group", 1);
  conv.in_channels = shape_of(graph, x)[1];
  conv.out_channels = shape_of(graph, y)[1];
  conv.bias.assign(static_cast<size_t>(conv.out_channels), 0.0);
  if (const ValueId b = input_of(node, 2); b.valid()) {
    const Tensor* bias = graph.constant(b);
    if (bias == nullptr || bias->dtype() != DType::kFloat32 || bias->elements() != conv.out_channels)
      return std::nullopt;
    conv.bias = to_doubles(bias->view());
  }
  return conv;
}

std::optional<PlainConv> plain_conv_before(const Graph& graph, ValueId value) {
  if (!value.valid() || !single_use(graph, value)) return std::nullopt;
  return plain_conv(graph, graph.value(value).producer);
}

Attributes conv_attributes(const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides, int64_t group) {
  Attributes attributes;
  attributes.set("kernel_shape", kernel);
  attributes.set("strides", strides);
  attributes.set("dilations", std::vector<int64_t>(kernel.size(), 1));
  attributes.set("pads", std::vector<int64_t>(2 * kernel.size(), 0));
  attributes.set("group", Attribute(group));
  return attributes;
}

Tensor floats(const Shape& shape, const std::vector<double>& values) {
  Tensor tensor(DType::kFloat32, shape);
  const auto out = tensor.mutable_as<float>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  return tensor;
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFloat32, shape);
  std::ranges::fill(tensor.mutable_as<float>(), value);
  return tensor;
}

ValueId squared_operand(const Graph& graph, ValueId value) {
  const Node* node = producer(graph, value);
  if (node == nullptr || has_activation(*node)) return {};
  if (node->op == "Mul" && node->inputs[0] == node->inputs[1]) return node->inputs[0];
  if (node->op == "Pow" && scalar(graph, node->inputs[1]) == 2.0F) return node->inputs[0];
  return {};
}

}  // namespace openrknn::opt
