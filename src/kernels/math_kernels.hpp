// Loops over the functions of math.hpp, one table per instruction set. Included by files that are compiled with flags
// of their own: nothing here may pull inline code of the standard library into them.
#pragma once

#include <stdint.h>

namespace openrknn::math {

struct MathKernels {
  const char* isa;  // that these are compiled for

  // to[i] = f(from[i]) in double, rounded once; from == to is allowed.
  void (*exp)(const float* from, float* to, int64_t n);
  void (*log)(const float* from, float* to, int64_t n);
  void (*tanh)(const float* from, float* to, int64_t n);
  void (*sigmoid)(const float* from, float* to, int64_t n);
  void (*erf)(const float* from, float* to, int64_t n);

  // e[i] = exp(x[i] - most[i]), added to sums[i].
  void (*exp_lines)(const float* x, const double* most, int64_t n, double* e, double* sums);
  // y[i] = e[i] / sums[i], rounded once.
  void (*divide_lines)(const double* e, const double* sums, int64_t n, float* y);
  // Softmax of one line: the largest value (NaN only where it is the first) is taken away, exponentials are added in 16
  // lanes, element i to lane i % 16, and lane l + 8 to lane l, then l + 4, ... `e`: room for n.
  void (*softmax_line)(const float* x, int64_t n, double* e, float* y);
};

const MathKernels& math_kernels();  // of the instruction set in use
const MathKernels& math_kernels_scalar();
#if defined(__x86_64__)
const MathKernels& math_kernels_avx2();
const MathKernels& math_kernels_avx512();
#endif

}  // namespace openrknn::math
