#include "opt/patch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace openrknn::opt {

namespace {

// Suffixes of tensors that the converter inserts, as users know them from op_target and reports.
std::string_view suffix_of(std::string_view op) {
  if (op == "Reshape") return "_rs";
  if (op == "Transpose") return "_tp";
  if (op == "Conv" || op == "ConvTranspose") return "_2conv";
  return "_sw";
}

}  // namespace

ValueId Patch::constant(Tensor tensor, std::string_view name) {
  const ValueId id{kFirstNew + static_cast<uint32_t>(values_.size())};
  const ops::TensorType type{tensor.dtype(), tensor.shape()};
  values_.push_back({type, std::move(tensor), std::string(name)});
  return id;
}

ops::TensorType Patch::type_of(ValueId id) const {
  if (!id.valid()) return {};
  if (is_new(id)) return fresh(id).type;
  return {graph_.value(id).dtype, graph_.value(id).shape};
}

const Shape& Patch::shape(ValueId id) const {
  static const Shape kNone;
  if (!id.valid()) return kNone;
  const auto& shape = is_new(id) ? fresh(id).type.shape : graph_.value(id).shape;
  return shape ? *shape : kNone;
}

DType Patch::dtype(ValueId id) const { return type_of(id).dtype; }

ValueId Patch::add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  return add_all(op, std::move(inputs), std::move(attributes), 1)[0];
}

std::vector<ValueId> Patch::add_all(std::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                                    size_t outputs) {
  std::vector<ValueId> results(outputs);
  if (!status_.ok()) return results;
  const auto fail = [&](std::string why) {
    status_ =
        Error{ErrorCode::kInternal, "a rewrite made a node that has no type", std::string(op), std::move(why), ""};
    return results;
  };
  const ops::OpDef* def = ops::registry().find(op);
  if (def == nullptr) return fail("the operator is not in the table");
  std::vector<ops::TensorType> types(inputs.size());
  std::vector<const Tensor*> constants(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    types[i] = type_of(inputs[i]);
    if (!types[i].shape) return fail("an operand has no known shape");
    if (!is_new(inputs[i])) constants[i] = graph_.constant(inputs[i]);
    if (is_new(inputs[i]) && fresh(inputs[i]).constant.defined()) constants[i] = &fresh(inputs[i]).constant;
  }
  auto inferred = def->infer({op, attributes, types, constants, outputs});
  if (!inferred.ok()) return fail(inferred.error().message());
  if (inferred->size() < outputs) return fail("shape inference gave too few outputs");
  for (size_t i = 0; i < outputs; ++i) {
    results[i] = ValueId{kFirstNew + static_cast<uint32_t>(values_.size())};
    values_.push_back({(*inferred)[i], Tensor(), ""});
  }
  nodes_.push_back({std::string(op), std::move(inputs), results, std::move(attributes)});
  return results;
}

ValueId Patch::reshape(ValueId value, const Shape& to) {
  if (shape(value) == to) return value;
  return add("Reshape", {value, constant(Tensor::ints(to.to_vector()), "shape")});
}

ValueId Patch::transpose(ValueId value, std::vector<int64_t> perm) {
  Attributes attributes;
  attributes.set("perm", std::move(perm));
  return add("Transpose", {value}, std::move(attributes));
}

void Patch::replace(ValueId old, ValueId with) { replacements_.push_back({old, with}); }

std::vector<NodeId> Patch::obsolete() const {
  std::set<ValueId> freed;
  std::set<ValueId> needed;
  for (const Replacement& r : replacements_) {
    freed.insert(r.old);
    needed.insert(r.with);
  }
  for (const NewNode& node : nodes_) needed.insert(node.inputs.begin(), node.inputs.end());
  std::set<NodeId> gone;
  const auto unused = [&](ValueId id) {
    if (!id.valid() || freed.contains(id)) return true;
    if (needed.contains(id) || graph_.is_output(id)) return false;
    const auto& users = graph_.value(id).users;
    return std::all_of(users.begin(), users.end(), [&](const Use& use) { return gone.contains(use.node); });
  };
  std::vector<NodeId> candidates;
  for (const ValueId id : freed) candidates.push_back(graph_.value(id).producer);
  while (!candidates.empty()) {
    const NodeId id = candidates.back();
    candidates.pop_back();
    if (!id.valid() || gone.contains(id)) continue;
    const Node& node = graph_.node(id);
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), unused)) continue;
    gone.insert(id);
    for (const ValueId input : node.inputs) {
      if (input.valid()) candidates.push_back(graph_.value(input).producer);
    }
  }
  return {gone.begin(), gone.end()};
}

std::string Patch::describe() const {
  std::vector<std::string> before;
  for (const NodeId id : obsolete()) {
    const Node& node = graph_.node(id);
    const auto first =
        std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId output) { return output.valid(); });
    before.push_back(
        fmt::format("{} ({})", first == node.outputs.end() ? node.name : graph_.value(*first).name, node.op));
  }
  std::string text;
  for (const std::string& part : before) text += (text.empty() ? "" : " + ") + part;
  if (text.empty() && !replacements_.empty()) text = graph_.value(replacements_[0].old).name;
  std::string after;
  for (const NewNode& node : nodes_) after += (after.empty() ? "" : " + ") + node.op;
  if (after.empty() && !replacements_.empty()) {
    const ValueId with = replacements_[0].with;
    after = is_new(with) ? "constant" : graph_.value(with).name;
  }
  return text + " -> " + after;
}

