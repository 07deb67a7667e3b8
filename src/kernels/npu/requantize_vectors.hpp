// RequantizeBlock's steps on vectors of AVX-512: shared by the loops over accumulators in memory (requantize_loops.hpp)
// and by those that have them in registers (conv_integer_loops.hpp). See rows_loops.hpp for what may not stand here.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512BW__)
// Lanes of the vector of channels [first, first + 16) that stand for channels of all `channels`.
inline __mmask16 lanes_of(int64_t channels, int64_t first) {
  const int64_t left = channels - first;
  return left >= 16 ? 0xFFFF : left <= 0 ? 0 : static_cast<__mmask16>((1U << left) - 1);
}

// What all values of a block share, apart from the block: stores of bytes could change that.
struct RequantizeVectors {
  __m512 constant, residual_factor;
  __m512i residual_offset, doubt, low, high, high_words, high_words_of_parts;

  explicit RequantizeVectors(const RequantizeBlock& b)
      : constant(_mm512_set1_ps(b.constant)),
        residual_factor(_mm512_set1_ps(b.residual_factor)),
        residual_offset(_mm512_set1_epi32(b.residual_offset)),
        doubt(_mm512_set1_epi32(2 * b.margin)),
        low(_mm512_set1_epi8(b.low)),
        high(_mm512_set1_epi8(b.high)) {
    alignas(64) static constexpr int16_t kHighWords[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                           23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                           45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    high_words = _mm512_load_si512(kHighWords);
    alignas(64) static constexpr int16_t kOfParts[32] = {1,  3,  5,  7,  33, 35, 37, 39, 9,  11, 13,
                                                         15, 41, 43, 45, 47, 17, 19, 21, 23, 49, 51,
                                                         53, 55, 25, 27, 29, 31, 57, 59, 61, 63};
    high_words_of_parts = _mm512_load_si512(kOfParts);
  }
};

// u of RequantizeBlock, not yet an integer, from 16 sums with their biases, t. `residual`: of the first of them.
template <bool kResidual, bool kAll>
inline __m512 scaled_vector(const RequantizeVectors& b, __m512i t, __m512 factor, __mmask16 valid,
                            const int8_t* residual) {
  __m512 z = _mm512_fmadd_ps(_mm512_cvtepi32_ps(t), factor, b.constant);
  if constexpr (kResidual) {
    const auto* from = reinterpret_cast<const __m128i*>(residual);
    const __m512i x = _mm512_cvtepi8_epi32(kAll ? _mm_loadu_si128(from) : _mm_maskz_loadu_epi8(valid, from));
    const __m512 e = _mm512_cvtepi32_ps(_mm512_add_epi32(x, b.residual_offset));
    z = _mm512_fmadd_ps(_mm512_maskz_mov_ps(kAll ? 0xFFFF : valid, e), b.residual_factor, z);
  }
  return z;
}

template <bool kResidual, bool kAll, bool kWide>
inline __m512i requantize_vector(const RequantizeVectors& b, __m512i t, __m512 factor, __mmask16 valid,
                                 const int8_t* residual) {
  __m512 z = scaled_vector<kResidual, kAll>(b, t, factor, valid, residual);
  if constexpr (kWide) z = _mm512_min_ps(_mm512_max_ps(z, _mm512_set1_ps(-kFarthest)), _mm512_set1_ps(kFarthest));
  return _mm512_cvtps_epi32(z);
}

// Fractions are the low words of each u. `least`: the least words of both halves, of which the high ones say nothing.
inline bool any_doubt(const RequantizeVectors& b, __m512i least) {
  return _mm512_mask_cmple_epu16_mask(0x55555555, least, b.doubt) != 0;
}

// The results of four vectors, in their order.
inline __m512i result_bytes(const RequantizeVectors& b, const __m512i* u) {
  static_assert(kRequantizeBits == 16, "results are the high words");
  const __m512i first = _mm512_permutex2var_epi16(u[0], b.high_words, u[1]);
  const __m512i second = _mm512_permutex2var_epi16(u[2], b.high_words, u[3]);
  const __m512i bytes = _mm512_packs_epi16(first, second);
  const __m512i clamped = _mm512_min_epi8(_mm512_max_epi8(bytes, b.low), b.high);
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), clamped);
}

