#include "ir/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <queue>
#include <set>

namespace openrknn {
namespace {

struct Numbered {
  std::string_view base;
  int number = 0;
};

// "base#7" as unique_name makes it; nullopt for other names.
std::optional<Numbered> numbered(std::string_view name) {
  const size_t mark = name.rfind('#');
  if (mark == std::string_view::npos || mark + 1 == name.size() || name[mark + 1] == '0') return std::nullopt;
  Numbered parts{name.substr(0, mark), 0};
  const auto [end, failure] = std::from_chars(name.data() + mark + 1, name.data() + name.size(), parts.number);
  if (failure != std::errc() || end != name.data() + name.size() || parts.number < 1) return std::nullopt;
  return parts;
}

}  // namespace

void Graph::claim_name(const std::string& taken, ValueId id) {
  by_name_.emplace(taken, id);
  const auto parts = numbered(taken);
  if (!parts) return;
  int& first = first_free_.try_emplace(std::string(parts->base), 1).first->second;
  if (parts->number == first) ++first;
}

void Graph::release_name(const std::string& freed) {
  by_name_.erase(freed);
  const auto parts = numbered(freed);
  const auto it = parts ? first_free_.find(parts->base) : first_free_.end();
  if (it != first_free_.end()) it->second = std::min(it->second, parts->number);
}

std::string Graph::unique_name(std::string_view wanted) const {
  std::string base = wanted.empty() ? "value" : std::string(wanted);
  if (!by_name_.contains(base)) return base;
  const auto known = first_free_.find(base);
  for (int i = known == first_free_.end() ? 1 : known->second;; ++i) {
    std::string candidate = fmt::format("{}#{}", base, i);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

ValueId Graph::new_value(std::string_view wanted) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  Value v;
  v.name = unique_name(wanted);
  v.alive = true;
  claim_name(v.name, id);
  values_.push_back(std::move(v));
  return id;
}

ValueId Graph::add_input(std::string_view input_name, DType dtype, const Shape& shape) {
  const ValueId id = add_value(input_name, dtype, shape);
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string_view constant_name, Tensor tensor) {
  const ValueId id = new_value(constant_name);
  value(id).dtype = tensor.dtype();
  value(id).shape = tensor.shape();
  value(id).constant = std::move(tensor);
  return id;
}

ValueId Graph::add_value(std::string_view value_name, DType dtype, std::optional<Shape> shape) {
  const ValueId id = new_value(value_name);
  value(id).dtype = dtype;
  value(id).shape = shape;
  return id;
}

NodeId Graph::add_node(std::string_view op, std::string_view node_name, std::vector<ValueId> inputs,
                       std::vector<ValueId> outputs, Attributes attributes, Source source) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  Node n;
  n.op = std::string(op);
  n.attributes = std::move(attributes);
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.source = std::move(source);
  n.alive = true;
  n.name = std::string(node_name);
  if (n.name.empty() && !n.outputs.empty() && n.outputs[0].valid()) n.name = value(n.outputs[0]).name;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].valid()) value(n.inputs[i]).users.push_back({id, static_cast<int>(i)});
  }
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i].valid()) continue;
    value(n.outputs[i]).producer = id;
    value(n.outputs[i]).producer_slot = static_cast<int>(i);
  }
  nodes_.push_back(std::move(n));
  return id;
}

void Graph::drop_use(ValueId id, Use use) {
  auto& users = value(id).users;
  const auto it = std::find(users.begin(), users.end(), use);
  if (it != users.end()) users.erase(it);
}

void Graph::set_input(NodeId node_id, int slot, ValueId to) {
  auto& slot_value = node(node_id).inputs[static_cast<size_t>(slot)];
  if (slot_value.valid()) drop_use(slot_value, {node_id, slot});
  slot_value = to;
  if (to.valid()) value(to).users.push_back({node_id, slot});
}

void Graph::append_input(NodeId node_id, ValueId to) {
  node(node_id).inputs.push_back(to);
  if (to.valid()) value(to).users.push_back({node_id, static_cast<int>(node(node_id).inputs.size()) - 1});
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  const std::vector<Use> users = value(from).users;
  for (const Use& use : users) set_input(use.node, use.slot, to);
  for (ValueId& output : outputs_) {
    if (output == from) output = to;
  }
}

