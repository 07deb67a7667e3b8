// What the user's model means: nodes and values in one arena each, addressed by small ids that stay valid while others
// come and go.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/quant_params.hpp"
#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace openrknn {

struct ValueId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  auto operator<=>(const ValueId&) const = default;
};
struct NodeId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  auto operator<=>(const NodeId&) const = default;
};

// One place where a value is read: input `slot` of `node`. A node that reads a value twice has two uses.
struct Use {
  NodeId node;
  int slot = 0;
  bool operator==(const Use&) const = default;
};

struct Value {
  std::string name;                  // unique in the graph
  std::vector<std::string> aliases;  // source names of tensors that this one has swallowed (fusion), oldest first
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;  // absent only where it depends on data (golden run)
  NodeId producer;             // invalid for constants and graph inputs
  int producer_slot = 0;
  std::vector<Use> users;
  std::optional<Tensor> constant;
  std::optional<QuantParams> quant;
  bool alive = false;
};

// Where a node came from, for messages and reports.
struct Source {
  std::string file;
  std::vector<std::string> nodes;  // names of the source model's nodes that it stands for
};

struct Node {
  std::string op;    // ONNX's name (newest opset's meaning); own operators as docs/OPERATORS.md
  std::string name;  // unique in the graph; made from the first output when the source gives none
  Attributes attributes;
  std::vector<ValueId> inputs;   // an invalid id stands for an absent optional input
  std::vector<ValueId> outputs;  // an invalid id stands for an unused optional output
  Source source;
  bool alive = false;
};

class Graph {
 public:
  std::string name;
  std::string source_file;  // for messages

  // --- building; names are made unique by a suffix "#1", "#2", ... when taken
  ValueId add_input(std::string_view name, DType dtype, const Shape& shape);
  ValueId add_constant(std::string_view name, Tensor tensor);
  ValueId add_value(std::string_view name, DType dtype, std::optional<Shape> shape);  // to be some node's output
  // Adds a node that reads `inputs` and produces `outputs` (values without a producer so far).
  NodeId add_node(std::string_view op, std::string_view name, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                  Attributes attributes = {}, Source source = {});
  void add_output(ValueId value) { outputs_.push_back(value); }

  // --- editing
  void set_input(NodeId node, int slot, ValueId value);  // invalid value: the optional input becomes absent
  void append_input(NodeId node, ValueId value);
  // Every user of `from`, and every graph output that is `from`, takes `to` instead.
  void replace_uses(ValueId from, ValueId to);
  // The node and those of its outputs that nobody reads go.
  void remove_node(NodeId node);
  void remove_value(ValueId value);                  // unused, unproduced
  void make_constant(ValueId value, Tensor tensor);  // detaches it from its producer
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  void set_graph_inputs(std::vector<ValueId> inputs) { inputs_ = std::move(inputs); }
  // `value` takes the name of `old_name_holder` (which gets another) and keeps its own name as an alias: a fused value
  // keeps its last source name.
  void take_name(ValueId value, ValueId old_name_holder);
  void rename(ValueId value, std::string_view name);

  // --- reading
  const Value& value(ValueId id) const { return values_[id.index]; }
  Value& value(ValueId id) { return values_[id.index]; }
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  Node& node(NodeId id) { return nodes_[id.index]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::vector<NodeId> nodes() const;    // live nodes, in order of creation
  std::vector<ValueId> values() const;  // live values, in order of creation
  size_t node_count() const;
  // Deterministic: a node comes as soon as its operands are ready, ties by creation. Empty Result only for a cycle
  // (named).
  Result<std::vector<NodeId>> topological_order() const;
  std::optional<ValueId> find_value(std::string_view name) const;  // by name, then by alias
  bool is_output(ValueId id) const;
  bool is_input(ValueId id) const;
  const Tensor* constant(ValueId id) const;  // nullptr when absent or not constant
  // The single user of a value that is no graph output; nullopt otherwise.
  std::optional<Use> only_use(ValueId id) const;
  // Structure only: users and producers agree, names unique, acyclic, constants match their shapes. ops::verify checks
  // meaning.
  Status verify() const;
  std::string unique_name(std::string_view wanted) const;

 private:
  ValueId new_value(std::string_view name);
  void claim_name(const std::string& taken, ValueId id);
  void release_name(const std::string& freed);
  void drop_use(ValueId value, Use use);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::map<std::string, ValueId, std::less<>> by_name_;
  // By name: the numbers from 1 to below this one are taken as suffixes. Many values of one name would otherwise cost
  // the square of their count.
  std::map<std::string, int, std::less<>> first_free_;
};

}  // namespace openrknn
