#include "ops/registry.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "kernels/cpu/registry.hpp"
#include "ops/evaluate.hpp"

namespace openrknn::ops {

#define FAMILY(name) void register_##name(Registry&);
#include "ops_families.inc"
#undef FAMILY

namespace {

bool kind_matches(const Attribute& value, AttrKind kind) { return static_cast<size_t>(kind) == value.index(); }

std::string_view kind_name(size_t index) {
  constexpr std::string_view kNames[] = {"int", "float", "string", "ints", "floats", "strings", "tensor"};
  return kNames[index];
}

Status check_node(const OpDef& def, const Attributes& attributes, size_t inputs, size_t outputs,
                  std::span<const ValueId> ids) {
  const auto fail = [&](std::string why) {
    return Error{ErrorCode::kShape, "the node is malformed", "", std::move(why), "repair the model"};
  };
  if (static_cast<int>(inputs) < def.min_inputs || (def.max_inputs >= 0 && static_cast<int>(inputs) > def.max_inputs)) {
    return fail(fmt::format("{} takes {} to {} inputs, {} given", def.name, def.min_inputs,
                            def.max_inputs < 0 ? "any number of" : std::to_string(def.max_inputs), inputs));
  }
  if (static_cast<int>(outputs) < def.min_outputs ||
      (def.max_outputs >= 0 && static_cast<int>(outputs) > def.max_outputs)) {
    return fail(fmt::format("{} gives {} to {} outputs, {} asked", def.name, def.min_outputs,
                            def.max_outputs < 0 ? "any number of" : std::to_string(def.max_outputs), outputs));
  }
  for (size_t i = 0; i < static_cast<size_t>(def.min_inputs) && i < ids.size(); ++i) {
    if (!ids[i].valid()) return fail(fmt::format("required input {} of {} is absent", i, def.name));
  }
  for (const AttrSpec& spec : def.attributes) {
    const Attribute* value = attributes.find(spec.name);
    if (value == nullptr && spec.required)
      return fail(fmt::format("attribute '{}' of {} is missing", spec.name, def.name));
    if (value != nullptr && !kind_matches(*value, spec.kind)) {
      return fail(fmt::format("attribute '{}' of {} is of kind {}, {} expected", spec.name, def.name,
                              kind_name(value->index()), kind_name(static_cast<size_t>(spec.kind))));
    }
  }
  return {};
}

Error at_node(Error error, const Graph& graph, const Node& node) {
  error.within(
      fmt::format("{}node '{}' ({})", graph.source_file.empty() ? "" : graph.source_file + ": ", node.name, node.op));
  return error;
}

}  // namespace

std::optional<std::vector<int64_t>> InferInput::ints(size_t i) const {
  if (!has(i) || i >= constants.size() || constants[i] == nullptr) return std::nullopt;
  return to_ints(constants[i]->view());
}

void Registry::add(OpDef def) {
  const auto at = std::lower_bound(defs_.begin(), defs_.end(), def.name,
                                   [](const OpDef& a, std::string_view b) { return a.name < b; });
  defs_.insert(at, std::move(def));
}

const OpDef* Registry::find(std::string_view op) const {
  const auto at =
      std::lower_bound(defs_.begin(), defs_.end(), op, [](const OpDef& a, std::string_view b) { return a.name < b; });
  return at != defs_.end() && at->name == op ? &*at : nullptr;
}

const Registry& registry() {
  static const Registry instance = [] {
    Registry made;
#define FAMILY(name) register_##name(made);
#include "ops_families.inc"
#undef FAMILY
    return made;
  }();
  return instance;
}

namespace {

Result<std::vector<TensorType>> infer_node(const Graph& graph, const Node& node) {
  const OpDef* def = registry().find(node.op);
  if (def == nullptr)
    return Error{ErrorCode::kUnsupported, "unknown operator", "",
                 fmt::format("'{}' is not in the operator table", node.op), "see docs/OPERATORS.md"};
  OPENRKNN_CHECK_OK(check_node(*def, node.attributes, node.inputs.size(), node.outputs.size(), node.inputs));
  std::vector<TensorType> inputs(node.inputs.size());
  std::vector<const Tensor*> constants(node.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    const Value& v = graph.value(node.inputs[i]);
    if (!v.shape) return std::vector<TensorType>(node.outputs.size(), TensorType{DType::kUndefined, std::nullopt});
    inputs[i] = {v.dtype, v.shape};
    constants[i] = graph.constant(node.inputs[i]);
  }
  OPENRKNN_TRY(auto types, def->infer({node.op, node.attributes, inputs, constants, node.outputs.size()}));
  if (types.size() < node.outputs.size()) {
    return Error{ErrorCode::kInternal, "shape inference failed", "",
                 fmt::format("{} outputs inferred, {} needed", types.size(), node.outputs.size()), ""};
  }
  return types;
}

}  // namespace

Result<std::vector<TensorType>> infer(const Graph& graph, NodeId id) {
  auto types = infer_node(graph, graph.node(id));
  if (!types.ok()) return at_node(types.error(), graph, graph.node(id));
  return types;
}

Status infer_all(Graph& graph) {
  OPENRKNN_TRY(const auto order, graph.topological_order());
  std::vector<std::string> failures;
  Error first;
  for (const NodeId id : order) {
    auto types = infer(graph, id);
    if (!types.ok()) {
      if (failures.empty()) first = types.error();
      failures.push_back(types.error().message());
      continue;
    }
    for (size_t i = 0; i < graph.node(id).outputs.size(); ++i) {
      const ValueId output = graph.node(id).outputs[i];
      if (!output.valid()) continue;
      if ((*types)[i].dtype != DType::kUndefined) graph.value(output).dtype = (*types)[i].dtype;
      graph.value(output).shape = (*types)[i].shape;
    }
  }
  if (failures.empty()) return {};
  if (failures.size() == 1) return first;
  first.what = fmt::format("{} nodes have unusable shapes or attributes", failures.size());
  first.where = graph.source_file;
  first.why.clear();
  for (const auto& f : failures) first.why += "\n  " + f;
  return first;
}

Status verify(const Graph& graph) {
  OPENRKNN_CHECK_OK(graph.verify());
  for (const NodeId id : graph.nodes()) {
    OPENRKNN_TRY(const auto types, infer(graph, id));
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].valid()) continue;
      const Value& v = graph.value(node.outputs[i]);
      const bool dtype_differs = types[i].dtype != DType::kUndefined && types[i].dtype != v.dtype;
      const bool shape_differs = types[i].shape && v.shape && !(*types[i].shape == *v.shape);
      if (dtype_differs || shape_differs) {
        return at_node(
            Error{ErrorCode::kInternal, "a stored type differs from the inferred one", v.name,
                  fmt::format("stored {} {}, inferred {} {}", dtype_name(v.dtype), v.shape ? v.shape->to_string() : "?",
                              dtype_name(types[i].dtype), types[i].shape ? types[i].shape->to_string() : "?"),
                  ""},
            graph, node);
      }
    }
  }
  return {};
}

