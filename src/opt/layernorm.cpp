// LayerNormalization spelled as mean, difference, mean of squares, root and quotient.
#include <algorithm>
#include <cmath>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// ReduceMean over the last axes, kept: its operand and the first of the axes.
struct TailMean {
  ValueId x;
  int axis = 0;
};
std::optional<TailMean> tail_mean(const Graph& graph, ValueId value) {
  const Node* node = producer(graph, value, "ReduceMean");
  if (node == nullptr || node->attributes.int_or("keepdims", 1) == 0 || !known(graph, node->inputs[0]))
    return std::nullopt;
  const auto axes = axes_of(graph, *node, 1);
  const int rank = shape_of(graph, node->inputs[0]).rank();
  if (!axes || axes->empty()) return std::nullopt;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<int>(axes->size() - i)) return std::nullopt;
  }
  return TailMean{node->inputs[0], axes->front()};
}

// x - mean(x): x and the first axis.
std::optional<TailMean> centred(const Graph& graph, ValueId value) {
  const Node* node = producer(graph, value, "Sub");
  if (node == nullptr || has_activation(*node)) return std::nullopt;
  const auto mean = tail_mean(graph, node->inputs[1]);
  if (!mean || mean->x != node->inputs[0]) return std::nullopt;
  return mean;
}

struct Core {
  ValueId x;
  int axis = 0;
  float epsilon = 0.0F;
};

// sqrt(mean(square(x - mean(x))) + epsilon).
std::optional<Core> deviation(const Graph& graph, ValueId value) {
  const Node* root = producer(graph, value, "Sqrt");
  const Node* add = root == nullptr ? nullptr : producer(graph, root->inputs[0], "Add");
  if (add == nullptr || has_activation(*add)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto epsilon = scalar(graph, add->inputs[1 - i]);
    const auto variance = tail_mean(graph, add->inputs[i]);
    if (!epsilon || !variance) continue;
    const ValueId difference = squared_operand(graph, variance->x);
    if (!difference.valid()) continue;
    const auto centre = centred(graph, difference);
    if (centre && centre->axis == variance->axis) return Core{centre->x, centre->axis, *epsilon};
  }
  return std::nullopt;
}

// A constant of exactly the normalized shape, leading ones aside.
std::optional<Tensor> of_shape(const Graph& graph, ValueId value, const Shape& wanted) {
  const Tensor* tensor = graph.constant(value);
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32 || tensor->elements() != wanted.elements())
    return std::nullopt;
  const int extra = tensor->shape().rank() - wanted.rank();
  for (int i = 0; i < tensor->shape().rank(); ++i) {
    if (i < extra ? tensor->shape()[i] != 1 : extra < 0 || tensor->shape()[i] != wanted[i - extra]) return std::nullopt;
  }
  return tensor->reshaped(wanted);
}

// The constant that the only reader of `result` applies by `op`; `result` moves behind that reader.
std::optional<Tensor> following(const Graph& graph, ValueId& result, std::string_view op, const Shape& wanted) {
  const NodeId reader = only_reader(graph, result);
  if (!reader.valid() || graph.node(reader).op != op || has_activation(graph.node(reader))) return std::nullopt;
  const Node& node = graph.node(reader);
  auto tensor = of_shape(graph, node.inputs[node.inputs[0] == result ? 1 : 0], wanted);
  if (tensor) result = node.outputs[0];
  return tensor;
}

Result<bool> match(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Div" || has_activation(node) || !is_float32(graph, node.outputs[0])) return false;
  const auto centre = centred(graph, node.inputs[0]);
  const auto core = deviation(graph, node.inputs[1]);
  if (!centre || !core || centre->x != core->x || centre->axis != core->axis) return false;
  const Shape& shape = shape_of(graph, core->x);
  const auto normalized = Shape::make(shape.dims().subspan(static_cast<size_t>(core->axis)));
  if (!normalized.ok() || normalized->elements() == 0) return false;
  ValueId result = node.outputs[0];
  const std::string name = graph.value(result).name;
  const auto scale = following(graph, result, "Mul", *normalized);
  const auto bias = following(graph, result, "Add", *normalized);
  Attributes attributes;
  attributes.set("axis", Attribute(int64_t{core->axis - shape.rank()}));
  attributes.set("epsilon", Attribute(core->epsilon));
  Patch patch(graph);
  std::vector<ValueId> inputs{core->x, patch.constant(scale.value_or(filled(*normalized, 1.0F)), name + "_scale")};
  if (bias) inputs.push_back(patch.constant(*bias, name + "_bias"));
  patch.replace(result, patch.add("LayerNormalization", inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> fuse_layernorm(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_layernorm", match);
}

}  // namespace openrknn::opt
