#include "quant/calibration.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/log.hpp"
#include "quant/observer.hpp"

namespace openrknn::quant {
namespace {

constexpr size_t kLanes = 16;

}  // namespace

void observe(std::span<const float> values, Range& range) {
  // Elementwise minimum and maximum of 16 lanes: the compiler turns it into vector code, and the result is exact in any
  // order.
  std::array<float, kLanes> low;
  std::array<float, kLanes> high;
  low.fill(std::numeric_limits<float>::infinity());
  high.fill(-std::numeric_limits<float>::infinity());
  const auto take = [&range](float x, float& l, float& h) {
    if (!std::isfinite(x)) {
      ++range.non_finite;
      return;
    }
    l = x < l ? x : l;
    h = x > h ? x : h;
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const float* x = values.data() + i;
    uint32_t special = 0;
    for (size_t j = 0; j < kLanes; ++j)
      special |= static_cast<uint32_t>((std::bit_cast<uint32_t>(x[j]) & 0x7F800000U) == 0x7F800000U);
    if (special != 0) {
      for (size_t j = 0; j < kLanes; ++j) take(x[j], low[j], high[j]);
      continue;
    }
    for (size_t j = 0; j < kLanes; ++j) {
      low[j] = x[j] < low[j] ? x[j] : low[j];
      high[j] = x[j] > high[j] ? x[j] : high[j];
    }
  }
  for (; i < values.size(); ++i) take(values[i], low[0], high[0]);
  const float smallest = *std::min_element(low.begin(), low.end());
  const float largest = *std::max_element(high.begin(), high.end());
  if (smallest > largest) return;  // nothing finite
  range.min = range.seen ? std::min(range.min, static_cast<double>(smallest)) : smallest;
  range.max = range.seen ? std::max(range.max, static_cast<double>(largest)) : largest;
  range.seen = true;
}

Result<Ranges> calibrate(const Graph& graph, const SampleSource& next, int64_t expected_samples) {
  OPENRKNN_TRY(const eval::Evaluator evaluator, eval::Evaluator::make(graph));
  Ranges ranges;
  const auto observer = [&ranges](ValueId id, const TensorView& data) {
    if (data.dtype == DType::kFloat32) observe(data.as<float>(), ranges[id]);
  };
  Progress progress("calibrating", expected_samples);
  int64_t samples = 0;
  while (true) {
    OPENRKNN_TRY(auto sample, next());
    if (!sample) break;
    OPENRKNN_CHECK_OK(evaluator.run(*sample, observer));
    ++samples;
    progress.step();
  }
  if (samples == 0) {
    return Error{ErrorCode::kInvalidArgument, "cannot calibrate", graph.source_file, "there are no samples",
                 "give a list of at least one sample with --dataset"};
  }
  for (const ValueId id : graph.values()) {
    const Tensor* constant = graph.constant(id);
    if (constant != nullptr && constant->dtype() == DType::kFloat32) observe(constant->as<float>(), ranges[id]);
  }
  return ranges;
}

}  // namespace openrknn::quant
