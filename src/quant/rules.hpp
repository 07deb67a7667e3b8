// May this node run on the NPU of this target, in this format? One rule an operator family; a refusal names the limit.
#pragma once

#include <optional>
#include <string>

#include "ir/graph.hpp"
#include "quant/placement.hpp"
#include "target/target.hpp"

namespace openrknn::quant {

struct Refusal {
  std::string limit;   // "conv.kernel.max"
  std::string reason;  // "kernel 33 x 33, at most 31 (sdk.md C.2)"
};

// nullopt: it may.
std::optional<Refusal> npu_refuses(const Graph& graph, const Node& node, const target::Target& target, Format format);

// How an operator takes part in number formats.
enum class FormatRole {
  kOwn,      // computes in the format it is given (convolutions, elementwise, activations)
  kFollows,  // moves or selects values: keeps the format and the parameters of its first operand
  kHalf,     // on the NPU only in fp16 (Softmax, LayerNormalization, Div, MatMul of two tensors, ...)
};
FormatRole format_role(const Node& node);

// An activation that the NPU's clamp, slope or table stage computes.
bool is_npu_activation(const std::string& op);

// Does the node move elements without computing (so that it can be done on raw bytes anywhere)?
bool is_movement(const std::string& op);

}  // namespace openrknn::quant
