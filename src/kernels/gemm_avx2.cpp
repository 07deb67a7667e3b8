// Compiled with -mavx2 -mfma; see CMakeLists.txt.
#include "kernels/gemm_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace openrknn {
namespace {

using Vec = __m256;
constexpr int kWidth = 8;
constexpr int kRows = 4;  // 4 x 3 sums, 3 operands and a broadcast in 16 registers

static inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
static inline Vec broadcast(float x) { return _mm256_set1_ps(x); }
static inline Vec multiply_add(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

#include "kernels/gemm_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_avx2() {
  static const GemmKernels table = {kRows, kWidth, kVectors, tile, taps, copy_line};
  return table;
}

}  // namespace openrknn
#endif
