// Compiled with -mavx512f and its companions; see CMakeLists.txt.
#include "kernels/compiled_isa.hpp"
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
static inline Vec load_first(const float* p, int count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), p);
}
static inline void store_first(float* p, Vec v, int count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << count) - 1U), v);
}
static inline Vec broadcast(float x) { return _mm512_set1_ps(x); }
static inline Vec multiply_add(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
static inline Vec subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
static inline Vec multiply(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
static inline Vec divide(Vec a, Vec b) { return _mm512_div_ps(a, b); }
// Of equal operands and of NaN the second one is the result.
static inline Vec at_least(Vec low, Vec x) { return _mm512_max_ps(low, x); }
static inline Vec at_most(Vec high, Vec x) { return _mm512_min_ps(high, x); }
static inline Vec scaled(Vec x, double factor, double term) {
  const __m512d f = _mm512_set1_pd(factor);
  const __m512d t = _mm512_set1_pd(term);
  const __m512d low = _mm512_add_pd(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(x)), f), t);
  const __m512d high = _mm512_add_pd(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)), f), t);
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

// The lanes whose place `at` + lane lies in [0, extent).
static inline __mmask16 inside(int64_t at, int64_t extent) {
  const int64_t low = at >= 0 ? 0 : at <= -16 ? 16 : -at;
  const int64_t high = extent - at >= 16 ? 16 : extent <= at ? 0 : extent - at;
  return static_cast<__mmask16>(((1U << high) - 1U) & ~((1U << low) - 1U));
}

using Edge = __mmask16;
static inline Edge edge_of(int64_t at, int64_t extent) { return inside(at, extent); }
// Nothing is loaded without a lane inside: a masked load from an address without memory is correct and very slow.
static inline Vec load_edge(const float* row, int64_t at, Edge edge) {
  return _mm512_maskz_loadu_ps(edge, row + (edge == 0 ? 0 : at));
}
static inline Vec evens(Vec a, Vec b) {
  const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, lanes, b);
}
static inline Vec odds(Vec a, Vec b) {
  const __m512i lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, lanes, b);
}

// 8 rows of 8 to 8 columns at a time; rows beyond R repeat the first.
template <int R>
static void store_columns(const float* rows, int n, float* c, int64_t ldc) {
  for (int j = 0; j < n; j += 8) {
    __m256 row[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(rows + (i < R ? i : 0) * n + j);
    __m256 pair[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
      pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
    }
    float* to = c + j * ldc;
    // Columns q and q + 4 of all rows come from the halves of two quadruples.
    const auto put = [&](int q, __m256 low, __m256 high) {
      _mm256_storeu_ps(to + q * ldc, _mm256_permute2f128_ps(low, high, 0x20));
      _mm256_storeu_ps(to + (q + 4) * ldc, _mm256_permute2f128_ps(low, high, 0x31));
    };
    put(0, _mm256_shuffle_ps(pair[0], pair[2], 0x44), _mm256_shuffle_ps(pair[4], pair[6], 0x44));
    put(1, _mm256_shuffle_ps(pair[0], pair[2], 0xEE), _mm256_shuffle_ps(pair[4], pair[6], 0xEE));
    put(2, _mm256_shuffle_ps(pair[1], pair[3], 0x44), _mm256_shuffle_ps(pair[5], pair[7], 0x44));
    put(3, _mm256_shuffle_ps(pair[1], pair[3], 0xEE), _mm256_shuffle_ps(pair[5], pair[7], 0xEE));
  }
}

#include "kernels/gemm_kernels.inc"

// 16 elements from `at` on, zeros outside.
static inline Vec load_inside(const float* from, int64_t at, int64_t extent) {
  return load_edge(from, at, edge_of(at, extent));
}

static void copy_line_in_vectors(const float* from, int64_t extent, int64_t start, int64_t step, int64_t count,
                                 float* to) {
  if (step > 2) return copy_line(from, extent, start, step, count, to);
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t at = start + i * step;
    Vec v = load_inside(from, at, extent);
    if (step == 2) v = evens(v, load_inside(from, at + 16, extent));
    if (count - i >= 16) {
      store(to + i, v);
    } else {
      _mm512_mask_storeu_ps(to + i, static_cast<__mmask16>((1U << (count - i)) - 1U), v);
    }
  }
}

// Columns of vectors, so that the lanes inside are found once for all rows.
static void copy_lines_in_vectors(const float* from, int64_t from_pitch, int64_t rows, int64_t extent, int64_t start,
                                  int64_t step, int64_t count, float* to, int64_t to_pitch) {
  if (step > 2) return copy_lines(from, from_pitch, rows, extent, start, step, count, to, to_pitch);
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t at = start + i * step;
    const __mmask16 real =
        count - i >= 16 ? static_cast<__mmask16>(0xFFFFU) : static_cast<__mmask16>((1U << (count - i)) - 1U);
    const __mmask16 first = inside(at, extent);
    const __mmask16 second = step == 2 ? inside(at + 16, extent) : static_cast<__mmask16>(0);
    // Without a lane inside, the address may have no memory: read the row's start instead, with no lane.
    const float* low = first == 0 ? from : from + at;
    const float* high = second == 0 ? from : from + at + 16;
    if (step == 1) {
      for (int64_t r = 0; r < rows; ++r) {
        _mm512_mask_storeu_ps(to + r * to_pitch + i, real, _mm512_maskz_loadu_ps(first, low + r * from_pitch));
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        const Vec a = _mm512_maskz_loadu_ps(first, low + r * from_pitch);
        const Vec b = _mm512_maskz_loadu_ps(second, high + r * from_pitch);
        _mm512_mask_storeu_ps(to + r * to_pitch + i, real, evens(a, b));
      }
    }
  }
}

}  // namespace

const GemmKernels& gemm_kernels_avx512() {
  static const GemmKernels table = {kCompiledIsa,
                                    kRows,
                                    kWidth,
                                    kVectors,
                                    tile,
                                    taps,
                                    depth_plane,
                                    pixel_tile,
                                    channel_tile,
                                    copy_line_in_vectors,
                                    copy_lines_in_vectors,
                                    clamp,
                                    scale,
                                    sum,
                                    max_row,
                                    combine};
  return table;
}

}  // namespace openrknn
#endif
