// Accumulators to int8 by a table, as LookUp says; a part of rows_loops.hpp, see there for the rules.
#pragma once

#include <stdint.h>

#include "kernels/npu/requantize_vectors.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512BW__)
// u of 16 channels from c on of pixel p; kAll: there are so many.
template <bool kResidual, bool kAll>
inline __m512i index_vector(const RequantizeVectors& vectors, const RequantizeBlock& b, __m512 farthest, int64_t p,
                            int64_t c) {
  const __mmask16 valid = kAll ? 0xFFFF : lanes_of(b.channels, c);
  const __m512i acc = _mm512_maskz_loadu_epi32(valid, b.acc + p * b.channels + c);
  const __m512i t = _mm512_add_epi32(acc, _mm512_maskz_loadu_epi32(valid, b.bias + c));
  const int8_t* residual = kResidual ? b.residual + p * b.residual_stride + c : nullptr;
  const __m512 z =
      scaled_vector<kResidual, kAll>(vectors, t, _mm512_maskz_loadu_ps(valid, b.factor + c), valid, residual);
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(z, _mm512_setzero_ps()), farthest));
}

// 16 channels, every one from the table in memory.
template <bool kResidual>
inline void gather_results(const RequantizeVectors& vectors, const RequantizeBlock& b, const LookUp& table, int64_t p,
                           int64_t c) {
  const __m512i fraction = _mm512_set1_epi32(kIndexUnit - 1);
  const __mmask16 valid = lanes_of(b.channels, c);
  const auto farthest = static_cast<float>(table.last * kIndexUnit + kIndexHalf);
  const __m512i u = index_vector<kResidual, false>(vectors, b, _mm512_set1_ps(farthest), p, c);
  const __m512i found = _mm512_i32gather_epi32(_mm512_srli_epi32(u, kIndexBits), table.results, 2);
  const __mmask16 close = _mm512_cmple_epi32_mask(_mm512_and_si512(u, fraction), vectors.doubt);
  uint32_t doubts = _mm512_mask_test_epi32_mask(close & valid, found, _mm512_set1_epi32(0x100));
  alignas(16) int8_t results[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(results), _mm512_cvtepi32_epi8(found));
  for (; doubts != 0; doubts &= doubts - 1) {
    const int at = __builtin_ctz(doubts);
    results[at] = b.exact(b.context, b.acc[p * b.channels + c + at], p * b.channels + c + at);
  }
  _mm_mask_storeu_epi8(b.y + p * b.y_stride + c, valid, _mm_load_si128(reinterpret_cast<const __m128i*>(results)));
}

template <bool kResidual>
[[gnu::noinline]] void gather_rows(const RequantizeBlock& b, const LookUp& table) {
  const RequantizeVectors vectors(b);
  for (int64_t p = 0; p < b.pixels; ++p)
    for (int64_t c = 0; c < b.channels; c += 16) gather_results<kResidual>(vectors, b, table, p, c);
}

#endif

#if defined(__AVX512VBMI__)
// Results of pixel p with those in `doubts` as `exact` gives them.
[[gnu::noinline]] __m512i with_exact(const RequantizeBlock& b, int64_t p, uint64_t doubts, __m512i y) {
  alignas(64) int8_t results[64];
  _mm512_store_si512(results, y);
  for (; doubts != 0; doubts &= doubts - 1) {
    const int64_t at = p * b.channels + __builtin_ctzll(doubts);
    results[__builtin_ctzll(doubts)] = b.exact(b.context, b.acc[at], at);
  }
  return _mm512_load_si512(results);
}

// The bytes of 64 bins; `high`: those in the upper half.
inline __m512i bytes_of_bins(const uint8_t* bytes, __m512i bins, __mmask64 high) {
  const __m512i low_half = _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes), bins, _mm512_loadu_si512(bytes + 64));
  const __m512i high_half =
      _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes + 128), bins, _mm512_loadu_si512(bytes + 192));
  return _mm512_mask_blend_epi8(high, low_half, high_half);
}

