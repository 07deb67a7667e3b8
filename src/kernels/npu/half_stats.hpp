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
constexpr int kDoubleBits = 53;

// The largest span of n values whose products with others add up exactly in doubles.
static inline int most_span(int64_t n, HalfStats other) {
  const int carries = n <= 1 ? 0 : 64 - __builtin_clzll(static_cast<uint64_t>(n - 1));
  return kDoubleBits - carries - other.span;
}

}  // namespace openrknn::npu
