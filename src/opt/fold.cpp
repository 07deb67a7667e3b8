// Constant folding, dead code, and nodes that do nothing.
#include <algorithm>
#include <numeric>

#include "ops/evaluate.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// A folded result may take this much more than the operands it replaces (a dequantized weight takes 4 to 8 times).
constexpr size_t kGrowthFactor = 8;
constexpr size_t kGrowthFree = size_t{4} << 20;

bool worth_folding(const Graph& graph, const Node& node) {
  size_t before = 0;
  for (const ValueId input : node.inputs) {
    if (input.valid()) before += graph.constant(input)->bytes();
  }
  size_t after = 0;
  for (const ValueId output : node.outputs) {
    if (!output.valid()) continue;
    if (!known(graph, output)) return true;  // about shapes: small
    after += static_cast<size_t>(shape_of(graph, output).elements()) * dtype_size(graph.value(output).dtype);
  }
  return after <= std::max(kGrowthFree, kGrowthFactor * before);
}

Result<bool> fold_node(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const bool about_shape = node.op == "Shape" || node.op == "Size";
  std::vector<Tensor> inputs;
  for (const ValueId input : node.inputs) {
    const Tensor* constant = graph.constant(input);
    if (input.valid() && constant == nullptr && !about_shape) return false;
    if (about_shape && !known(graph, input)) return false;
    inputs.push_back(constant != nullptr ? *constant : Tensor());
  }
  if (node.op.starts_with("Random") || node.op == "Bernoulli" || node.op == "Multinomial") return false;
  const bool is_result = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId output) { return output.valid() && graph.is_output(output); });
  // A graph output needs a node that writes it: the value is folded, an Identity stays.
  if (is_result && node.op == "Identity") return false;
  std::vector<Tensor> results;
  if (about_shape) {
    const Shape& shape = shape_of(graph, node.inputs[0]);
    if (node.op == "Size") {
      results.push_back(Tensor::scalar<int64_t>(shape.elements()));
    } else {
      const int64_t rank = shape.rank();
      const auto clamp = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
      const int64_t start = clamp(node.attributes.int_or("start", 0));
      const int64_t end = std::max(start, clamp(node.attributes.int_or("end", rank)));
      const auto dims = shape.to_vector();
      results.push_back(Tensor::ints({dims.begin() + start, dims.begin() + end}));
    }
  } else {
    if (!worth_folding(graph, node)) return false;
    auto evaluated = ops::evaluate(node.op, node.attributes, inputs, node.outputs.size());
    if (!evaluated.ok()) return false;  // no kernel for these operands: the node stays
    results = std::move(*evaluated);
  }
  Patch patch(graph);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].valid()) continue;
    ValueId folded = patch.constant(results[i], graph.value(node.outputs[i]).name);
    if (graph.is_output(node.outputs[i])) folded = patch.add("Identity", {folded});
    patch.replace(node.outputs[i], folded);
  }
  return rewriter.commit(patch);
}

bool all_equal(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [wanted](int64_t v) { return v == wanted; });
}

