#include "kernels/math.hpp"

#include <bit>
#include <cmath>

#include "kernels/isa.hpp"
#include "kernels/math_kernels.hpp"

namespace openrknn::math {
namespace {

// pi/2 in three parts of 33, 33 and 53 bits: n * part is exact for the first two while |n| < 2^20.
constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0.63661977236758134;

// The bits of 2/pi after the binary point.
constexpr uint32_t kTwoOverPiBits[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599,
                                       0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0};

// Taylor coefficients of sin(r) / r and cos(r) in r^2; truncation below 1e-17 for |r| <= pi/4.
constexpr double kSin[] = {1.0,          -1.0 / 6,        1.0 / 120,          -1.0 / 5040,
                           1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
constexpr double kCos[] = {1.0,
                           -1.0 / 2,
                           1.0 / 24,
                           -1.0 / 720,
                           1.0 / 40320,
                           -1.0 / 3628800,
                           1.0 / 479001600.0,
                           -1.0 / 87178291200.0,
                           1.0 / 20922789888000.0};

struct Reduced {
  uint64_t quadrant = 0;  // modulo 4
  double rest = 0.0;      // in [-pi/4, pi/4]
};

// 64 bits of 2/pi that start `bit` bits after the binary point.
uint64_t window(int64_t bit) {
  const auto word = [](int64_t i) { return i < 0 ? uint64_t{0} : uint64_t{kTwoOverPiBits[i]}; };
  const int64_t first = bit >= 0 ? bit / 32 : -((31 - bit) / 32);
  const int64_t offset = bit - first * 32;
  const uint64_t high = (word(first) << 32) | word(first + 1);
  return offset == 0 ? high : (high << offset) | (word(first + 2) >> (32 - offset));
}

// x = m * 2^e with a 24-bit integer m: of the product m * (2/pi) only the two integer bits and the fraction matter, so
// bits of 2/pi of weight 4 and above (after scaling by 2^e) are left out.
Reduced reduce_large(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x < 0.0 ? -x : x);
  const uint64_t m = ((bits & 0x000FFFFFFFFFFFFFU) | 0x0010000000000000U) >> 29;  // floats have 24 bits
  const int64_t e = static_cast<int64_t>(bits >> 52) - 1023 - 23;
  // A bit i places after the point (first: i = 0, weight 2^-1) has weight 2^(e - 1 - i); those of weight <= 2 matter.
  const int64_t first = e - 2;
  // 128 bits from there as fixed point with two integer bits: P * 2^-126; m * P modulo 2^128.
  const uint64_t high = window(first);
  const uint64_t low = window(first + 64);
  __extension__ using Wide = unsigned __int128;
  const Wide product = ((Wide{high} << 64) | low) * m;
  const Wide rounded = product + (Wide{1} << 125);
  const Wide difference = product - ((rounded >> 126) << 126);
  const double fraction = static_cast<double>(static_cast<int64_t>(difference >> 64)) * 0x1p-62 +
                          static_cast<double>(static_cast<uint64_t>(difference)) * 0x1p-126;
  Reduced r{static_cast<uint64_t>(rounded >> 126) & 3U, fraction * 1.5707963267948966};
  if (x < 0.0) r = {(4U - r.quadrant) & 3U, -r.rest};
  return r;
}

Reduced reduce(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  if (magnitude >= 0x1p20) return reduce_large(x);
  const double magic = x * kTwoOverPi + detail::kRoundMagic;
  const double n = magic - detail::kRoundMagic;
  return {std::bit_cast<uint64_t>(magic) & 3U, ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3};
}

double sine_of(const Reduced& r) {
  const double z = r.rest * r.rest;
  const double value = (r.quadrant & 1U) != 0 ? detail::horner(kCos, z) : r.rest * detail::horner(kSin, z);
  return (r.quadrant & 2U) != 0 ? -value : value;
}

bool is_integer(double y) { return std::floor(y) == y; }
bool is_odd(double y) { return is_integer(y) && std::floor(y * 0.5) * 2.0 != y; }

}  // namespace

double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return detail::kNan;
  const double magnitude = x < 0.0 ? -x : x;
  const bool negative = std::signbit(x) && is_odd(y);
  if (x < 0.0 && magnitude < detail::kInf && !is_integer(y)) return detail::kNan;
  double result;
  if (magnitude == 1.0) {
    result = 1.0;
  } else if (magnitude == 0.0 || magnitude == detail::kInf || y == detail::kInf || y == -detail::kInf) {
    result = (magnitude > 1.0) == (y > 0.0) ? detail::kInf : 0.0;
  } else {
    result = exp(y * log(magnitude));
  }
  return negative ? -result : result;
}

double sin(double x) {
  if (!(x - x == 0.0)) return detail::kNan;
  if (x == 0.0) return x;
  return sine_of(reduce(x));
}

double cos(double x) {
  if (!(x - x == 0.0)) return detail::kNan;
  Reduced r = reduce(x);
  r.quadrant = (r.quadrant + 1U) & 3U;
  return sine_of(r);
}

void exp_array(const float* from, float* to, int64_t n) { math_kernels().exp(from, to, n); }
void log_array(const float* from, float* to, int64_t n) { math_kernels().log(from, to, n); }
void tanh_array(const float* from, float* to, int64_t n) { math_kernels().tanh(from, to, n); }
void sigmoid_array(const float* from, float* to, int64_t n) { math_kernels().sigmoid(from, to, n); }
void erf_array(const float* from, float* to, int64_t n) { math_kernels().erf(from, to, n); }

const MathKernels& math_kernels() {
#if defined(__x86_64__)
  const Isa vectors = without_dot(isa());
  if (vectors == Isa::kAvx512) return math_kernels_avx512();
  if (vectors == Isa::kAvx2) return math_kernels_avx2();
#endif
  return math_kernels_scalar();
}

}  // namespace openrknn::math
