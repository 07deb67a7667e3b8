// What an operator is: arity, attributes, shape inference, cost. Checks, docs and the importers are driven by this
// table. The float evaluation is the kernel of the same name in kernels/cpu (ops/evaluate.hpp is the adapter).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attributes.hpp"
#include "core/tensor.hpp"
#include "ir/graph.hpp"

namespace openrknn::ops {

enum class AttrKind { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required = false;
  std::string_view doc;  // meaning and default
};

struct TensorType {
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;  // absent when it depends on data that is not known yet
};

// What shape inference may look at. In a Graph `constant` is set for constant operands; in the golden run for all.
struct InferInput {
  std::string_view op;
  const Attributes& attributes;
  std::span<const TensorType> inputs;        // dtype kUndefined: absent
  std::span<const Tensor* const> constants;  // nullptr: not known
  size_t outputs = 1;                        // how many the node has

  bool has(size_t i) const { return i < inputs.size() && inputs[i].dtype != DType::kUndefined; }
  const Shape& shape(size_t i) const { return *inputs[i].shape; }
  DType dtype(size_t i) const { return inputs[i].dtype; }
  // Elements of a constant integer operand; nullopt when absent or not known.
  std::optional<std::vector<int64_t>> ints(size_t i) const;
};

// dtype and shape of every output. It is called only when the shapes of all inputs are known; a result without a shape
// says that an operand's data are needed. An error names the operand and the reason.
using Infer = Result<std::vector<TensorType>> (*)(const InferInput&);
// Logical multiply-adds of one run (no padding, no alignment). nullptr: 0.
using Macs = int64_t (*)(const InferInput&, std::span<const TensorType> outputs);

enum class OpClass {
  kCompute,       // convolutions, products, pools, reductions, normalisations
  kElementwise,   // one result per element under broadcasting
  kActivation,    // unary elementwise function of float values
  kDataMovement,  // moves elements without changing them
  kShape,         // about shapes; folded before a build
};

struct OpDef {
  std::string_view name;
  OpClass op_class = OpClass::kCompute;
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  int min_outputs = 1;
  int max_outputs = 1;  // -1: any number
  std::vector<AttrSpec> attributes = {};
  Infer infer = nullptr;
  Macs macs = nullptr;
  std::string_view doc;  // one line for docs/OPERATORS.md
  bool own = false;      // not an ONNX operator: made by a rewrite
};

class Registry {
 public:
  void add(OpDef def);
  const OpDef* find(std::string_view op) const;
  const std::vector<OpDef>& all() const { return defs_; }  // sorted by name

 private:
  std::vector<OpDef> defs_;
};

// Every file src/ops/<family>.cpp defines `void register_<family>(Registry&)` and is found by the build.
const Registry& registry();

// Runs shape inference for a node of a graph: arity and attribute kinds checked, errors say node, operator and reason.
Result<std::vector<TensorType>> infer(const Graph& graph, NodeId node);
// Infers all shapes in topological order and stores them; nodes that fail are all reported in one error.
Status infer_all(Graph& graph);
// Graph::verify, then: every operator known, arity and attributes right, stored types equal inferred ones.
Status verify(const Graph& graph);
int64_t macs(const Graph& graph, NodeId node);
// Adds a node with inferred outputs: dtype and shape come from the registry. Output names are made unique.
Result<std::vector<ValueId>> add_node(Graph& graph, std::string_view op, std::string_view output_name,
                                      std::vector<ValueId> inputs, Attributes attributes = {}, Source source = {},
                                      size_t outputs = 1);

}  // namespace openrknn::ops