bool identity_perm(const Graph& graph, const Node& node) {
  const int rank = shape_of(graph, node.inputs[0]).rank();
  const auto perm = node.attributes.ints_or("perm", {});
  if (perm.empty()) return rank <= 1;
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool unread(const Graph& graph, ValueId value) {
  return !value.valid() || (graph.value(value).users.empty() && !graph.is_output(value));
}

// Whether the node hands its first operand through unchanged.
bool does_nothing(const Graph& graph, const Node& node) {
  const ValueId x = node.inputs.empty() ? ValueId{} : node.inputs[0];
  const ValueId y = node.outputs.empty() ? ValueId{} : node.outputs[0];
  if (!x.valid() || !y.valid() || graph.value(x).dtype != graph.value(y).dtype) return false;
  const std::string& op = node.op;
  if (op == "Identity" || op == "Cast") return true;
  if (!known(graph, x) || !known(graph, y) || !(shape_of(graph, x) == shape_of(graph, y))) return false;
  if (op == "Dropout") return node.outputs.size() < 2 || unread(graph, node.outputs[1]);
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Expand") return true;
  if (op == "Concat" || op == "Sum" || op == "Max" || op == "Min" || op == "Mean") return node.inputs.size() == 1;
  if (op == "Transpose") return identity_perm(graph, node);
  if (op == "Split") return node.outputs.size() == 1;
  if (op == "Slice") {
    const auto steps = ints(graph, input_of(node, 4));
    return !input_of(node, 4).valid() || (steps && all_equal(*steps, 1));
  }
  if (op == "Pad") {
    const auto pads = ints(graph, input_of(node, 1));
    return pads && all_equal(*pads, 0);
  }
  if (op == "Tile") {
    const auto repeats = ints(graph, input_of(node, 1));
    return repeats && all_equal(*repeats, 1);
  }
  if (op == "DepthToSpace" || op == "SpaceToDepth") return node.attributes.int_or("blocksize", 0) == 1;
  return false;
}

// Operands of a Concat that have no elements go, so that no task has to hold an empty tensor.
Result<bool> drop_empty_operands(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  std::vector<ValueId> kept;
  for (const ValueId x : node.inputs) {
    if (!known(graph, x)) return false;
    if (shape_of(graph, x).elements() != 0) kept.push_back(x);
  }
  if (kept.empty() || kept.size() == node.inputs.size()) return false;
  Patch patch(graph);
  patch.replace(node.outputs[0], patch.add("Concat", kept, node.attributes));
  return rewriter.commit(patch);
}

Result<bool> bypass(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!does_nothing(graph, node)) return node.op == "Concat" ? drop_empty_operands(rewriter, node) : false;
  Patch patch(graph);
  patch.replace(node.outputs[0], node.inputs[0]);
  return rewriter.commit(patch);
}

// x + 0, x - 0, x * 1, x / 1.
Result<bool> bypass_neutral(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  const bool additive = node.op == "Add" || node.op == "Sub";
  if ((!additive && node.op != "Mul" && node.op != "Div") || has_activation(node)) return false;
  if (!is_float32(graph, node.outputs[0])) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (i == 0 && (node.op == "Sub" || node.op == "Div")) continue;
    const Tensor* constant = graph.constant(node.inputs[i]);
    const ValueId x = node.inputs[1 - i];
    if (constant == nullptr || !known(graph, x) || !(shape_of(graph, x) == shape_of(graph, node.outputs[0]))) continue;
    const auto values = constant->as<float>();
    const float neutral = additive ? 0.0F : 1.0F;
    if (!std::all_of(values.begin(), values.end(), [neutral](float v) { return v == neutral; })) continue;
    Patch patch(graph);
    patch.replace(node.outputs[0], x);
    return rewriter.commit(patch);
  }
  return false;
}

}  // namespace

Result<int> fold_constant(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fold_constant", fold_node);
}
Result<int> remove_identity(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "remove_identity", bypass);
}
Result<int> remove_neutral(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "remove_neutral", bypass_neutral);
}

Result<int> remove_dead_code(Graph& graph, PassContext& context) {
  int count = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const NodeId id : graph.nodes()) {
      const auto& outputs = graph.node(id).outputs;
      const bool dead = std::all_of(outputs.begin(), outputs.end(), [&](ValueId output) {
        return !output.valid() || (graph.value(output).users.empty() && !graph.is_output(output));
      });
      std::string what = graph.node(id).name + " (" + graph.node(id).op + ")";
      if (!dead || (context.log != nullptr && !context.log->allow("remove_dead_code", what))) continue;
      graph.remove_node(id);
      if (context.log != nullptr) context.log->applied("remove_dead_code", std::move(what));
      changed = true;
      ++count;
    }
  }
  for (const ValueId id : graph.values()) {
    const Value& v = graph.value(id);
    if (v.constant && v.users.empty() && !graph.is_output(id)) graph.remove_value(id);
  }
  return count;
}

}  // namespace openrknn::opt
