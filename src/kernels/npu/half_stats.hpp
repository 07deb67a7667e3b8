#pragma once

#include <stdint.h>

namespace openrknn::npu {

// What decides whether doubles hold a group's sum exactly: all values are multiples of 2^(top - span), below 2^top.
// kSpecialSpan marks infinities and NaN.
struct HalfStats {
  uint8_t span;
  int8_t top;
};
constexpr int kSpecialSpan = 255;

}  // namespace openrknn::npu