Result<bool> Patch::applicable() const {
  if (!status_.ok()) return status_.error();
  std::set<ValueId> targets;
  for (const Replacement& r : replacements_) {
    const ops::TensorType before = type_of(r.old);
    const ops::TensorType after = type_of(r.with);
    if (before.dtype != after.dtype || before.shape.has_value() != after.shape.has_value() ||
        (before.shape && !(*before.shape == *after.shape))) {
      return Error{ErrorCode::kInternal, "a rewrite changes the type of a value", graph_.value(r.old).name,
                   fmt::format("{} {} would become {} {}", dtype_name(before.dtype),
                               before.shape ? before.shape->to_string() : "?", dtype_name(after.dtype),
                               after.shape ? after.shape->to_string() : "?"),
                   ""};
    }
    if (!graph_.is_output(r.old)) continue;
    if (!targets.insert(r.with).second) return false;
    // An output keeps its name, so what takes its place must be free to take it.
    if (is_new(r.with)) {
      if (fresh(r.with).constant.defined()) return false;
    } else if (graph_.is_input(r.with) || graph_.is_output(r.with) || graph_.constant(r.with) != nullptr) {
      return false;
    }
  }
  return true;
}

std::string Patch::suffixed(const std::string& op) const {
  const std::string base = replacements_.empty() ? "value" : graph_.value(replacements_[0].old).name;
  return base + std::string(suffix_of(op));
}

void Patch::carry_names(Graph& graph, const std::vector<ValueId>& made, const std::vector<NodeId>& gone) const {
  std::set<ValueId> replaced;
  for (const Replacement& r : replacements_) {
    replaced.insert(r.old);
    const ValueId with = is_new(r.with) ? made[r.with.index - kFirstNew] : r.with;
    const bool was_output = graph.is_output(r.old);
    graph.replace_uses(r.old, with);
    if (graph.constant(with) != nullptr) continue;
    if (!graph.value(with).quant) graph.value(with).quant = graph.value(r.old).quant;
    if (is_new(r.with) || was_output) {
      graph.take_name(with, r.old);
      auto& aliases = graph.value(with).aliases;
      // A name that this patch invented says nothing to the user.
      if (is_new(r.with)) aliases.erase(aliases.begin());
    } else {
      auto& aliases = graph.value(with).aliases;
      aliases.push_back(graph.value(r.old).name);
      const auto& more = graph.value(r.old).aliases;
      aliases.insert(aliases.end(), more.begin(), more.end());
    }
  }
  if (replacements_.empty()) return;
  const ValueId last = replacements_[0].with;
  const ValueId heir = is_new(last) ? made[last.index - kFirstNew] : last;
  if (graph.constant(heir) != nullptr) return;
  std::vector<std::string> swallowed;
  for (const NodeId id : gone) {
    for (const ValueId output : graph.node(id).outputs) {
      if (!output.valid() || replaced.contains(output)) continue;
      const Value& v = graph.value(output);
      swallowed.push_back(v.name);
      swallowed.insert(swallowed.end(), v.aliases.begin(), v.aliases.end());
    }
  }
  auto& aliases = graph.value(heir).aliases;
  aliases.insert(aliases.begin(), swallowed.begin(), swallowed.end());
}

void Patch::apply(Graph& graph) const {
  const std::vector<NodeId> gone = obsolete();
  Source source;
  std::set<std::string> seen;
  for (const NodeId id : gone) {
    const Source& from = graph.node(id).source;
    if (source.file.empty()) source.file = from.file;
    for (const std::string& name : from.nodes) {
      if (seen.insert(name).second) source.nodes.push_back(name);
    }
  }
  std::vector<ValueId> made;
  for (const NewValue& v : values_) {
    made.push_back(v.constant.defined() ? graph.add_constant(v.name, v.constant)
                                        : graph.add_value("rewritten", v.type.dtype, v.type.shape));
  }
  const auto real = [&](ValueId id) { return is_new(id) ? made[id.index - kFirstNew] : id; };
  std::vector<NodeId> new_nodes;
  for (const NewNode& n : nodes_) {
    std::vector<ValueId> inputs, outputs;
    for (const ValueId id : n.inputs) inputs.push_back(real(id));
    for (const ValueId id : n.outputs) outputs.push_back(real(id));
    new_nodes.push_back(graph.add_node(n.op, "", inputs, outputs, n.attributes, source));
    for (const ValueId id : outputs) graph.rename(id, suffixed(n.op));
  }
  carry_names(graph, made, gone);
  std::set<ValueId> constants;
  for (auto it = gone.rbegin(); it != gone.rend(); ++it) {
    for (const ValueId input : graph.node(*it).inputs) {
      if (input.valid() && graph.constant(input) != nullptr) constants.insert(input);
    }
  }
  // Readers before what they read, so that no removed node has a live user.
  std::set<NodeId> left(gone.begin(), gone.end());
  while (!left.empty()) {
    for (auto it = left.begin(); it != left.end();) {
      const auto& outputs = graph.node(*it).outputs;
      const bool free = std::all_of(outputs.begin(), outputs.end(),
                                    [&](ValueId id) { return !id.valid() || graph.value(id).users.empty(); });
      if (free) graph.remove_node(*it);
      it = free ? left.erase(it) : std::next(it);
    }
  }
  for (const ValueId id : constants) {
    if (graph.value(id).users.empty() && !graph.is_output(id)) graph.remove_value(id);
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].constant.defined()) continue;
    if (graph.value(made[i]).users.empty() && !graph.is_output(made[i])) {
      graph.remove_value(made[i]);
    } else {
      graph.rename(made[i], values_[i].name);
    }
  }
  for (const NodeId id : new_nodes) {
    if (graph.node(id).outputs[0].valid()) graph.node(id).name = graph.value(graph.node(id).outputs[0]).name;
  }
}

}  // namespace openrknn::opt
