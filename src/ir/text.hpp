// The text form of a Graph: printed by --dump-after, parsed by tests.
//
//   graph "name" {
//     input %x: float32[1,3,8,8]
//     const %w: float32[4,3,1,1] = {0.5, ...}        (or = seeded(7, -1, 1), = fill(0.5), = <1234 values> when elided)
//     %y: float32[1,4,8,8] = Conv(%x, %w, _) {kernel_shape=[1,1], group=1} "conv1"
//     output %y
//   }
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.hpp"

namespace openrknn {

struct PrintOptions {
  int64_t max_constant_elements = 16;  // larger constants are printed as <N values, checksum>, which does not parse
};

std::string print_graph(const Graph& graph, const PrintOptions& options = {});
// Value types may be left out of a node's results ("%y = Relu(%x)"): the caller runs ops::infer_all. Errors give line and column.
Result<Graph> parse_graph(std::string_view text, const std::string& name = "<text>");

}  // namespace openrknn
