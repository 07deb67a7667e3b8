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
// Of equal operands and of NaN the second one is the result.
static inline Vec at_least(Vec low, Vec x) { return _mm256_max_ps(low, x); }
static inline Vec at_most(Vec high, Vec x) { return _mm256_min_ps(high, x); }
static inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
static inline Vec scaled(Vec x, double factor, double term) {
  const __m256d f = _mm256_set1_pd(factor);
  const __m256d t = _mm256_set1_pd(term);
  const __m256d low = _mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), f), t);
  const __m256d high = _mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)), f), t);
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

static inline Vec load_first(const float* p, int count) {
  float lanes[kWidth] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
static inline void store_first(float* p, Vec v, int count) {
  float lanes[kWidth];
  store(lanes, v);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

template <int R>
static void store_columns(const float* rows, int n, float* c, int64_t ldc) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < R; ++i) c[j * ldc + i] = rows[i * n + j];
  }
}

#include "kernels/gemm_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_avx2() {
  static const GemmKernels table = {kRows,      kWidth,       kVectors,  tile,       taps,  depth_rows,
                                    pixel_tile, channel_tile, copy_line, copy_lines, clamp, scale};
  return table;
}

}  // namespace openrknn
#endif
