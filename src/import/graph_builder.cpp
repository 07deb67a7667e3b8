#include "import/graph_builder.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace openrknn::import {
namespace {

// Bounds of constant folding, so that a small file cannot ask for hours: work and result of one folded node.
constexpr int64_t kMostFoldedMacs = int64_t{1} << 30;
constexpr int64_t kMostFoldedBytes = int64_t{64} << 20;

// Keeps what a reader of the list of failures needs: the reason, and the attribute where one is to blame, without the
// prefix that names the node.
Error bare(const Error& error) {
  std::string why = error.why.empty() ? error.what : error.why;
  const size_t attribute = error.where.rfind("attribute '");
  if (attribute != std::string::npos) why = error.where.substr(attribute) + ": " + why;
  return refusal(std::move(why), error.code);
}

// What can be said about a node whose operands' shapes are missing because of another failure.
Status check_operand_count(const NodeDraft& draft, const ops::OpDef& def) {
  const auto count = static_cast<int>(draft.inputs.size());
  if (count >= def.min_inputs && (def.max_inputs < 0 || count <= def.max_inputs)) return {};
  return refusal(fmt::format("it has {} inputs, the operator takes {}{}", count, def.min_inputs,
                             def.max_inputs < 0 ? " or more" : fmt::format(" to {}", def.max_inputs)),
                 ErrorCode::kFormat);
}

void trim_absent(std::vector<ValueId>& values, size_t at_least) {
  while (values.size() > at_least && !values.back().valid()) values.pop_back();
}

}  // namespace

Error refusal(std::string why, ErrorCode code) { return Error{code, "cannot import a node", "", std::move(why), ""}; }

const Shape* GraphBuilder::shape(ValueId value) const {
  if (!value.valid() || !graph_.value(value).shape) return nullptr;
  return &*graph_.value(value).shape;
}

ValueId GraphBuilder::add_unknown(std::string_view name) {
  const ValueId id = graph_.add_value(name, DType::kUndefined, std::nullopt);
  unknown_.insert(id);
  return id;
}

std::string GraphBuilder::unique_node_name(const NodeDraft& draft) {
  std::string base = draft.name;
  for (auto it = draft.outputs.begin(); base.empty() && it != draft.outputs.end(); ++it) base = *it;
  if (base.empty()) base = draft.op;
  std::string name = base;
  int& next = next_suffix_.try_emplace(base, 1).first->second;
  while (!node_names_.insert(name).second) name = fmt::format("{}#{}", base, next++);
  return name;
}

std::vector<ValueId> GraphBuilder::emit_unknown(const NodeDraft& draft) {
  std::vector<ValueId> outputs;
  for (const auto& name : draft.outputs) outputs.push_back(name.empty() ? ValueId{} : add_unknown(name));
  return outputs;
}

// Shape and Size of a value whose shape is known do not depend on its data.
std::optional<Tensor> GraphBuilder::shape_of_static_value(const NodeDraft& draft) const {
  if ((draft.op != "Shape" && draft.op != "Size") || draft.inputs.size() != 1) return std::nullopt;
  const Shape* known = shape(draft.inputs[0]);
  if (known == nullptr) return std::nullopt;
  if (draft.op == "Size") return Tensor::scalar<int64_t>(known->elements());
  const int64_t rank = known->rank();
  const auto bound = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = bound(draft.attributes.int_or("start", 0));
  const int64_t end = bound(draft.attributes.int_or("end", rank));
  std::vector<int64_t> dims;
  for (int64_t i = begin; i < end; ++i) dims.push_back((*known)[static_cast<int>(i)]);
  return Tensor::ints(dims);
}

bool GraphBuilder::worth_folding(const NodeDraft& draft, NodeId node) const {
  const auto is_constant = [this](ValueId v) { return !v.valid() || graph_.constant(v) != nullptr; };
  const Node& added = graph_.node(node);
  if (!std::all_of(added.inputs.begin(), added.inputs.end(), is_constant)) return false;
  if (draft.inputs.empty() && draft.op.starts_with("Random")) return false;
  int64_t bytes = 0;
  for (const ValueId output : added.outputs) {
    if (output.valid() && graph_.value(output).shape)
      bytes += graph_.value(output).shape->elements() * static_cast<int64_t>(dtype_size(graph_.value(output).dtype));
  }
  int64_t operand_bytes = 0;
  for (const ValueId input : added.inputs) {
    if (input.valid()) operand_bytes += static_cast<int64_t>(graph_.constant(input)->bytes());
  }
  const ops::OpDef* def = ops::registry().find(draft.op);
  if (def != nullptr && def->op_class == ops::OpClass::kShape) return true;  // bounded by the memory budget
  return bytes <= std::max(kMostFoldedBytes, 2 * operand_bytes) && ops::macs(graph_, node) <= kMostFoldedMacs;
}

