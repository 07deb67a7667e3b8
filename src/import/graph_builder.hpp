// Grows a Graph node by node in execution order: shapes are inferred and constant expressions folded at once, so that
// whoever adds the next node can look at shapes and values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/onnx_tensor.hpp"
#include "ir/graph.hpp"

namespace openrknn::import {

// Why a node cannot be imported; whoever reports it knows which one is meant.
Error refusal(std::string why, ErrorCode code = ErrorCode::kUnsupported);

// A node on its way into the graph, in the meaning of its own opset until the upgrades have run.
struct NodeDraft {
  std::string op;
  std::string name;  // as in the file, may be empty
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<std::string> outputs;  // an empty name is an unused output
  int64_t opset = 0;
  Source source;
};

class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, TensorReader& reader) : graph_(graph), reader_(reader) {}

  Graph& graph() { return graph_; }
  // A constant whose bytes the reader has already counted.
  ValueId add_constant(std::string_view name, Tensor tensor) { return graph_.add_constant(name, std::move(tensor)); }
  // Takes bytes that an upgrade makes up, rather than reads, from the model's budget.
  Status charge(int64_t bytes, const std::string& name) { return reader_.charge(bytes, name); }
  // Adds the node with inferred outputs, or their values when all operands are constant. `why` of an error is for a
  // person who knows which node is meant.
  Result<std::vector<ValueId>> emit(NodeDraft draft);
  // A value that stands for the output of a node that could not be imported: its users are checked as far as they can
  // be.
  ValueId add_unknown(std::string_view name);
  bool is_unknown(ValueId value) const { return value.valid() && unknown_.contains(value); }
  // Static shape of a value; nullptr when it is not known.
  const Shape* shape(ValueId value) const;
  const Tensor* constant(ValueId value) const { return graph_.constant(value); }
  // Removes nodes and constants that no output needs.
  void remove_dead();

 private:
  std::vector<ValueId> emit_unknown(const NodeDraft& draft);
  std::optional<Tensor> shape_of_static_value(const NodeDraft& draft) const;
  bool worth_folding(const NodeDraft& draft, NodeId node) const;
  Status fold(NodeId node);
  std::string unique_node_name(const NodeDraft& draft);

  Graph& graph_;
  TensorReader& reader_;
  std::set<ValueId> unknown_;
  std::set<std::string, std::less<>> node_names_;
  std::map<std::string, int, std::less<>> next_suffix_;  // to try next for a node of this name
};

}  // namespace openrknn::import
