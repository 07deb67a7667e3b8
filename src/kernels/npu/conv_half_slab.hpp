// Brings a slab of halves to doubles, with what decides whether sums of its groups are exact. Compiled per instruction
// set: see rows_loops.hpp for what may not stand here.
#pragma once

#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/half_scalar.hpp"

namespace openrknn::npu {
namespace {

// Bits of the largest magnitude, and of the smallest nonzero one minus 1 (0x7FFF when all are zero).
struct HalfRange {
  int32_t largest, smallest;
};

// A half with exponent field e >= 1 lies below 2^(e - 14) and is a multiple of 2^(e - 25); subnormals as e = 1.
inline HalfStats stats_of(const HalfRange& range) {
  if (range.largest == 0) return {0, -64};  // zeros only
  if (range.largest >= 0x7C00) return {kSpecialSpan, 0};
  const int32_t high = range.largest >> 10, low = (range.smallest + 1) >> 10;
  const int32_t top = (high > 1 ? high : 1) - 14, unit = (low > 1 ? low : 1) - 25;
  return {static_cast<uint8_t>(top - unit), static_cast<int8_t>(top)};
}

inline HalfRange range_of(const uint16_t* x, int64_t n) {
  HalfRange range{0, 0x7FFF};
#if defined(__AVX512BW__)
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
  __m512i largest = _mm512_setzero_si512(), smallest = magnitude;
  for (int64_t i = 0; i < n; i += 32) {
    const __mmask32 lanes = n - i >= 32 ? ~__mmask32{0} : (__mmask32{1} << (n - i)) - 1;
    const __m512i bits = _mm512_maskz_loadu_epi16(lanes, x + i);  // the zeros beyond change nothing
    largest = _mm512_max_epu16(largest, _mm512_and_si512(bits, magnitude));
    const __m512i less = _mm512_sub_epi16(bits, _mm512_set1_epi16(1));
    smallest = _mm512_min_epu16(smallest, _mm512_and_si512(less, magnitude));
  }
  // The least of 8 values is one instruction; the largest is the least of the complements.
  const auto least = [](__m512i v) {
    const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return _mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
  };
  range.largest = 0x7FFF - least(_mm512_sub_epi16(magnitude, largest));
  range.smallest = least(smallest);
#else
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = x[i] & 0x7FFF, less = (x[i] - 1) & 0x7FFF;  // 0x7FFF for zeros of both signs
    range.largest = magnitude > range.largest ? magnitude : range.largest;
    range.smallest = less < range.smallest ? less : range.smallest;
  }
#endif
  return range;
}

HalfStats half_stats(int64_t n, const uint16_t* x) { return stats_of(range_of(x, n)); }

void widen_run(int64_t n, const uint16_t* x, double* values) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 8 <= n; i += 8) {
    const __m256 floats = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)));
    _mm512_storeu_pd(values + i, _mm512_cvtps_pd(floats));
  }
#elif defined(__AVX2__)
  for (; i + 4 <= n; i += 4) {
    const __m128 floats = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + i)));
    _mm256_storeu_pd(values + i, _mm256_cvtps_pd(floats));
  }
#endif
  for (; i < n; ++i) values[i] = static_cast<double>(half_to_float_scalar(x[i]));
}

#if defined(__AVX512BW__)
// At most 8 channels of each pixel.
void widen_few(int64_t pixels, int64_t step, int64_t channels, const uint16_t* x, double* values) {
  const auto lanes = static_cast<__mmask8>((1 << channels) - 1);
  for (; pixels > 0; --pixels, x += step, values += channels) {
    const __m256 floats = _mm256_cvtph_ps(_mm_maskz_loadu_epi16(lanes, x));
    _mm512_mask_storeu_pd(values, lanes, _mm512_cvtps_pd(floats));
  }
}
#endif

void half_slab(int64_t pixels, int64_t step, int64_t channels, const HalfGroup* groups, int64_t count,
               const uint16_t* x, double* values, HalfStats* stats) {
  if (channels == step) {
    widen_run(pixels * step, x, values);
#if defined(__AVX512BW__)
  } else if (channels <= 8) {
    widen_few(pixels, step, channels, x, values);
#endif
  } else {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) widen_run(channels, x + pixel * step, values + pixel * channels);
  }
  for (int64_t pixel = 0; pixel < pixels && count > 0; ++pixel, x += step) {
    for (int64_t k = 0; k < count; ++k) *stats++ = stats_of(range_of(x + groups[k].first, groups[k].n));
  }
}

}  // namespace
}  // namespace openrknn::npu
