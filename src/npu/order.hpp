// The order in which nodes are executed: the config call's compute_order.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace openrknn::npu {

// "WidthFirst": breadth-first, a node as soon as its operands exist; "DepthFirst": one branch to its end before the
// next.
Result<std::vector<NodeId>> order_nodes(const Graph& graph, const std::string& compute_order);

}  // namespace openrknn::npu
