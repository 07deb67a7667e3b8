// Accumulators to int8 in one pass, as RequantizeBlock says; a part of rows_loops.hpp, see there for the rules.
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
// Biases and factors of 16 channels.
struct ChannelVectors {
  __m512i bias;
  __m512 factor;
};

inline ChannelVectors load_channels(const RequantizeBlock& b, __mmask16 valid, int64_t c) {
  return {_mm512_maskz_loadu_epi32(valid, b.bias + c), _mm512_maskz_loadu_ps(valid, b.factor + c)};
}

// 16 values, those of `valid`: u of RequantizeBlock.
template <bool kResidual, bool kAll, bool kWide>
inline __m512i requantize_vector(const RequantizeBlock& b, const ChannelVectors& k, __mmask16 valid, int64_t c,
                                 const int32_t* acc, const int8_t* residual) {
  const __m512i sum = kAll ? _mm512_loadu_si512(acc + c) : _mm512_maskz_loadu_epi32(valid, acc + c);
  const __m512i t = _mm512_add_epi32(sum, k.bias);
  __m512 z = _mm512_fmadd_ps(_mm512_cvtepi32_ps(t), k.factor, _mm512_set1_ps(b.constant));
  if constexpr (kResidual) {
    const auto* from = reinterpret_cast<const __m128i*>(residual + c);
    const __m512i x = _mm512_cvtepi8_epi32(kAll ? _mm_loadu_si128(from) : _mm_maskz_loadu_epi8(valid, from));
    const __m512 e = _mm512_cvtepi32_ps(_mm512_add_epi32(x, _mm512_set1_epi32(b.residual_offset)));
    z = _mm512_fmadd_ps(_mm512_maskz_mov_ps(kAll ? 0xFFFF : valid, e), _mm512_set1_ps(b.residual_factor), z);
  }
  if constexpr (kWide) z = _mm512_min_ps(_mm512_max_ps(z, _mm512_set1_ps(-kFarthest)), _mm512_set1_ps(kFarthest));
  return _mm512_cvtps_epi32(z);
}

template <bool kResidual>
void look_up_rows(const RequantizeBlock& b, int32_t limit, const uint16_t* results) {
  const __m512i zero = _mm512_setzero_si512(), last = _mm512_set1_epi32(limit * kRequantizeIndexUnit);
  const __m512i fraction = _mm512_set1_epi32(kRequantizeIndexUnit - 1), edge = _mm512_set1_epi32(0x100);
  const __m512i margin = _mm512_set1_epi32(2 * b.margin);
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int8_t* y = b.y + p * b.y_stride;
    for (int64_t c = 0; c < b.channels; c += 16) {
      const __mmask16 valid = b.channels - c >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << (b.channels - c)) - 1);
      const __m512i u =
          requantize_vector<kResidual, false, false>(b, load_channels(b, valid, c), valid, c, acc, residual);
      const __m512i x = _mm512_min_epi32(_mm512_max_epi32(u, zero), _mm512_or_si512(last, fraction));
      const __m512i found = _mm512_i32gather_epi32(_mm512_srli_epi32(x, kRequantizeIndexBits), results, 2);
      const __mmask16 close = _mm512_cmple_epi32_mask(_mm512_and_si512(x, fraction), margin);
      uint32_t doubts = _mm512_mask_test_epi32_mask(close & valid, found, edge);
      __m128i bytes = _mm512_cvtepi32_epi8(found);
      if (__builtin_expect(doubts != 0, 0)) {
        alignas(16) int8_t exact[16];
        _mm_store_si128(reinterpret_cast<__m128i*>(exact), bytes);
        for (; doubts != 0; doubts &= doubts - 1) {
          const int at = __builtin_ctz(doubts);
          exact[at] = b.exact(b.context, p * b.channels + c + at);
        }
        bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(exact));
      }
      if (valid == 0xFFFF) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + c), bytes);
      } else {
        _mm_mask_storeu_epi8(y + c, valid, bytes);
      }
    }
  }
}

