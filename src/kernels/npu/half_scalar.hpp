// Halves to floats and back in plain integers, for files compiled per instruction set: base/half.hpp includes library
// headers, whose inline functions must not be compiled for one instruction set and used for all.
#pragma once

#include <stdint.h>
#include <string.h>

namespace openrknn::npu {
namespace {

[[maybe_unused]] inline float float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

[[maybe_unused]] inline uint32_t bits_of_float(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

[[maybe_unused]] inline float half_to_float_scalar(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t magnitude = h & 0x7FFFU;
  if (magnitude >= 0x7C00U) {  // a NaN keeps its payload and becomes quiet, as processors convert it
    return float_of_bits(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13) | (magnitude > 0x7C00U ? 0x400000U : 0U));
  }
  if (magnitude >= 0x400U) return float_of_bits(sign | ((magnitude << 13) + (112U << 23)));
  const float value = static_cast<float>(magnitude) * 0x1p-24F;
  return sign != 0 ? -value : value;
}

// Ties to even; NaN becomes 0x7E00.
[[maybe_unused]] inline uint16_t float_to_half_scalar(float f) {
  const uint32_t bits = bits_of_float(f);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return 0x7E00U;
  if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (magnitude >= 0x38800000U) {                                              // normal halves
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13));
  }
  // Subnormal: 0.5 has the unit 2^-24 as its last place but one (ulp 2^-24 for [0.5, 1)), so the sum rounds there.
  const float shifted = float_of_bits(magnitude) + 0.5F;
  return static_cast<uint16_t>(sign | (bits_of_float(shifted) - 0x3F000000U));
}

}  // namespace
}  // namespace openrknn::npu
