// Quantization that a model brings with it: QuantizeLinear and DequantizeLinear around float operators (QAT), or
// operators on quantized values (QLinearConv), which are brought to that form first.
#pragma once

#include <map>
#include <string>

#include "quant/calibration.hpp"

namespace openrknn::quant {

// Ranges by the name of the tensor that was quantized, and of the one that stood for it.
using EmbeddedRanges = std::map<std::string, Range, std::less<>>;

// Takes the pairs of one int8 or uint8 scale out of the graph, so that float operators meet again and can become tasks
// of the NPU; what they said of the tensor's range is returned, and stays as a Clip where the tensor may leave it.
// Other pairs stay and are computed. It changes what the graph computes (by the rounding that the NPU does again), so
// it is no rewrite of the optimiser's.
//
// inputs_saturate: graph inputs will be stored in int8, which cuts them as the model's quantizer does.
Result<EmbeddedRanges> absorb_quantization(Graph& graph, bool inputs_saturate);

// Embedded ranges take the place of measured ones. Ranges that `ranges` lacks are added where they can be known:
// constants, and averages (a sum of magnitudes of weights up to 1) of what has a range.
void apply_embedded(const Graph& graph, const EmbeddedRanges& embedded, Ranges& ranges);

// The tensors that int8 tasks use and that no range is known for, by name.
std::vector<std::string> without_range(const Graph& graph, const Placement& placement, const Ranges& ranges);

}  // namespace openrknn::quant