void Graph::remove_node(NodeId id) {
  Node& n = node(id);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].valid()) drop_use(n.inputs[i], {id, static_cast<int>(i)});
  }
  for (const ValueId output : n.outputs) {
    if (!output.valid()) continue;
    value(output).producer = NodeId{};
    if (value(output).users.empty() && !is_output(output)) remove_value(output);
  }
  n = Node{};
}

void Graph::remove_value(ValueId id) {
  release_name(value(id).name);
  std::erase(inputs_, id);
  value(id) = Value{};
}

void Graph::make_constant(ValueId id, Tensor tensor) {
  Value& v = value(id);
  if (v.producer.valid()) {
    auto& outputs = node(v.producer).outputs;
    std::replace(outputs.begin(), outputs.end(), id, ValueId{});
    v.producer = NodeId{};
  }
  std::erase(inputs_, id);
  v.dtype = tensor.dtype();
  v.shape = tensor.shape();
  v.constant = std::move(tensor);
}

void Graph::rename(ValueId id, std::string_view wanted) {
  release_name(value(id).name);
  value(id).name = unique_name(wanted);
  claim_name(value(id).name, id);
}

void Graph::take_name(ValueId id, ValueId holder) {
  if (id == holder) return;
  const std::string own = value(id).name;
  const std::string wanted = value(holder).name;
  std::vector<std::string> inherited = value(holder).aliases;
  rename(holder, wanted + "_old");
  rename(id, wanted);
  auto& aliases = value(id).aliases;
  aliases.push_back(own);
  aliases.insert(aliases.end(), inherited.begin(), inherited.end());
  value(holder).aliases.clear();
}

std::vector<NodeId> Graph::nodes() const {
  std::vector<NodeId> ids;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].alive) ids.push_back({i});
  }
  return ids;
}

std::vector<ValueId> Graph::values() const {
  std::vector<ValueId> ids;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].alive) ids.push_back({i});
  }
  return ids;
}

size_t Graph::node_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.alive; }));
}

Result<std::vector<NodeId>> Graph::topological_order() const {
  std::vector<int> waiting(nodes_.size(), 0);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  size_t live = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].alive) continue;
    ++live;
    for (const ValueId input : nodes_[i].inputs) {
      if (input.valid() && value(input).producer.valid()) ++waiting[i];
    }
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const uint32_t i = ready.top();
    ready.pop();
    order.push_back({i});
    for (const ValueId output : nodes_[i].outputs) {
      if (!output.valid()) continue;
      for (const Use& use : value(output).users) {
        if (--waiting[use.node.index] == 0) ready.push(use.node.index);
      }
    }
  }
  if (order.size() == live) return order;
  // Every waiting node has a waiting producer: going back from one must come round to a node of the cycle.
  const auto first = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
  auto at = static_cast<uint32_t>(first - waiting.begin());
  std::set<uint32_t> seen;
  while (seen.insert(at).second) {
    for (const ValueId input : nodes_[at].inputs) {
      if (!input.valid() || !value(input).producer.valid() || waiting[value(input).producer.index] <= 0) continue;
      at = value(input).producer.index;
      break;
    }
  }
  return Error{ErrorCode::kFormat, "the graph has a cycle", source_file,
               fmt::format("node '{}' ({}) waits for its own result", nodes_[at].name, nodes_[at].op),
               "repair the model file"};
}

std::optional<ValueId> Graph::find_value(std::string_view wanted) const {
  const auto it = by_name_.find(wanted);
  if (it != by_name_.end()) return it->second;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].alive) continue;
    const auto& aliases = values_[i].aliases;
    if (std::find(aliases.begin(), aliases.end(), wanted) != aliases.end()) return ValueId{i};
  }
  return std::nullopt;
}

bool Graph::is_output(ValueId id) const { return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end(); }
bool Graph::is_input(ValueId id) const { return std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end(); }

const Tensor* Graph::constant(ValueId id) const {
  if (!id.valid() || !value(id).constant) return nullptr;
  return &*value(id).constant;
}

std::optional<Use> Graph::only_use(ValueId id) const {
  if (value(id).users.size() != 1 || is_output(id)) return std::nullopt;
  return value(id).users[0];
}

