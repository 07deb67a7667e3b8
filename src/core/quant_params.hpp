// How integers stand for reals: real = scale * (integer - zero_point).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace openrknn {

enum class Granularity : uint8_t { kTensor, kChannel, kGroup };

struct QuantParams {
  DType dtype = DType::kInt8;
  Granularity granularity = Granularity::kTensor;
  int axis = 0;                      // of the channels, for kChannel and kGroup
  int group_size = 0;                // input channels a group, for kGroup
  std::vector<float> scales;         // one per tensor, channel, or [channel][group]
  std::vector<int32_t> zero_points;  // same count

  static QuantParams per_tensor(DType dtype, float scale, int32_t zero_point) {
    return {dtype, Granularity::kTensor, 0, 0, {scale}, {zero_point}};
  }
  float scale() const { return scales[0]; }
  int32_t zero_point() const { return zero_points[0]; }
  // Scales finite and > 0, zero points inside the type, counts as the granularity and `shape` say.
  Status validate(const Shape& shape) const;
  bool operator==(const QuantParams&) const = default;
};

// The parameters of an asymmetric range: widened to contain 0, scale = (max - min) / (2^bits - 1),
// zero_point = round_half_even(lowest - min / scale). An empty range (min == max == 0) counts as [-1, 1].
// Source: spec/sdk.md 5.1, confirmed by the ranges of the vendor's files.
QuantParams asymmetric_params(DType dtype, double min, double max);

}  // namespace openrknn
