// What a run without an observer executes: elementwise nodes that no one else reads are computed where their operands
// are made.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.hpp"
#include "kernels/cpu/registry.hpp"

namespace openrknn::eval {

// A node as it is executed.
struct Unit {
  std::shared_ptr<const Node> node;
  cpu::Kernel kernel = nullptr;
  std::vector<cpu::Stage> stages;  // behind or, in a unit of elementwise nodes, instead of the node's own work
};

// Each node for itself.
std::vector<Unit> plain_units(const Graph& graph, const std::vector<NodeId>& order);

// The nodes of `order`, with convolutions doing what follows them element by element (a residual addition, activations,
// arithmetic with constants or tensors that are there already) and zero padding in front of them, and elementwise nodes
// in a row done together. Every
// result that is left is the same to the bit. A unit's node has the first one's name and operator, and the operators
// that it took in as attribute "stages". `slots`: larger than the index of any value.
std::vector<Unit> fused_units(const Graph& graph, const std::vector<NodeId>& order, size_t slots);

}  // namespace openrknn::eval
