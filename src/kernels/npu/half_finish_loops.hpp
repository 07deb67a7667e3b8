// Vectors of fp32 sums to results in fp16: the stages of HalfOutput in registers. Compiled per instruction set: see
// rows_loops.hpp for what may not stand here.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/npu/half_scalar.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512F__)
constexpr int kRowLanes = 16;
#elif defined(__AVX2__)
constexpr int kRowLanes = 8;
#else
constexpr int kRowLanes = 4;
#endif
typedef float Row __attribute__((vector_size(kRowLanes * 4), aligned(4)));

// One NaN stands for all of them. Vectors of float of any length.
template <typename Vector>
inline Vector one_nan(Vector v) {
  const auto number = v == v;  // a vector of int32
  using Bits = decltype(number);
  constexpr int32_t kNan = 0x7FC00000;
  return reinterpret_cast<Vector>((reinterpret_cast<Bits>(v) & number) | (~number & (Bits{} + kNan)));
}

// The first `n` lanes, at most all.
inline void put_lanes(Row v, int64_t n, float* to) {
  if (n >= kRowLanes) {
    *reinterpret_cast<Row*>(to) = v;
  } else {
    memcpy(to, &v, static_cast<size_t>(n) * sizeof(float));
  }
}

inline uint16_t finish_value(const HalfOutput& o, float v, int64_t c) {
  const float sum = o.bias != nullptr ? v + o.bias[c] : v;
  const float x = sum < o.low ? o.low : sum;
  return float_to_half_scalar(x > o.high ? o.high : x);  // one NaN for all
}

#if defined(__AVX512VL__)
// Maximum and minimum give their second operand where it is no number.
inline void finish_masked(const HalfOutput& o, __m512 x, int64_t c, __mmask16 lanes, uint16_t* y) {
  if (o.bias != nullptr) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, o.bias + c));
  x = _mm512_min_ps(_mm512_set1_ps(o.high), _mm512_max_ps(_mm512_set1_ps(o.low), x));
  const __m256i halves = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __mmask16 none = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  _mm256_mask_storeu_epi16(y, lanes, _mm256_mask_blend_epi16(none, halves, _mm256_set1_epi16(0x7E00)));
}
#endif
#if defined(__F16C__)
inline void finish_eight(const HalfOutput& o, __m256 x, int64_t c, uint16_t* y) {
  if (o.bias != nullptr) x = _mm256_add_ps(x, _mm256_loadu_ps(o.bias + c));
  x = _mm256_min_ps(_mm256_set1_ps(o.high), _mm256_max_ps(_mm256_set1_ps(o.low), x));
  const __m128i halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256i none = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m128i nan = _mm_packs_epi32(_mm256_castsi256_si128(none), _mm256_extracti128_si256(none, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm_blendv_epi8(halves, _mm_set1_epi16(0x7E00), nan));
}
#endif

// The results of channels [c, c + n), n > 0, of one pixel from a vector of sums, as many as it has lanes at most.
template <int kLanes, typename Vector>
inline void finish_lanes(const HalfOutput& o, Vector v, int64_t c, int64_t n, uint16_t* y) {
#if defined(__AVX512VL__)
  if constexpr (kLanes == 16) {
    const auto lanes = static_cast<__mmask16>(n >= kLanes ? 0xFFFF : (1 << n) - 1);
    return finish_masked(o, reinterpret_cast<__m512>(v), c, lanes, y);
  }
#endif
#if defined(__F16C__)
  if constexpr (kLanes == 8) {
    if (n >= kLanes) return finish_eight(o, reinterpret_cast<__m256>(v), c, y);
  }
#endif
  float sums[kLanes];
  memcpy(sums, &v, sizeof sums);
  for (int64_t k = 0; k < n && k < kLanes; ++k) y[k] = finish_value(o, sums[k], c + k);
}

}  // namespace
}  // namespace openrknn::npu