inline bool any_doubt(__m512i least, int32_t margin) {
  const __m512i fraction = _mm512_and_si512(least, _mm512_set1_epi32((1 << kRequantizeBits) - 1));
  return _mm512_cmple_epi32_mask(fraction, _mm512_set1_epi32(2 * margin)) != 0;
}

// A pixel with values that fp32 does not decide.
template <bool kResidual, bool kWide>
[[gnu::noinline]] void requantize_doubtful(const RequantizeBlock& b, int64_t p) {
  const int32_t* acc = b.acc + p * b.channels;
  const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
  alignas(16) int8_t results[64];
  for (int64_t c = 0; c < b.channels; c += 16) {
    const __mmask16 valid = b.channels - c >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << (b.channels - c)) - 1);
    const __m512i u =
        requantize_vector<kResidual, false, kWide>(b, load_channels(b, valid, c), valid, c, acc, residual);
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_srai_epi32(u, kRequantizeBits));
    const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(b.low)), _mm_set1_epi8(b.high));
    _mm_store_si128(reinterpret_cast<__m128i*>(results + c), clamped);
    const __m512i fraction = _mm512_and_si512(u, _mm512_set1_epi32((1 << kRequantizeBits) - 1));
    uint32_t doubts = _mm512_mask_cmple_epi32_mask(valid, fraction, _mm512_set1_epi32(2 * b.margin));
    for (; doubts != 0; doubts &= doubts - 1) {
      const int64_t at = c + __builtin_ctz(doubts);
      results[at] = b.exact(b.context, p * b.channels + at);
    }
  }
  memcpy(b.y + p * b.y_stride, results, static_cast<size_t>(b.channels));
}

// Pixels of 16 * kVectors channels; the last vectors may be partly valid. Fractions are the low words of each u; the
// least words of both halves are kept, and the high ones ignored.
template <bool kResidual, bool kAll, bool kWide, int kVectors>
void requantize_pixels(const RequantizeBlock b) {  // by value: stores of bytes could change it otherwise
  const __mmask64 valid = b.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << b.channels) - 1;
  ChannelVectors channels[kVectors];  // in registers: stores of bytes could change what they are loaded from
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) channels[k] = load_channels(b, static_cast<__mmask16>(valid >> (16 * k)), 16 * k);
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int8_t* y = b.y + p * b.y_stride;
    __m512i u[kVectors];
    __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      u[k] = requantize_vector<kResidual, kAll, kWide>(b, channels[k], static_cast<__mmask16>(valid >> (16 * k)),
                                                       16 * k, acc, residual);
      least = _mm512_min_epu16(least, u[k]);
      u[k] = _mm512_srai_epi32(u[k], kRequantizeBits);
    }
    if (__builtin_expect(any_doubt(least, b.margin), 0)) {
      requantize_doubtful<kResidual, kWide>(b, p);
      continue;
    }
    if constexpr (kVectors == 4) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __m512i bytes =
          _mm512_packs_epi16(_mm512_packs_epi32(u[0], u[1]), _mm512_packs_epi32(u[kVectors - 2], u[kVectors - 1]));
      const __m512i clamped =
          _mm512_min_epi8(_mm512_max_epi8(bytes, _mm512_set1_epi8(b.low)), _mm512_set1_epi8(b.high));
      const __m512i ordered = _mm512_permutexvar_epi32(order, clamped);
      if constexpr (kAll) {
        _mm512_storeu_si512(y, ordered);
      } else {
        _mm512_mask_storeu_epi8(y, valid, ordered);
      }
    } else {
#pragma GCC unroll 2
      for (int k = 0; k < kVectors; ++k) {
        const __m128i bytes = _mm512_cvtsepi32_epi8(u[k]);
        const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(b.low)), _mm_set1_epi8(b.high));
        if constexpr (kAll) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(y + 16 * k), clamped);
        } else {
          _mm_mask_storeu_epi8(y + 16 * k, static_cast<__mmask16>(valid >> (16 * k)), clamped);
        }
      }
    }
  }
}