int64_t macs(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const OpDef* def = registry().find(node.op);
  if (def == nullptr || def->macs == nullptr) return 0;
  std::vector<TensorType> inputs(node.inputs.size());
  std::vector<const Tensor*> constants(node.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    const Value& v = graph.value(node.inputs[i]);
    if (!v.shape) return 0;
    inputs[i] = {v.dtype, v.shape};
    constants[i] = graph.constant(node.inputs[i]);
  }
  std::vector<TensorType> outputs;
  for (const ValueId o : node.outputs) {
    if (o.valid() && !graph.value(o).shape) return 0;
    outputs.push_back(o.valid() ? TensorType{graph.value(o).dtype, graph.value(o).shape} : TensorType{});
  }
  return def->macs({node.op, node.attributes, inputs, constants, outputs.size()}, outputs);
}

Result<std::vector<ValueId>> add_node(Graph& graph, std::string_view op, std::string_view output_name,
                                      std::vector<ValueId> inputs, Attributes attributes, Source source,
                                      size_t outputs) {
  Node probe;
  probe.op = std::string(op);
  probe.name = std::string(output_name);
  probe.attributes = attributes;
  probe.inputs = inputs;
  probe.outputs.resize(outputs);
  auto types = infer_node(graph, probe);
  if (!types.ok()) return at_node(types.error(), graph, probe);
  std::vector<ValueId> values;
  for (size_t i = 0; i < outputs; ++i) {
    const std::string wanted = i == 0 ? std::string(output_name) : fmt::format("{}_{}", output_name, i);
    values.push_back(graph.add_value(wanted, (*types)[i].dtype, (*types)[i].shape));
  }
  graph.add_node(op, "", std::move(inputs), values, std::move(attributes), std::move(source));
  return values;
}

Result<std::vector<Tensor>> evaluate(std::string_view op, const Attributes& attributes, std::span<const Tensor> inputs,
                                     size_t outputs) {
  const OpDef* def = registry().find(op);
  const cpu::Kernel kernel = cpu::kernels().find(op);
  if (def == nullptr || kernel == nullptr) {
    return Error{ErrorCode::kUnsupported, "cannot evaluate the operator", std::string(op), "it has no float kernel",
                 "see docs/OPERATORS.md"};
  }
  for (size_t i = 0; i < static_cast<size_t>(def->min_inputs); ++i) {
    if (i < inputs.size() && inputs[i].defined()) continue;
    return Error{ErrorCode::kInvalidArgument, "cannot evaluate the operator", std::string(op),
                 fmt::format("required input {} is absent", i), "repair the model"};
  }
  std::vector<TensorType> types(inputs.size());
  std::vector<const Tensor*> constants(inputs.size(), nullptr);
  std::vector<TensorView> views(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    types[i] = {inputs[i].dtype(), inputs[i].shape()};
    constants[i] = &inputs[i];
    views[i] = inputs[i].view();
  }
  OPENRKNN_TRY(const auto inferred, def->infer({op, attributes, types, constants, outputs}));
  std::vector<Tensor> results(outputs);
  std::vector<MutableTensorView> result_views(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    if (!inferred[i].shape) {
      return Error{ErrorCode::kUnsupported, "cannot evaluate the operator", std::string(op),
                   "the shape of its result depends on its data", "cut the graph before it"};
    }
    OPENRKNN_TRY(results[i], Tensor::make(inferred[i].dtype, *inferred[i].shape));
    result_views[i] = results[i].mutable_view();
  }
  OPENRKNN_CHECK_OK(kernel({views, result_views, attributes}));
  return results;
}

}  // namespace openrknn::ops
