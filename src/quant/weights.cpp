#include "quant/weights.hpp"

#include <algorithm>
#include <cmath>

namespace openrknn::quant {

namespace {

// Ranges that are symmetric within a step get zero point 0 and hold both ends: the rounding of a zero point of -0.5
// would cut one end and stretch the other, and with many weights at the ends (binary, ternary) the error grows with the
// sum of the input.
QuantParams range_params(double low, double high) {
  QuantParams asymmetric = asymmetric_params(DType::kInt8, low, high);
  const double largest = std::max(-low, high);
  if (largest <= 0 || std::abs(low + high) >= static_cast<double>(asymmetric.scale())) return asymmetric;
  return QuantParams::per_tensor(DType::kInt8, static_cast<float>(std::max(largest / 127, 0x1p-126)), 0);
}

}  // namespace

QuantParams weight_params(const Tensor& weights, int axis) {
  const Shape& shape = weights.shape();
  const auto values = weights.as<float>();
  const int64_t channels = axis < 0 ? 1 : shape[axis];
  const int64_t inner = axis < 0 ? shape.elements() : shape.elements(axis + 1, shape.rank());
  std::vector<double> low(static_cast<size_t>(channels), 0.0);
  std::vector<double> high(static_cast<size_t>(channels), 0.0);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float x = values[static_cast<size_t>(i)];
    if (!std::isfinite(x)) continue;
    const auto c = static_cast<size_t>((i / inner) % channels);
    low[c] = std::min(low[c], static_cast<double>(x));
    high[c] = std::max(high[c], static_cast<double>(x));
  }
  QuantParams params;
  params.granularity = axis < 0 ? Granularity::kTensor : Granularity::kChannel;
  params.axis = std::max(axis, 0);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const QuantParams one = range_params(low[c], high[c]);
    params.scales.push_back(one.scale());
    params.zero_points.push_back(one.zero_point());
  }
  return params;
}

int8_t quantize_value(float x, double scale, int32_t zero_point) {
  if (std::isnan(x)) return static_cast<int8_t>(zero_point);
  const double q = std::nearbyint(static_cast<double>(x) / scale) + zero_point;
  return static_cast<int8_t>(std::clamp(q, -128.0, 127.0));
}

}  // namespace openrknn::quant
