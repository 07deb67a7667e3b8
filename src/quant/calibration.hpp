// Ranges of activations, from samples that are streamed one by one through the golden run.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "quant/placement.hpp"

namespace openrknn::quant {

struct Range {
  double min = 0;
  double max = 0;
  bool seen = false;
  int64_t non_finite = 0;  // values that were NaN or infinite, left out of the range
};

// Keyed by value; only float values.
using Ranges = std::map<ValueId, Range>;

// Gives the next sample (graph inputs by name, mean and std applied), or nothing when there are no more.
using SampleSource = std::function<Result<std::optional<eval::Tensors>>()>;

// `normal`: the plain minimum and maximum over all samples. Memory does not grow with the number of samples.
Result<Ranges> calibrate(const Graph& graph, const SampleSource& next, int64_t expected_samples);

// Sets Value::quant on every value that an int8 node reads or writes: ranges shared where the operation demands it
// (MaxPool, Reshape, Transpose, Concat in place), cut where the activation's range is known. Weights: per channel or
// per layer, asymmetric, widened to 0.
Status assign_params(Graph& graph, const Placement& placement, const Ranges& ranges, const std::string& method);

// One line for each Concat in int8 (after assign_params) whose one scale leaves an operand fewer than kLeastLevels of
// its 256 levels: boxes of 0..640 beside scores of 0..1 leave these one level. Names the operand, the levels and ways
// out.
constexpr int kLeastLevels = 32;
std::vector<std::string> crowded_concats(const Graph& graph, const Placement& placement, const Ranges& ranges);

}  // namespace openrknn::quant
