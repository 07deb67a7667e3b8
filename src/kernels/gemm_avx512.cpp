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

// The lanes whose place `at` + lane lies in [0, extent).
static inline __mmask16 inside(int64_t at, int64_t extent) {
  const int64_t low = at >= 0 ? 0 : at <= -16 ? 16 : -at;
  const int64_t high = extent - at >= 16 ? 16 : extent <= at ? 0 : extent - at;
  return static_cast<__mmask16>(((1U << high) - 1U) & ~((1U << low) - 1U));
}

// 16 elements from `at` on, zeros outside. Nothing is loaded without a lane inside: a masked load from an address
// without memory is correct and very slow.
static inline Vec load_inside(const float* from, int64_t at, int64_t extent) {
  const __mmask16 lanes = inside(at, extent);
  return lanes == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, from + at);
}

static void copy_line_in_vectors(const float* from, int64_t extent, int64_t start, int64_t step, int64_t count,
                                 float* to) {
  if (step > 2) return copy_line(from, extent, start, step, count, to);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t at = start + i * step;
    Vec v = load_inside(from, at, extent);
    if (step == 2) {
      v = _mm512_permutex2var_ps(v, even, load_inside(from, at + 16, extent));
    }
    if (count - i >= 16) {
      store(to + i, v);
    } else {
      _mm512_mask_storeu_ps(to + i, static_cast<__mmask16>((1U << (count - i)) - 1U), v);
    }
  }
}

}  // namespace

const GemmKernels& gemm_kernels_avx512() {
  static const GemmKernels table = {kRows, kWidth, kVectors, tile, taps, copy_line_in_vectors};
  return table;
}

}  // namespace openrknn
#endif
