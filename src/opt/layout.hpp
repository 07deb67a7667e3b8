// What reshape.cpp and transpose.cpp share.
#pragma once

#include <optional>
#include <vector>

#include "opt/match.hpp"

namespace openrknn::opt {

// The permutation of a Transpose; reversed axes when the attribute is absent.
std::vector<int64_t> perm_of(const Graph& graph, const Node& node);
// For a node that maps single elements of one operand, all other operands being constants: that operand's slot.
std::optional<size_t> elementwise_operand(const Graph& graph, const Node& node);

}  // namespace openrknn::opt
