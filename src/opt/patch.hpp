// One rewrite: new nodes described against a graph that does not change until everything is known to fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace openrknn::opt {

// Values added here get provisional ids that only this patch understands; they become real in apply(). Types come from
// the operator registry; the first failure is kept and makes the patch unusable (error()).
class Patch {
 public:
  explicit Patch(const Graph& graph) : graph_(graph) {}

  ValueId constant(Tensor tensor, std::string_view name);
  // A node with one output (or `outputs`, from add_all).
  ValueId add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_all(std::string_view op, std::vector<ValueId> inputs, Attributes attributes, size_t outputs);
  // Reshape to a constant shape; `value` itself when it has that shape already.
  ValueId reshape(ValueId value, const Shape& shape);
  ValueId transpose(ValueId value, std::vector<int64_t> perm);
  // Everyone who reads `old` reads `with` instead (a new or an existing value). Types must be equal.
  void replace(ValueId old, ValueId with);

  const Shape& shape(ValueId value) const;
  DType dtype(ValueId value) const;

  // The nodes that nobody needs once the replacements are made, in order of creation.
  std::vector<NodeId> obsolete() const;
  // "conv1 (Conv) + bn1 (BatchNormalization) -> Conv".
  std::string describe() const;
  // Not ok: a node could not be typed, or a replacement changes a type. False: it would rename a graph input or output.
  Result<bool> applicable() const;
  // Call after applicable() said true. All or nothing; obsolete nodes go, names and sources are carried over.
  void apply(Graph& graph) const;

 private:
  struct NewValue {
    ops::TensorType type;
    Tensor constant;   // undefined: some new node's output
    std::string name;  // of a constant
  };
  struct NewNode {
    std::string op;
    std::vector<ValueId> inputs, outputs;
    Attributes attributes;
  };
  struct Replacement {
    ValueId old, with;
  };

  bool is_new(ValueId id) const { return id.valid() && id.index >= kFirstNew; }
  const NewValue& fresh(ValueId id) const { return values_[id.index - kFirstNew]; }
  ops::TensorType type_of(ValueId id) const;
  void carry_names(Graph& graph, const std::vector<ValueId>& made, const std::vector<NodeId>& gone) const;
  std::string suffixed(const std::string& op) const;

  static constexpr uint32_t kFirstNew = 0x80000000U;
  const Graph& graph_;
  std::vector<NewValue> values_;
  std::vector<NewNode> nodes_;
  std::vector<Replacement> replacements_;
  Status status_;
};

}  // namespace openrknn::opt
