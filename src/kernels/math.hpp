// Elementary functions that give the same bits on every machine, compiler and instruction set. The C library's differ
// between distributions, and calibration (so the bytes of a .rknn) depends on the golden run.
//
// Each function takes and returns double, is made of IEEE +, -, *, / only (no fma), and is accurate to a few 1e-16
// relative unless it says otherwise; rounding its result to float once gives the nearest float in all but about one of
// 10^7 cases. Arguments are floats widened to double (exp also takes any double), so subnormal floats are normal here.
// The order of operations is part of the definition: Horner's scheme, highest coefficient first. A numpy script that
// repeats the formulas in float64 gets the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace openrknn::math {

namespace detail {

// c[0] + x * (c[1] + x * (...)).
template <int N>
constexpr double horner(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // log(2) cut to 42 bits: k * kLn2High is exact for |k| < 2^11
constexpr double kLn2Low = 0x1.ef35793c76730p-45;  // the rest
constexpr double kRoundMagic = 0x1.8p52;           // (x + m) - m rounds |x| < 2^51 to the nearest integer, ties to even
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// 1/n! for n = 2..13: (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, truncation below 4e-17.
constexpr double kExpTail[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                               1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// 2 / (2n + 1) for n = 1..10: the series 2 * atanh(s) = 2s + s^3 * (2/3 + 2/5 s^2 + ...), |s| <= 0.172.
constexpr double kAtanhTail[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};

// 2 * atanh(s): log((1 + s) / (1 - s)).
constexpr double atanh2(double s) {
  const double z = s * s;
  return 2.0 * s + s * z * horner(kAtanhTail, z);
}

// erf(x) / x * sqrt(pi) / 2 in z = x^2: (-1)^n / (n! (2n + 1)), n = 0..16, for |x| < 1 (truncation below 1e-16).
constexpr double kErfSeries[] = {1.0,
                                 -1.0 / 3,
                                 1.0 / 10,
                                 -1.0 / 42,
                                 1.0 / 216,
                                 -1.0 / 1320,
                                 1.0 / 9360,
                                 -1.0 / 75600,
                                 1.0 / 685440,
                                 -1.0 / 6894720,
                                 1.0 / 76204800,
                                 -1.0 / 918086400,
                                 1.0 / 11975040000,
                                 -1.0 / 168129561600,
                                 1.0 / 2528170444800,
                                 -1.0 / 40537905408000,
                                 1.0 / 690452066304000};
constexpr double kTwoOverSqrtPi = 1.1283791670955126;

// erfc(x) * exp(x^2) for 1 <= x <= 6 in u = (t - 11/24) * 24/5, t = 1 / (1 + x/2): our own Chebyshev fit, error below
// 1e-16 (absolute; the function lies between 0.09 and 0.43).
constexpr double kErfcFit[] = {0.22142954022993411,     0.16189356804102503,     0.038560570424956737,
                               0.0055888162818351915,   0.00019713918134833932,  -8.079220419373864e-5,
                               -7.3405397726847754e-6,  1.9795614208964698e-6,   1.6356232166793622e-7,
                               -7.005214404953923e-8,   -6.8242539732383451e-10, 2.6227063551039693e-9,
                               -1.9819227867600838e-10, -7.3015419977477642e-11};

}  // namespace detail

// e^x. k = round(x * log2(e)), r = (x - k * high) - k * low, (1 + (r + r^2 * tail(r))) * 2^k. The argument is clamped
// to [-708, 709] first: beyond the range of float, so the float result is 0 or infinity there.
inline double exp(double x) {
  const double clamped = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
  const double magic = clamped * 1.4426950408889634 + detail::kRoundMagic;
  const double k = magic - detail::kRoundMagic;
  const double r = (clamped - k * detail::kLn2High) - k * detail::kLn2Low;
  const double poly = 1.0 + (r + r * r * detail::horner(detail::kExpTail, r));
  // The low bits of magic hold k in two's complement; the exponent field of 2^k is k + 1023.
  const uint64_t scale = (std::bit_cast<uint64_t>(magic) + 1023U) << 52;
  return poly * std::bit_cast<double>(scale);
}

// e^x - 1. |x| < 0.34: r + r^2 * tail(r) of exp itself; else exp(x) - 1.
inline double expm1(double x) {
  const double small = x + x * x * detail::horner(detail::kExpTail, x);
  return x > -0.34 && x < 0.34 ? small : exp(x) - 1.0;
}

// Natural logarithm of a normal double; -inf for 0, NaN below 0. x = m * 2^e with m in [sqrt(1/2), sqrt(2)),
// e * high + (e * low + 2 atanh((m - 1) / (m + 1))).
inline double log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  // Adding (1 - sqrt(1/2)) in units of the representation carries into the exponent when m >= sqrt(2).
  const uint64_t shifted = bits + (0x3FF0000000000000U - 0x3FE6A09E667F3BCDU);
  const int64_t exponent = static_cast<int64_t>(shifted >> 52) - 1023;
  const uint64_t mantissa = (shifted & 0x000FFFFFFFFFFFFFU) + 0x3FE6A09E667F3BCDU;
  const double m = std::bit_cast<double>(mantissa);
  const double e = static_cast<double>(exponent);
  const double y = e * detail::kLn2High + (e * detail::kLn2Low + detail::atanh2((m - 1.0) / (m + 1.0)));
  const double at_ends = x == 0.0 ? -detail::kInf : x < 0.0 ? detail::kNan : x;  // x itself: +inf or NaN
  return x > 0.0 && x < detail::kInf ? y : at_ends;
}

// log(1 + x). -0.29 < x < 0.4: 2 atanh(x / (2 + x)); else log(1 + x).
inline double log1p(double x) {
  const double small = detail::atanh2(x / (2.0 + x));
  return x > -0.29 && x < 0.4 ? small : log(1.0 + x);
}

inline double log2(double x) { return log(x) * 1.4426950408889634; }
inline double log10(double x) { return log(x) * 0.43429448190325182; }

// e / (e + 2) with e = expm1(2|x|), |x| cut at 22, and the sign of x.
inline double tanh(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  const double e = expm1(2.0 * (magnitude > 22.0 ? 22.0 : magnitude));
  return std::copysign(e / (e + 2.0), x);
}

// 1 / (1 + exp(-x)).
inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// max(x, 0) + log1p(exp(-|x|)).
inline double softplus(double x) {
  const double tail = log1p(exp(x < 0.0 ? x : -x));
  return x > 0.0 ? x + tail : x <= 0.0 ? tail : x;
}

// |x| < 1: x * 2/sqrt(pi) * series(x^2). Else 1 - exp(-x^2) * fit, |x| cut at 6, and the sign of x.
inline double erf(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  if (magnitude < 1.0) return x * detail::kTwoOverSqrtPi * detail::horner(detail::kErfSeries, x * x);
  const double a = magnitude > 6.0 ? 6.0 : magnitude;
  const double u = (1.0 / (1.0 + 0.5 * a) - 11.0 / 24.0) * (24.0 / 5.0);
  return std::copysign(1.0 - exp(-a * a) * detail::horner(detail::kErfcFit, u), x);
}

// x^y with the special cases of C's pow for float arguments: exp(y * log|x|), the sign of x for odd y. Relative error
// below 1e-13 (the result is a float at the end).
double pow(double x, double y);

// Sine and cosine of any float: x - n * pi/2 in three parts for |x| < 2^20, with 192 bits of 2/pi beyond; Taylor
// series on [-pi/4, pi/4].
double sin(double x);
double cos(double x);

// Float in, float out, one rounding.
inline float exp_f(float x) { return static_cast<float>(exp(static_cast<double>(x))); }
inline float log_f(float x) { return static_cast<float>(log(static_cast<double>(x))); }
inline float tanh_f(float x) { return static_cast<float>(tanh(static_cast<double>(x))); }
inline float sigmoid_f(float x) { return static_cast<float>(sigmoid(static_cast<double>(x))); }
inline float erf_f(float x) { return static_cast<float>(erf(static_cast<double>(x))); }
inline float softplus_f(float x) { return static_cast<float>(softplus(static_cast<double>(x))); }
inline float pow_f(float x, float y) { return static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y))); }

// to[i] = f(from[i]) over arrays; from == to is allowed. Loops that vectorise: use them for whole tensors.
void exp_array(const float* from, float* to, int64_t n);
void log_array(const float* from, float* to, int64_t n);
void tanh_array(const float* from, float* to, int64_t n);
void sigmoid_array(const float* from, float* to, int64_t n);
void erf_array(const float* from, float* to, int64_t n);

}  // namespace openrknn::math