// By the staircase. Results within the margin of a step are in doubt: lanes without a channel are in the middle of an
// index and so never next to one.
template <bool kResidual, bool kAll>
[[gnu::noinline]] void step_rows(const RequantizeBlock b, const LookUp& table) {  // by value: stores could change it
  // u: a fraction of 9 bits, an index of 7, a bin of 8. So byte 2 is the bin, byte 1 twice the index and a bit.
  static_assert(kIndexBits == 9 && kStepIndices == 1 << 7 && kStepBins == 1 << 8 && kMostSteps == 3);
  const RequantizeVectors vectors(b);
  // Bytes 2 of 32 values, then their bytes 1; bytes 0 of 32 values.
  alignas(64) static constexpr uint8_t kUpper[64] = {
      2,  6,  10, 14,  18,  22,  26,  30,  34,  38,  42, 46, 50, 54,  58,  62,  66,  70,  74,  78, 82, 86,
      90, 94, 98, 102, 106, 110, 114, 118, 122, 126, 1,  5,  9,  13,  17,  21,  25,  29,  33,  37, 41, 45,
      49, 53, 57, 61,  65,  69,  73,  77,  81,  85,  89, 93, 97, 101, 105, 109, 113, 117, 121, 125};
  alignas(64) static constexpr uint8_t kLower[64] = {0,  4,  8,  12,  16,  20,  24,  28,  32,  36, 40,
                                                     44, 48, 52, 56,  60,  64,  68,  72,  76,  80, 84,
                                                     88, 92, 96, 100, 104, 108, 112, 116, 120, 124};
  const __m512i upper = _mm512_load_si512(kUpper), lower = _mm512_load_si512(kLower);
  const uint8_t* const steps = table.steps;
  const __m512i even = _mm512_set1_epi8(-2), doubt = _mm512_set1_epi8(static_cast<int8_t>(2 * b.margin));
  const __m512 farthest = _mm512_set1_ps(static_cast<float>(table.last * kIndexUnit - 1));
  const __mmask64 valid = kAll || b.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << b.channels) - 1;
  for (int64_t p = 0; p < b.pixels; ++p) {
    __m512i u[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) u[k] = index_vector<kResidual, kAll>(vectors, b, farthest, p, 16 * k);
    const __m512i upper0 = _mm512_permutex2var_epi8(u[0], upper, u[1]);
    const __m512i upper1 = _mm512_permutex2var_epi8(u[2], upper, u[3]);
    const __m512i lower0 = _mm512_permutex2var_epi8(u[0], lower, u[1]);
    const __m512i lower1 = _mm512_permutex2var_epi8(u[2], lower, u[3]);
    const __m512i bins = _mm512_inserti64x4(upper0, _mm512_castsi512_si256(upper1), 1);
    const __m512i at = _mm512_shuffle_i64x2(upper0, upper1, 0xEE), at_even = _mm512_and_si512(at, even);
    const __m512i fraction = _mm512_inserti64x4(lower0, _mm512_castsi512_si256(lower1), 1);
    const __mmask64 high = _mm512_movepi8_mask(bins);
    const __m512i amount = bytes_of_bins(steps + kStepBins, bins, high);
    const __m512i first = bytes_of_bins(steps + 2 * kStepBins, bins, high);
    const __m512i second = bytes_of_bins(steps + 3 * kStepBins, bins, high);
    const __m512i third = bytes_of_bins(steps + 4 * kStepBins, bins, high);
    __m512i y = bytes_of_bins(steps, bins, high);
    y = _mm512_mask_add_epi8(y, _mm512_cmpge_epu8_mask(at_even, first), y, amount);
    y = _mm512_mask_add_epi8(y, _mm512_cmpge_epu8_mask(at_even, second), y, amount);
    y = _mm512_mask_add_epi8(y, _mm512_cmpge_epu8_mask(at_even, third), y, amount);
    const __mmask64 close = _mm512_cmple_epu8_mask(fraction, doubt);  // if bit 8 of the fraction, in `at`, is zero
    const __mmask64 doubts = _mm512_mask_cmpeq_epu8_mask(close, at, first) |
                             _mm512_mask_cmpeq_epu8_mask(close, at, second) |
                             _mm512_mask_cmpeq_epu8_mask(close, at, third);
    if (__builtin_expect(doubts != 0, 0)) y = with_exact(b, p, doubts, y);
    _mm512_mask_storeu_epi8(b.y + p * b.y_stride, valid, y);
  }
}
#endif

#if defined(__AVX512BW__)
template <bool kResidual>
void look_up_rows(const RequantizeBlock& b, const LookUp& table) {
#if defined(__AVX512VBMI__)
  if (table.steps != nullptr) {
    return b.channels == 64 ? step_rows<kResidual, true>(b, table) : step_rows<kResidual, false>(b, table);
  }
#endif
  gather_rows<kResidual>(b, table);
}
#else
template <bool kResidual>
void look_up_rows(const RequantizeBlock& b, const LookUp& table) {
  const auto farthest = static_cast<float>(table.last * kIndexUnit + kIndexHalf);
  int32_t index[64];
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int8_t* y = b.y + p * b.y_stride;
    const int64_t channels = b.channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float z = scaled_value<kResidual>(b, acc, residual, c);
      index[c] = static_cast<int32_t>(z < 0 ? 0 : z > farthest ? farthest : z);
    }
    for (int64_t c = 0; c < channels; ++c) {
      const uint16_t found = table.results[index[c] >> kIndexBits];
      const bool doubtful = (found >> 8) != 0 && (index[c] & (kIndexUnit - 1)) <= 2 * b.margin;
      y[c] = doubtful ? b.exact(b.context, acc[c], p * channels + c) : static_cast<int8_t>(found);
    }
  }
}
#endif

void requantize_look_up(const RequantizeBlock& b, const LookUp& table) {
  if (b.residual == nullptr) {
    look_up_rows<false>(b, table);
  } else {
    look_up_rows<true>(b, table);
  }
}

}  // namespace
}  // namespace openrknn::npu