namespace {

using Fail = std::function<Error(const std::string&, std::string)>;

Status verify_value(const Graph& graph, ValueId id, const Fail& fail) {
  const Value& v = graph.value(id);
  const int origins = (v.producer.valid() ? 1 : 0) + (v.constant ? 1 : 0) + (graph.is_input(id) ? 1 : 0);
  if (origins != 1) {
    return fail(v.name,
                fmt::format("the value has {} origins (producer, constant or graph input), one is needed", origins));
  }
  if (v.producer.valid()) {
    const Node& n = graph.node(v.producer);
    const auto slot = static_cast<size_t>(v.producer_slot);
    if (!n.alive || slot >= n.outputs.size() || n.outputs[slot] != id)
      return fail(v.name, "its producer does not list it");
  }
  if (v.constant && (!v.shape || !(v.constant->shape() == *v.shape) || v.constant->dtype() != v.dtype)) {
    return fail(v.name, "the constant differs from the value's type");
  }
  for (const Use& use : v.users) {
    const Node& n = graph.node(use.node);
    if (!n.alive || static_cast<size_t>(use.slot) >= n.inputs.size() || n.inputs[static_cast<size_t>(use.slot)] != id) {
      return fail(v.name, "a user does not read it");
    }
  }
  // Constants may be shared by all nodes of a large graph: no search of the list for each use.
  std::vector<Use> sorted = v.users;
  std::sort(sorted.begin(), sorted.end(), [](const Use& a, const Use& b) {
    return a.node.index != b.node.index ? a.node.index < b.node.index : a.slot < b.slot;
  });
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return fail(v.name, "a use is listed twice");
  if (v.quant && v.shape) {
    if (auto status = v.quant->validate(*v.shape); !status.ok()) return fail(v.name, status.error().why);
  }
  return {};
}

// Every operand knows its reader: all uses are right and different, so it is enough that there are as many as operands.
Status verify_uses(const Graph& graph, const Fail& fail) {
  size_t uses = 0, operands = 0;
  for (const ValueId id : graph.values()) uses += graph.value(id).users.size();
  for (const NodeId id : graph.nodes()) {
    const auto& inputs = graph.node(id).inputs;
    operands += static_cast<size_t>(std::count_if(inputs.begin(), inputs.end(), [](ValueId v) { return v.valid(); }));
  }
  if (uses == operands) return {};
  for (const NodeId id : graph.nodes()) {
    const Node& n = graph.node(id);
    for (size_t s = 0; s < n.inputs.size(); ++s) {
      if (!n.inputs[s].valid()) continue;
      const auto& users = graph.value(n.inputs[s]).users;
      if (std::find(users.begin(), users.end(), Use{id, static_cast<int>(s)}) == users.end())
        return fail(n.name, fmt::format("input {} does not know its reader", s));
    }
  }
  return fail("", "a value has more readers than operands");
}

Status verify_node(const Graph& graph, NodeId id, const Fail& fail) {
  const Node& n = graph.node(id);
  for (size_t s = 0; s < n.inputs.size(); ++s) {
    if (!n.inputs[s].valid()) continue;
    if (!graph.value(n.inputs[s]).alive) return fail(n.name, fmt::format("input {} is gone", s));
  }
  for (size_t s = 0; s < n.outputs.size(); ++s) {
    if (!n.outputs[s].valid()) continue;
    const Value& v = graph.value(n.outputs[s]);
    if (!v.alive || v.producer != id || v.producer_slot != static_cast<int>(s)) {
      return fail(n.name, fmt::format("output {} has another producer", s));
    }
  }
  return {};
}

}  // namespace

Status Graph::verify() const {
  const Fail fail = [this](const std::string& where, std::string why) {
    return Error{ErrorCode::kInternal, "the graph is inconsistent", source_file + (where.empty() ? "" : ": " + where),
                 std::move(why), ""};
  };
  std::set<std::string_view> names;
  for (const ValueId id : values()) {
    const Value& v = value(id);
    if (!names.insert(v.name).second) return fail(v.name, "two values have this name");
    const auto named = by_name_.find(v.name);
    if (named == by_name_.end() || named->second != id) return fail(v.name, "the value cannot be found by its name");
    OPENRKNN_CHECK_OK(verify_value(*this, id, fail));
  }
  for (const NodeId id : nodes()) OPENRKNN_CHECK_OK(verify_node(*this, id, fail));
  OPENRKNN_CHECK_OK(verify_uses(*this, fail));
  for (const ValueId id : inputs_) {
    if (!id.valid() || !value(id).alive) return fail("", "a graph input is gone");
  }
  for (const ValueId id : outputs_) {
    if (!id.valid() || !value(id).alive) return fail("", "a graph output is gone");
  }
  if (auto order = topological_order(); !order.ok()) return order.error();
  return {};
}

}  // namespace openrknn
