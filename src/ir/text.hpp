// The text form of a Graph: printed by --dump-after, parsed by tests.
//
//   graph "name" {
//     input %x: float32[1,3,8,8]
//     const %w: float32[4,3,1,1] = {0.5, ...}        (or = seeded(7, -1, 1), = fill(0.5), = <1234 values> when elided)
//     %y: float32[1,4,8,8] = Conv(%x, %w, _) {kernel_shape=[1,1], group=1} "conv1"
//     output %y
//   }
//
// Names with other characters than letters, digits and _.-/#$@ are quoted: %"a b:0". A comment runs from // to the end
// of the line. A type may be followed by quant(int8, tensor, [0.5], [-3]) (or channel AXIS, or group AXIS SIZE), then
// by aka ["a", "b"] (aliases); a node by from ["a", "b"] (its source nodes, when they are more than its own name).
// `[?]` stands for a shape that is not known. Attributes: 1 is an int, 1.0 a float, [] an empty list of ints (floats[]
// and strings[] the others), float32[2]{1, 2} a tensor.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.hpp"

namespace openrknn {

struct PrintOptions {
  int64_t max_constant_elements = 16;  // larger constants are printed as <N values, checksum>, which does not parse
};

std::string print_graph(const Graph& graph, const PrintOptions& options = {});
// Value types may be left out of a node's results ("%y = Relu(%x)"): the caller runs ops::infer_all. Errors give line
// and column.
Result<Graph> parse_graph(std::string_view text, const std::string& name = "<text>");

}  // namespace openrknn
