// Imports node lists: attributes, upgrades, functions, conditionals. Everything that fails is noted, and the import
// goes on.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/graph_builder.hpp"
#include "import/onnx_order.hpp"

namespace openrknn::import {

// Names of one node list: its own values, its initializers that nobody has read yet, and the list around it.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, ValueId, std::less<>> values;
  std::map<std::string, const onnx::TensorProto*, std::less<>> initializers;
  std::map<std::string, const onnx::SparseTensorProto*, std::less<>> sparse_initializers;
  std::map<std::string, int64_t, std::less<>> opsets;                                 // by domain; "" is ONNX's own
  std::map<std::string, const onnx::AttributeProto*, std::less<>> caller_attributes;  // inside a function
  NameSet used;        // names that a node of the list or the list's results read
  std::string prefix;  // of the names of values, inside a function
  int depth = 0;       // of functions and conditionals
};

class NodeImporter {
 public:
  NodeImporter(const onnx::ModelProto& model, std::string file, GraphBuilder& builder, TensorReader& reader);

  // Imports the nodes of `order`; `after` is called behind each of them.
  void import_nodes(const NodeList& nodes, const std::vector<int>& order, Scope& scope,
                    const std::function<void(const onnx::NodeProto&)>& after = {});
  // The value of a name, its initializer read when this is the first use; nullopt when there is none.
  Result<std::optional<ValueId>> find(const std::string& name, Scope& scope);
  // "node 'n' (Op): reason", one each.
  const std::vector<std::string>& failures() const { return failures_; }
  // What kinds of failures there are: they decide what the user can do about them.
  const std::set<ErrorCode>& failure_codes() const { return failure_codes_; }
  void note_failure(std::string text, ErrorCode code);
  const std::vector<std::string>& non_finite() const { return non_finite_; }
  // Reads the initializers of a graph into a scope; error for two of one name.
  static Status add_initializers(const onnx::GraphProto& graph, Scope& scope);
  static void note_uses(const NodeList& nodes, const std::vector<int>& order, const std::vector<std::string>& results,
                        Scope& scope);
  static std::map<std::string, int64_t, std::less<>> opsets_of(
      const google::protobuf::RepeatedPtrField<onnx::OperatorSet>& sets);

 private:
  Status import_node(const onnx::NodeProto& node, Scope& scope);
  Status import_constant(const onnx::NodeProto& node, Scope& scope);
  Status import_if(const onnx::NodeProto& node, Scope& scope);
  Status import_call(const onnx::NodeProto& node, const onnx::FunctionProto& function, Scope& scope);
  const onnx::FunctionProto* function_of(const onnx::NodeProto& node) const;
  Result<std::vector<ValueId>> read_operands(const onnx::NodeProto& node, Scope& scope);
  Result<Attributes> read_attributes(const onnx::NodeProto& node, Scope& scope);
  Result<Attribute> read_attribute(const onnx::AttributeProto& proto, const std::string& node);
  void bind(const std::string& name, ValueId value, Scope& scope);
  void bind_unknown(const onnx::NodeProto& node, Scope& scope);
  ValueId add_constant(const std::string& name, Tensor tensor);

  const onnx::ModelProto& model_;
  std::string file_;
  GraphBuilder& builder_;
  TensorReader& reader_;
  std::vector<std::string> failures_;
  std::set<ErrorCode> failure_codes_;
  std::vector<std::string> non_finite_;
  std::map<std::string, const onnx::FunctionProto*, std::less<>> functions_;
  int64_t imported_ = 0;
};

}  // namespace openrknn::import
