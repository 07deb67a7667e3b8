// The scalar statement of the NPU's integer and half arithmetic, in the hardware's own order. Everything else in this
// folder must return the same bytes. Evidence for each formula: docs/ARITHMETIC.md.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/numerics.hpp"

namespace openrknn::npu {

constexpr int32_t sat32(int64_t x) {
  return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : static_cast<int32_t>(x);
}
constexpr int8_t sat8(int64_t x) { return x > 127 ? int8_t{127} : x < -128 ? int8_t{-128} : static_cast<int8_t>(x); }

constexpr bool within(int64_t x, int64_t limit) { return x >= -limit && x <= limit; }

inline double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

// p / 2^s rounded to nearest, ties to even; any p, 0 <= s <= 63.
constexpr int64_t rne(int64_t p, int s) {
  if (s == 0) return p;
  const int64_t q = p >> s;
  const uint64_t half = uint64_t{1} << (s - 1);
  const uint64_t rest = static_cast<uint64_t>(p) & ((half << 1) - 1);
  return q + ((rest > half || (rest == half && (q & 1) != 0)) ? 1 : 0);
}

// (p + z * 2^s) / 2^s rounded in the same way, without the sum that could overflow; |z| < 2^32. The integer z moves the
// result by z, except that it decides which neighbour of a tie is even.
constexpr int64_t rne_with_offset(int64_t p, int s, int64_t z) {
  if (s == 0) return p + z;
  const int64_t q = p >> s;
  const uint64_t half = uint64_t{1} << (s - 1);
  const uint64_t rest = static_cast<uint64_t>(p) & ((half << 1) - 1);
  return q + z + ((rest > half || (rest == half && ((q + z) & 1) != 0)) ? 1 : 0);
}

// First stage: t = acc + A + B * S, then the channel multiplier and shift (signs apart), saturated to int32.
// |t| < 2^40 (acc and A are int32, B int16, |S| < 2^24) and 17 bits of multiplier: the product cannot overflow.
constexpr int32_t channel_stage(int64_t t, int32_t multiplier, int shift, int shift_negative, bool bypass) {
  if (bypass) return sat32(t);
  const int64_t p = t * multiplier;
  return sat32(rne(p, p >= 0 ? shift : shift_negative));
}

// Output stage: multiplier, shift, zero point, int8. |v| < 2^40, |multiplier| <= 2^16.
constexpr int8_t output_stage(int64_t v, int32_t multiplier, int shift, int32_t zero_point, bool zero_point_first) {
  const int64_t p = v * multiplier;
  if (zero_point_first) return sat8(rne_with_offset(p, shift, zero_point));
  return sat8(rne(p, shift) + zero_point);
}

// (x + offset) * multiplier, shifted: an elementwise operand brought to the accumulator's scale. x is int8 or int16,
// offset and multiplier 32 bits: below 2^63.
constexpr int64_t operand_stage(int64_t x, int32_t offset, int32_t multiplier, int shift) {
  return rne((x + offset) * multiplier, shift);
}

// Average pool of the PPU: sum of kh * kw int8 values.
constexpr int8_t average_stage(int32_t sum, int kernel_h, int kernel_w) {
  const int32_t n = kernel_h * kernel_w;
  const int32_t magnitude = sum < 0 ? -sum : sum;
  const int32_t sign = sum < 0 ? -1 : 1;
  int32_t q = sign * ((magnitude + n / 2) / n);
  const int32_t rest = sum - q * n;
  const bool tie = n % 2 == 0 && (rest < 0 ? -rest : rest) == n / 2;
  if (tie) {
    const bool inexact = 65536 % kernel_w != 0 || 65536 % kernel_h != 0;
    if (inexact || (q & 1) != 0) q -= sign;
  }
  return static_cast<int8_t>(q);
}

// Index and value of the look-up table: int16 [2][513], negative half first; see model::Activation.
constexpr int32_t kTableLimit = 16384;
constexpr int kTableSelect = 5;
constexpr int32_t table_value(const int16_t* table, int64_t x) {
  const int64_t clamped = x < -kTableLimit ? -kTableLimit : x > kTableLimit ? kTableLimit : x;
  const int16_t* half = clamped < 0 ? table : table + 513;
  const int64_t d = clamped < 0 ? clamped + kTableLimit : clamped;
  const int64_t i = d >> kTableSelect;
  const int64_t f = d & ((1 << kTableSelect) - 1);
  if (i >= 512) return half[512];
  return static_cast<int32_t>(half[i] + (((half[i + 1] - half[i]) * f) >> kTableSelect));
}

}  // namespace openrknn::npu