// The same of vectors that hold lanes of 128 bits k of four vectors of channels.
inline __m512i result_bytes_of_parts(const RequantizeVectors& b, const __m512i* u) {
  const __m512i first = _mm512_permutex2var_epi16(u[0], b.high_words_of_parts, u[1]);
  const __m512i second = _mm512_permutex2var_epi16(u[2], b.high_words_of_parts, u[3]);
  return _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(first, second), b.low), b.high);
}

// Stores 64 bytes as 4 / kVectors pixels of 16 * kVectors channels; of `valid` ones. Pixels behind the last one that
// there is share its address.
template <bool kAll, int kVectors>
inline void store_results(__m512i bytes, __mmask64 valid, int8_t* const* y) {
  if constexpr (kVectors == 4) {
    if (kAll) return _mm512_storeu_si512(y[0], bytes);
    _mm512_mask_storeu_epi8(y[0], valid, bytes);
  } else if constexpr (kVectors == 2) {
    const auto half = static_cast<__mmask32>(kAll ? ~0U : valid);
    _mm256_mask_storeu_epi8(y[1], half, _mm512_extracti64x4_epi64(bytes, 1));
    _mm256_mask_storeu_epi8(y[0], half, _mm512_castsi512_si256(bytes));
  } else {
    const auto quarter = static_cast<__mmask16>(kAll ? 0xFFFF : valid);
    _mm_mask_storeu_epi8(y[3], quarter, _mm512_extracti32x4_epi32(bytes, 3));
    _mm_mask_storeu_epi8(y[2], quarter, _mm512_extracti32x4_epi32(bytes, 2));
    _mm_mask_storeu_epi8(y[1], quarter, _mm512_extracti32x4_epi32(bytes, 1));
    _mm_mask_storeu_epi8(y[0], quarter, _mm512_castsi512_si128(bytes));
  }
}

// Channels [c, c + n) of pixel p, with values that fp32 does not decide: from t.
template <bool kResidual, bool kWide>
[[gnu::noinline]] void requantize_doubtful(const RequantizeBlock& b, const int32_t* t, int64_t p, int64_t c,
                                           int64_t n) {
  const RequantizeVectors vectors(b);
  alignas(16) int8_t results[64];
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 valid = lanes_of(n, i);
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride + c + i : nullptr;
    const __m512i sums = _mm512_maskz_loadu_epi32(valid, t + i);
    const __m512i u = requantize_vector<kResidual, false, kWide>(
        vectors, sums, _mm512_maskz_loadu_ps(valid, b.factor + c + i), valid, residual);
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_srai_epi32(u, kRequantizeBits));
    const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(b.low)), _mm_set1_epi8(b.high));
    _mm_store_si128(reinterpret_cast<__m128i*>(results + i), clamped);
    const __m512i fraction = _mm512_and_si512(u, _mm512_set1_epi32((1 << kRequantizeBits) - 1));
    uint32_t doubts = _mm512_mask_cmple_epi32_mask(valid, fraction, _mm512_set1_epi32(2 * b.margin));
    for (; doubts != 0; doubts &= doubts - 1) {
      const int64_t at = i + __builtin_ctz(doubts);
      const auto acc = static_cast<int32_t>(static_cast<uint32_t>(t[at]) - static_cast<uint32_t>(b.bias[c + at]));
      results[at] = b.exact(b.context, acc, p * b.channels + c + at);
    }
  }
  memcpy(b.y + p * b.y_stride + c, results, static_cast<size_t>(n));
}
#else
template <bool kResidual>
inline float scaled_value(const RequantizeBlock& b, const int32_t* acc, const int8_t* residual, int64_t c) {
  float z = static_cast<float>(acc[c] + b.bias[c]) * b.factor[c] + b.constant;
  if constexpr (kResidual) z += static_cast<float>(residual[c] + b.residual_offset) * b.residual_factor;
  return z;
}
#endif

}  // namespace
}  // namespace openrknn::npu
