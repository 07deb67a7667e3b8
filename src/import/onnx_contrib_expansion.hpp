// What one contrib node becomes: shared by the files that expand contrib operators, inside this folder only.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/graph_builder.hpp"

namespace openrknn::import {

using Values = std::vector<ValueId>;

inline Attributes with(std::string_view name, Attribute value) {
  Attributes attributes;
  attributes.set(name, std::move(value));
  return attributes;
}

// The nodes that stand for one contrib node.
class Expansion {
 public:
  Expansion(const NodeDraft& draft, GraphBuilder& builder) : draft_(draft), builder_(builder) {
    results.resize(draft.outputs.size());
  }

  const Attributes& attributes() const { return draft_.attributes; }
  size_t operands() const { return draft_.inputs.size(); }
  bool has(size_t slot) const { return slot < draft_.inputs.size() && draft_.inputs[slot].valid(); }
  bool wants(size_t output) const { return output < draft_.outputs.size() && !draft_.outputs[output].empty(); }
  // An operand, invalid when absent.
  ValueId in(size_t slot) const { return has(slot) ? draft_.inputs[slot] : ValueId{}; }
  // Refuses operands and outputs beyond what the operator needs, by what they mean.
  Status refuse_operand(size_t slot, std::string_view meaning) const {
    if (!has(slot)) return {};
    return refusal(fmt::format("operand {} ({}) is not supported", slot, meaning));
  }
  Status refuse_output(size_t output, std::string_view meaning) const {
    if (!wants(output)) return {};
    return refusal(fmt::format("output {} ({}) is not supported", output, meaning));
  }
  Status require(size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (!has(i)) return refusal(fmt::format("operand {} is missing", i), ErrorCode::kFormat);
    }
    return {};
  }
  Result<Shape> shape(ValueId value) const {
    const Shape* known = builder_.shape(value);
    if (known == nullptr) return refusal("the shape of an operand is not known");
    return *known;
  }
  Status charge(int64_t bytes) { return builder_.charge(bytes, name()); }
  DType dtype(ValueId value) const { return builder_.graph().value(value).dtype; }
  ValueId ints(const std::vector<int64_t>& values) { return constant(Tensor::ints(values)); }
  ValueId scalar(float value) { return constant(Tensor::scalar(value)); }
  ValueId constant(Tensor tensor) { return builder_.add_constant(name(), std::move(tensor)); }
  Result<Values> nodes(std::string_view op, Values inputs, Attributes attributes, size_t outputs) {
    NodeDraft node;
    node.op = std::string(op);
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(name());
    node.source = draft_.source;
    OPENRKNN_TRY(const auto values, builder_.emit(std::move(node)));
    made_.insert(values.begin(), values.end());
    return values;
  }
  Result<ValueId> node(std::string_view op, Values inputs, Attributes attributes = {}) {
    OPENRKNN_TRY(const auto outputs, nodes(op, std::move(inputs), std::move(attributes), 1));
    return outputs[0];
  }
  // The value is output `output` of the contrib node.
  Status give(size_t output, ValueId value) {
    if (!wants(output)) return {};
    if (made_.erase(value) > 0) {
      builder_.graph().rename(value, draft_.outputs[output]);
      results[output] = value;
      return {};
    }
    NodeDraft copy;
    copy.op = "Identity";
    copy.inputs = {value};
    copy.outputs = {draft_.outputs[output]};
    copy.source = draft_.source;
    OPENRKNN_TRY(const auto outputs, builder_.emit(std::move(copy)));
    results[output] = outputs[0];
    return {};
  }
  Result<ValueId> reshaped(ValueId value, const std::vector<int64_t>& dims) {
    return node("Reshape", {value, ints(dims)});
  }
  Result<ValueId> permuted(ValueId value, std::vector<int64_t> perm) {
    return node("Transpose", {value}, with("perm", std::move(perm)));
  }
  // a + b, or a when there is no b.
  Result<ValueId> plus(ValueId a, ValueId b) {
    if (!b.valid()) return a;
    return node("Add", {a, b});
  }

  Values results;

 private:
  std::string name() const {
    const auto named =
        std::find_if(draft_.outputs.begin(), draft_.outputs.end(), [](const std::string& n) { return !n.empty(); });
    return fmt::format("{}_{}", named == draft_.outputs.end() ? draft_.op : *named, draft_.op);
  }

  const NodeDraft& draft_;
  GraphBuilder& builder_;
  std::set<ValueId> made_;  // values of the expansion that have no name of the model yet
};

struct ContribOperator {
  std::string_view op;
  Status (*expand)(Expansion&);
  std::string_view attributes;  // those it knows, by spaces
};

// Operators on quantized numbers (onnx_contrib_integers.cpp).
std::span<const ContribOperator> contrib_integers();

}  // namespace openrknn::import
