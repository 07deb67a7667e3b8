#include "core/quant_params.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace openrknn {

Status QuantParams::validate(const Shape& shape) const {
  const auto fail = [](std::string why) {
    return Error{ErrorCode::kFormat, "unusable quantization parameters", "", std::move(why), ""};
  };
  size_t expected = 1;
  if (granularity != Granularity::kTensor) {
    if (axis < 0 || axis >= shape.rank()) return fail(fmt::format("axis {} outside shape {}", axis, shape.to_string()));
    expected = static_cast<size_t>(shape[axis]);
    if (granularity == Granularity::kGroup) {
      if (group_size <= 0 || shape.rank() < 2) return fail(fmt::format("group size {}", group_size));
      expected *= static_cast<size_t>((shape[axis == 0 ? 1 : 0] + group_size - 1) / group_size);
    }
  }
  if (scales.size() != expected || zero_points.size() != expected) {
    return fail(fmt::format("{} scales and {} zero points, {} expected", scales.size(), zero_points.size(), expected));
  }
  for (const float s : scales) {
    if (!std::isfinite(s) || s <= 0.0F) return fail(fmt::format("scale {}", s));
  }
  for (const int32_t z : zero_points) {
    if (z < dtype_min(dtype) || z > dtype_max(dtype))
      return fail(fmt::format("zero point {} outside {}", z, dtype_name(dtype)));
  }
  return {};
}

QuantParams asymmetric_params(DType dtype, double min, double max) {
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  const auto lowest = static_cast<double>(dtype_min(dtype));
  const auto highest = static_cast<double>(dtype_max(dtype));
  if (min == max) {
    min = -1.0;
    max = 1.0;
  }
  double scale = (max - min) / (highest - lowest);
  // A range below the smallest normal float would give a scale that fp32 cannot divide by.
  scale = std::max(scale, 0x1p-126);
  const double zero = std::nearbyint(lowest - min / scale);
  return QuantParams::per_tensor(dtype, static_cast<float>(scale),
                                 static_cast<int32_t>(std::clamp(zero, lowest, highest)));
}

}  // namespace openrknn
