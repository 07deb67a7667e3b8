// The exact sum of products of halves. Every half is a multiple of 2^-24 below 2^16, so a product is a multiple of
// 2^-48 below 2^32 and 64 of them stay below 2^38: 87 bits with the sign, held as one 128-bit integer in units of
// 2^-48.
#include <bit>
#include <cstdint>

#include "kernels/npu/conv.hpp"

namespace openrknn::npu {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

constexpr uint32_t kQuietNan = 0x7FC00000U;
constexpr uint32_t kInfinity = 0x7F800000U;
constexpr int kUnitExponent = -48;

bool is_special(uint16_t h) { return (h & 0x7C00U) == 0x7C00U; }
bool is_nan(uint16_t h) { return (h & 0x7FFFU) > 0x7C00U; }
bool is_zero(uint16_t h) { return (h & 0x7FFFU) == 0; }

// The value in units of 2^-24: a mantissa of 11 bits shifted by at most 29.
int64_t fixed_point(uint16_t h) {
  const int exponent = (h >> 10) & 0x1F;
  const int64_t mantissa = h & 0x3FF;
  const int64_t magnitude = exponent == 0 ? mantissa : (mantissa | 0x400) << (exponent - 1);
  return (h & 0x8000U) != 0 ? -magnitude : magnitude;
}

int bit_width(UnsignedWide x) {
  const auto high = static_cast<uint64_t>(x >> 64);
  return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                   : static_cast<int>(std::bit_width(static_cast<uint64_t>(x)));
}

// sum * 2^-48 rounded once; never overflows nor becomes subnormal (2^-48 <= |sum * 2^-48| < 2^38).
float round_to_float(Wide sum) {
  if (sum == 0) return 0.0F;
  const bool negative = sum < 0;
  UnsignedWide magnitude = negative ? -static_cast<UnsignedWide>(sum) : static_cast<UnsignedWide>(sum);
  int exponent = kUnitExponent;
  const int excess = bit_width(magnitude) - 24;
  if (excess > 0) {
    const UnsignedWide half = static_cast<UnsignedWide>(1) << (excess - 1);
    const UnsignedWide rest = magnitude & ((half << 1) - 1);
    magnitude >>= excess;
    if (rest > half || (rest == half && (magnitude & 1) != 0)) ++magnitude;
    exponent += excess;
  }
  // At most 2^24: exact as a float, and scaling by a power of two is exact here.
  float value = static_cast<float>(static_cast<uint32_t>(magnitude));
  value *= std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  return negative ? -value : value;
}

// At least one operand is an infinity or a NaN.
float special_dot(const uint16_t* a, const uint16_t* b, int64_t n) {
  bool plus = false, minus = false;
  for (int64_t i = 0; i < n; ++i) {
    if (is_nan(a[i]) || is_nan(b[i])) return std::bit_cast<float>(kQuietNan);
    if (!is_special(a[i]) && !is_special(b[i])) continue;
    if (is_zero(a[i]) || is_zero(b[i])) return std::bit_cast<float>(kQuietNan);
    (((a[i] ^ b[i]) & 0x8000U) != 0 ? minus : plus) = true;
  }
  if (plus && minus) return std::bit_cast<float>(kQuietNan);
  return std::bit_cast<float>(kInfinity | (minus ? 0x80000000U : 0U));
}

}  // namespace

float exact_dot_f16(const uint16_t* a, const uint16_t* b, int64_t n) {
  Wide sum = 0;
  bool special = false;
  for (int64_t i = 0; i < n; ++i) {
    special |= is_special(a[i]) || is_special(b[i]);
    sum += static_cast<Wide>(fixed_point(a[i])) * fixed_point(b[i]);
  }
  return special ? special_dot(a, b, n) : round_to_float(sum);
}

}  // namespace openrknn::npu
