// The smallest and largest finite value of a stretch of floats.
#pragma once

#include <cstdint>
#include <span>

#include "quant/calibration.hpp"

namespace openrknn::quant {

// Widens `range` by the values; NaN and infinities are counted, not used.
void observe(std::span<const float> values, Range& range);

}  // namespace openrknn::quant