Status GraphBuilder::fold(NodeId id) {
  const Node& node = graph_.node(id);
  std::vector<Tensor> operands;
  for (const ValueId input : node.inputs) operands.push_back(input.valid() ? *graph_.constant(input) : Tensor{});
  for (const ValueId output : node.outputs) {
    if (!output.valid() || !graph_.value(output).shape) continue;
    const Value& v = graph_.value(output);
    OPENRKNN_CHECK_OK(reader_.charge(v.shape->elements() * static_cast<int64_t>(dtype_size(v.dtype)), v.name));
  }
  OPENRKNN_TRY(auto results, ops::evaluate(node.op, node.attributes, operands, node.outputs.size()));
  const std::vector<ValueId> outputs = node.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].valid()) graph_.make_constant(outputs[i], std::move(results[i]));
  }
  graph_.remove_node(id);
  return {};
}

Result<std::vector<ValueId>> GraphBuilder::emit(NodeDraft draft) {
  const ops::OpDef* def = ops::registry().find(draft.op);
  if (def == nullptr || def->own) return refusal("the operator is not supported");
  trim_absent(draft.inputs, static_cast<size_t>(def->min_inputs));
  while (draft.outputs.size() > 1 && draft.outputs.back().empty() && def->max_outputs >= 0 &&
         draft.outputs.size() > static_cast<size_t>(def->min_outputs)) {
    draft.outputs.pop_back();
  }
  if (std::any_of(draft.inputs.begin(), draft.inputs.end(), [this](ValueId v) { return is_unknown(v); })) {
    OPENRKNN_CHECK_OK(check_operand_count(draft, *def));
    return emit_unknown(draft);
  }
  if (auto dims = shape_of_static_value(draft))
    return std::vector<ValueId>{graph_.add_constant(draft.outputs[0], std::move(*dims))};

  // A task is named by its first result, so that one always exists.
  std::string node_name = unique_node_name(draft);
  if (!draft.outputs.empty() && draft.outputs[0].empty()) draft.outputs[0] = node_name + "_unused";
  std::vector<ValueId> outputs;
  for (const auto& name : draft.outputs)
    outputs.push_back(name.empty() ? ValueId{} : graph_.add_value(name, DType::kUndefined, std::nullopt));
  const NodeId node =
      graph_.add_node(draft.op, std::move(node_name), draft.inputs, outputs, draft.attributes, draft.source);
  const auto fail = [&](const Error& error) {
    graph_.remove_node(node);  // its results go too: nothing reads them yet
    return bare(error);
  };
  auto types = ops::infer(graph_, node);
  if (!types.ok()) return fail(types.error());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    graph_.value(outputs[i]).dtype = (*types)[i].dtype;
    graph_.value(outputs[i]).shape = (*types)[i].shape;
  }
  if (worth_folding(draft, node)) {
    auto folded = fold(node);
    // Without a float kernel the node simply stays; anything else is a fact about the model.
    if (!folded.ok() && folded.error().code != ErrorCode::kUnsupported) return fail(folded.error());
  }
  return outputs;
}

void GraphBuilder::remove_dead() {
  const auto order = graph_.topological_order();
  if (!order.ok()) return;
  for (auto it = order->rbegin(); it != order->rend(); ++it) {
    const Node& node = graph_.node(*it);
    const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(), [this](ValueId v) {
      return v.valid() && (!graph_.value(v).users.empty() || graph_.is_output(v));
    });
    if (!needed) graph_.remove_node(*it);
  }
  for (const ValueId id : graph_.values()) {
    const Value& v = graph_.value(id);
    if (v.users.empty() && !v.producer.valid() && !graph_.is_output(id) && !graph_.is_input(id))
      graph_.remove_value(id);
  }
}

}  // namespace openrknn::import
