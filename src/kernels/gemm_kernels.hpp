// Register-tile kernels of the fp32 products, one table per instruction set. Included by files that are compiled with
// flags of their own: nothing here may pull inline code of the standard library into them.
#pragma once

#include <stdint.h>

namespace openrknn {

struct GemmKernels {
  int rows;     // largest tile height
  int width;    // floats a vector
  int vectors;  // largest tile width in vectors

  // A tile of rows x (vectors * width): c[i][j] = start + sum over l, in order, of a[i][l] * b[l][j]: one chain of
  // fused multiply-adds per element. The chain starts from bias[i], or goes on from c when bias is null.
  void (*tile)(int rows, int vectors, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
               int64_t ldc, const float* bias);

  // out[x] = bias + sum over t, in order, of weights[t] * inputs[t][x], 0 <= x < n. Operands are read and results
  // written in whole vectors: all arrays extend to the next multiple of 4 vectors.
  void (*taps)(int64_t n, int64_t taps, const float* const* inputs, const float* weights, float bias, float* out);

  // to[i] = from[start + i * step], zeros outside of [0, extent); 0 <= i < count, step >= 1.
  void (*line)(const float* from, int64_t extent, int64_t start, int64_t step, int64_t count, float* to);
};

const GemmKernels& gemm_kernels_scalar();
#if defined(__x86_64__)
const GemmKernels& gemm_kernels_avx2();
const GemmKernels& gemm_kernels_avx512();
#endif

}  // namespace openrknn
