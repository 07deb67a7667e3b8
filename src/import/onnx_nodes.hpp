// Imports node lists: attributes, upgrades, functions, control flow. Everything that fails is noted, and the import
// goes on.
#pragma once

#include <functional>
#include <map>
#include <optional>
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
  NameSet absent;                                   // inputs of a function that its caller leaves out
  NameSet used;                                     // names that a node of the list or the list's results read
  std::string prefix;                               // of the names of values, inside a function or a loop
  std::string path;                                 // of the labels in failures: the functions and nodes around
  std::vector<const onnx::FunctionProto*> callers;  // the functions around, outermost first
  int depth = 0;                                    // of functions and subgraphs
  bool in_loop = false;
};

// A subgraph on its way into the graph. Nodes that depend on none of its inputs are imported once, however often it
// runs.
struct Body {
  const onnx::GraphProto* graph = nullptr;
  Scope scope;  // of what does not change from one run to the next
  std::vector<int> once, each_time;
  std::vector<std::string> results;
  bool entered = false;
};

constexpr int kDeepest = 32;  // functions inside functions, subgraphs inside subgraphs

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name);

class NodeImporter {
 public:
  // Loops are written out into at most `most_unrolled` nodes.
  NodeImporter(const onnx::ModelProto& model, std::string file, GraphBuilder& builder, TensorReader& reader,
               int64_t most_unrolled);

  // Imports the nodes of `order`; `after` is called behind each of them.
  void import_nodes(const NodeList& nodes, const std::vector<int>& order, Scope& scope,
                    const std::function<void(const onnx::NodeProto&)>& after = {});
  // The value of a name, its initializer read when this is the first use; nullopt when there is none.
  Result<std::optional<ValueId>> find(const std::string& name, Scope& scope);
  // The name stands for a value that could not be imported.
  void bind_unknown(const std::string& name, Scope& scope);
  // "node 'n' (Op): reason", one each.
  const std::vector<std::string>& failures() const { return failures_; }
  // What kinds of failures there are: they decide what the user can do about them.
  const std::set<ErrorCode>& failure_codes() const { return failure_codes_; }
  // A failure that is known already (of another call of one function, of another iteration) is not noted twice.
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
  // onnx_control.cpp
  Status import_if(const onnx::NodeProto& node, Scope& scope);
  Status import_loop(const onnx::NodeProto& node, Scope& scope);
  Status import_scan(const onnx::NodeProto& node, Scope& scope);
  Result<Body> open_body(const onnx::NodeProto& node, std::string_view attribute, Scope& scope);
  Result<std::vector<ValueId>> run_body(Body& body, const std::vector<ValueId>& arguments, int64_t iteration);
  Result<bool> loop_goes_on(const onnx::NodeProto& node, ValueId condition, int64_t iteration) const;
  Result<std::vector<std::vector<ValueId>>> scan_elements(const onnx::NodeProto& node, std::vector<ValueId> inputs,
                                                          const std::vector<int64_t>& axes,
                                                          const std::vector<int64_t>& directions, const Scope& scope);
  Result<std::vector<ValueId>> scan_once(const onnx::NodeProto& node, Body& body, std::vector<ValueId> states,
                                         const std::vector<std::vector<ValueId>>& elements, const Scope& scope);
  Result<std::vector<ValueId>> scan_batch(const onnx::NodeProto& node, Body& body, const std::vector<ValueId>& operands,
                                          size_t elements, const Scope& scope);
  Result<ValueId> helper(const onnx::NodeProto& node, const Scope& scope, std::string_view op, std::string_view suffix,
                         std::vector<ValueId> inputs, Attributes attributes = {});
  Result<std::vector<ValueId>> pieces(const onnx::NodeProto& node, const Scope& scope, ValueId value, int64_t axis);
  Result<ValueId> stacked(const onnx::NodeProto& node, const Scope& scope, const std::vector<ValueId>& values,
                          int64_t axis);
  Result<ValueId> stacked_or_empty(const onnx::NodeProto& node, const Scope& scope, const Body& body, size_t result,
                                   const std::vector<ValueId>& rows, int64_t axis);
  Status give_results(const onnx::NodeProto& node, const std::vector<ValueId>& results, Scope& scope);
  std::string sources_of(ValueId value) const;
  void check_operators(const onnx::GraphProto& graph, const Scope& scope);
  Status refuse_unrolling(int64_t at_least);

  Status import_call(const onnx::NodeProto& node, const onnx::FunctionProto& function, Scope& scope);
  // Whether the operator is one that may be imported.
  bool is_known(const onnx::NodeProto& node) const;
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
  NameSet known_failures_;
  std::set<ErrorCode> failure_codes_;
  std::vector<std::string> non_finite_;
  std::map<std::string, const onnx::FunctionProto*, std::less<>> functions_;
  int64_t imported_ = 0;
  int64_t most_unrolled_;
  int64_t unrolled_ = 0;    // nodes and iterations of loops so far
  bool exhausted_ = false;  // a limit on the number of nodes is reached: nothing more is imported
};

}  // namespace openrknn::import
