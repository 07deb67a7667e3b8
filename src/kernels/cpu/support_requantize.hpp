// Rounding of float results to quantized integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"

namespace openrknn::cpu {

// round(value) + zero, ties to even, cut to the type's range; NaN becomes the zero point.
class Requantizer {
 public:
  explicit Requantizer(DType dtype)
      : lowest_(static_cast<double>(dtype_min(dtype))), highest_(static_cast<double>(dtype_max(dtype))) {}

  int32_t operator()(float value, int64_t zero) const {
    constexpr double kMagic = 0x1.8p52;  // (x + m) - m rounds |x| < 2^51, ties to even
    const double wide = static_cast<double>(value);
    const double bounded = wide > -0x1p40 ? std::min(wide, 0x1p40) : wide == wide ? -0x1p40 : 0.0;
    const double rounded = (bounded + kMagic) - kMagic + static_cast<double>(zero);
    return static_cast<int32_t>(std::clamp(rounded, lowest_, highest_));
  }

 private:
  double lowest_;
  double highest_;
};

}  // namespace openrknn::cpu
