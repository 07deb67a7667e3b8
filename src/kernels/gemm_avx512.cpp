// Compiled with -mavx512f and its companions; see CMakeLists.txt.
#include "kernels/gemm_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace openrknn {
namespace {

using Vec = __m512;
constexpr int kWidth = 16;
constexpr int kRows = 8;  // 8 x 3 sums, 3 operands and a broadcast in 32 registers

static inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
static inline Vec broadcast(float x) { return _mm512_set1_ps(x); }
static inline Vec multiply_add(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

#include "kernels/gemm_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_avx512() {
  static const GemmKernels table = {kRows, kWidth, kVectors, tile, taps};
  return table;
}

}  // namespace openrknn
#endif
