// Compiled with -mavx2 -mfma; see CMakeLists.txt.
#include "kernels/compiled_isa.hpp"
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
static inline Vec subtract(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
static inline Vec multiply(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
static inline Vec divide(Vec a, Vec b) { return _mm256_div_ps(a, b); }
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

using Edge = __m256i;  // all bits of the lanes inside
static inline Edge edge_of(int64_t at, int64_t extent) {
  const int low = at >= 0 ? 0 : at <= -kWidth ? kWidth : static_cast<int>(-at);
  const int high = extent - at >= kWidth ? kWidth : extent <= at ? 0 : static_cast<int>(extent - at);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_and_si256(_mm256_cmpgt_epi32(lanes, _mm256_set1_epi32(low - 1)),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(high), lanes));
}
// Nothing is loaded without a lane inside: a masked load from an address without memory is correct and very slow.
static inline Vec load_edge(const float* row, int64_t at, Edge edge) {
  return _mm256_maskload_ps(row + (_mm256_testz_si256(edge, edge) != 0 ? 0 : at), edge);
}
static inline Vec evens(Vec a, Vec b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xD8));
}
static inline Vec odds(Vec a, Vec b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xDD)), 0xD8));
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
  static const GemmKernels table = {kCompiledIsa, kRows,     kWidth,     kVectors, tile,  taps, depth_plane, pixel_tile,
                                    channel_tile, copy_line, copy_lines, clamp,    scale, sum,  max_row,     combine};
  return table;
}

}  // namespace openrknn
#endif
