// What a run without an observer executes: nodes that no one else reads are computed where their operand is made.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.hpp"

namespace openrknn::eval {

// The nodes of `order`, with a residual addition and an activation behind a convolution done by the convolution. Every
// result that is left is the same to the bit. `slots`: larger than the index of any value.
std::vector<std::shared_ptr<const Node>> fuse_behind_convolutions(const Graph& graph, const std::vector<NodeId>& order,
                                                                  size_t slots);

}  // namespace openrknn::eval