template <bool kResidual, bool kWide>
void requantize_rows(const RequantizeBlock& b) {
  if (b.channels == 64) return requantize_pixels<kResidual, true, kWide, 4>(b);
  if (b.channels == 32) return requantize_pixels<kResidual, true, kWide, 2>(b);
  if (b.channels == 16) return requantize_pixels<kResidual, true, kWide, 1>(b);
  if (b.channels > 32) return requantize_pixels<kResidual, false, kWide, 4>(b);
  if (b.channels > 16) return requantize_pixels<kResidual, false, kWide, 2>(b);
  requantize_pixels<kResidual, false, kWide, 1>(b);
}
#else
template <bool kResidual, bool kWide>
inline int32_t requantize_value(const RequantizeBlock& b, const int32_t* acc, const int8_t* residual, int64_t c) {
  float z = static_cast<float>(acc[c] + b.bias[c]) * b.factor[c] + b.constant;
  if constexpr (kResidual) z += static_cast<float>(residual[c] + b.residual_offset) * b.residual_factor;
  if constexpr (kWide) z = z < -kFarthest ? -kFarthest : z > kFarthest ? kFarthest : z;
  return static_cast<int32_t>(z);
}

template <bool kResidual, bool kWide>
void requantize_rows(const RequantizeBlock& b) {
  constexpr int32_t kFraction = (1 << kRequantizeBits) - 1;
  int8_t results[64];
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int32_t least = kFraction;
    for (int64_t c = 0; c < b.channels; ++c) {
      const int32_t u = requantize_value<kResidual, kWide>(b, acc, residual, c);
      const int32_t fraction = u & kFraction;
      least = fraction < least ? fraction : least;
      int32_t r = u >> kRequantizeBits;
      r = r < b.low ? b.low : r;
      results[c] = static_cast<int8_t>(r > b.high ? b.high : r);
    }
    for (int64_t c = 0; least <= 2 * b.margin && c < b.channels; ++c) {
      const int32_t fraction = requantize_value<kResidual, kWide>(b, acc, residual, c) & kFraction;
      if (fraction <= 2 * b.margin) results[c] = b.exact(b.context, p * b.channels + c);
    }
    memcpy(b.y + p * b.y_stride, results, static_cast<size_t>(b.channels));
  }
}

template <bool kResidual>
void look_up_rows(const RequantizeBlock& b, int32_t limit, const uint16_t* results) {
  const int32_t last = limit * kRequantizeIndexUnit + kRequantizeIndexUnit - 1;
  int32_t index[64];
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int8_t* y = b.y + p * b.y_stride;
    const int64_t channels = b.channels;
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t u = requantize_value<kResidual, false>(b, acc, residual, c);
      index[c] = u < 0 ? 0 : u > last ? last : u;
    }
    for (int64_t c = 0; c < channels; ++c) {
      const uint16_t found = results[index[c] >> kRequantizeIndexBits];
      const bool doubtful = (found >> 8) != 0 && (index[c] & (kRequantizeIndexUnit - 1)) <= 2 * b.margin;
      y[c] = doubtful ? b.exact(b.context, p * channels + c) : static_cast<int8_t>(found);
    }
  }
}
#endif

void requantize_look_up(const RequantizeBlock& b, int32_t limit, const uint16_t* results) {
  if (b.residual == nullptr) {
    look_up_rows<false>(b, limit, results);
  } else {
    look_up_rows<true>(b, limit, results);
  }
}

void requantize_block(const RequantizeBlock& b) {
  if (b.residual == nullptr) {
    b.wide ? requantize_rows<false, true>(b) : requantize_rows<false, false>(b);
  } else {
    b.wide ? requantize_rows<true, true>(b) : requantize_rows<true, false>(b);
  }
}

}  // namespace
}  // namespace openrknn::npu
