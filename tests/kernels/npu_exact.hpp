// Exact statements that the tests hold the NPU kernels against, written from the specification and not from the
// kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace openrknn::testing {

__extension__ typedef __int128 Int128;

// Values of a half from its definition: (-1)^s * 2^(e - 15) * 1.m, or 2^-14 * 0.m.
inline double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const double mantissa = (h & 1023) / 1024.0;
  double v;
  if (exponent == 31) {
    v = (h & 1023) != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    v = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
  }
  return (h & 0x8000) != 0 ? -v : v;
}

// An exact dyadic number: integer * 2^-60, |integer| < 2^126. Enough for sums of products of halves.
class Dyadic {
 public:
  Dyadic() = default;
  explicit Dyadic(double x) {
    int e = 0;
    const auto m = static_cast<int64_t>(std::ldexp(std::frexp(x, &e), 53));  // x == m * 2^(e - 53)
    const int shift = e - 53 + 60;
    // Below the unit only the neighbours of zero that nearest_float tries: cut, they never win.
    units_ = shift >= 0 ? static_cast<Int128>(m) << shift : static_cast<Int128>(m) >> std::min(-shift, 126);
  }
  void add(const Dyadic& other) { units_ += other.units_; }
  Dyadic distance(const Dyadic& other) const {
    Dyadic d;
    d.units_ = units_ > other.units_ ? units_ - other.units_ : other.units_ - units_;
    return d;
  }
  bool operator<(const Dyadic& other) const { return units_ < other.units_; }
  bool operator==(const Dyadic& other) const { return units_ == other.units_; }
  double approximate() const { return std::ldexp(static_cast<double>(units_), -60); }

 private:
  Int128 units_ = 0;
};

// The fp32 number nearest to x; of two equally near ones that with the even mantissa. Found by trying the neighbours.
inline float nearest_float(const Dyadic& x) {
  const auto guess = static_cast<float>(x.approximate());
  const float candidates[3] = {guess, std::nextafter(guess, -INFINITY), std::nextafter(guess, INFINITY)};
  float best = guess;
  for (const float c : candidates) {
    const Dyadic d = x.distance(Dyadic(c)), d_best = x.distance(Dyadic(best));
    uint32_t bits;
    std::memcpy(&bits, &c, sizeof bits);
    if (d < d_best || (d == d_best && bits % 2 == 0)) best = c;
  }
  return best == 0.0F ? 0.0F : best;
}

// The exact sum of products of finite halves, rounded once.
inline float exact_group(std::span<const uint16_t> a, std::span<const uint16_t> b) {
  Dyadic sum;
  for (size_t i = 0; i < a.size(); ++i) sum.add(Dyadic(half_value(a[i]) * half_value(b[i])));
  return nearest_float(sum);
}

// floor(p / 2^s), the nearest integer with ties to even, and with ties away from zero: by division with remainder.
inline Int128 floor_div(Int128 p, Int128 d) {
  Int128 q = p / d;
  if (q * d > p) --q;
  return q;
}
inline Int128 nearest_even(Int128 p, int s) {
  const Int128 d = static_cast<Int128>(1) << s;
  const Int128 q = floor_div(p, d), rest = p - q * d;
  if (2 * rest != d) return 2 * rest > d ? q + 1 : q;
  return q % 2 == 0 ? q : q + 1;
}
inline Int128 saturate(Int128 x, int bits) {
  const Int128 top = (static_cast<Int128>(1) << (bits - 1)) - 1;
  return x > top ? top : x < -top - 1 ? -top - 1 : x;
}

// Halves of every kind: normals of all sizes, subnormals, zeros. No infinities, no NaN.
template <typename Rng>
uint16_t any_finite_half(Rng& rng) {
  const uint16_t h = static_cast<uint16_t>(rng());
  return (h & 0x7C00) == 0x7C00 ? static_cast<uint16_t>(h & 0xBFFF) : h;
}

}  // namespace openrknn::testing
