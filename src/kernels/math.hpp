// Elementary functions that give the same bits on every machine, compiler and instruction set. The C library's differ
// between distributions, and calibration (so the bytes of a .rknn) depends on the golden run.
//
// Each function takes and returns double, is made of IEEE +, -, *, / only (no fma), and is accurate to a few 1e-16
// relative unless it says otherwise; rounding its result to float once gives the nearest float in all but about one of
// 10^7 cases. Arguments are floats widened to double (exp also takes any double), so subnormal floats are normal here.
// The order of operations is part of the definition: Horner's scheme, highest coefficient first. A numpy script that
// repeats the formulas in float64 gets the same bits.
#pragma once

#include <cstdint>

namespace openrknn::math {

#define OPENRKNN_MATH inline
#include "kernels/math_formulas.inc"
#undef OPENRKNN_MATH

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
