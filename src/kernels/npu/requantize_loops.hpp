// Accumulators to int8 in one pass, as RequantizeBlock says; a part of rows_loops.hpp, see there for the rules.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/npu/requantize_vectors.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512BW__)
template <bool kResidual, bool kWide>
[[gnu::noinline]] void requantize_doubtful_pixel(const RequantizeBlock& b, int64_t p) {
  int32_t t[64];
  for (int64_t c = 0; c < b.channels; ++c) t[c] = b.acc[p * b.channels + c] + b.bias[c];
  requantize_doubtful<kResidual, kWide>(b, t, p, 0, b.channels);
}

// Pixels of 16 * kVectors channels, of which the last may be missing; four vectors at a time.
template <bool kResidual, bool kAll, bool kWide, int kVectors>
void requantize_pixels(const RequantizeBlock b) {  // by value: stores of bytes could change it otherwise
  const RequantizeVectors vectors(b);
  constexpr int kPixels = 4 / kVectors;
  const __mmask64 valid = b.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << b.channels) - 1;
  __m512i bias[kVectors];  // in registers: stores of bytes could change what they are loaded from
  __m512 factor[kVectors];
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) {
    bias[k] = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(valid >> (16 * k)), b.bias + 16 * k);
    factor[k] = _mm512_maskz_loadu_ps(static_cast<__mmask16>(valid >> (16 * k)), b.factor + 16 * k);
  }
  for (int64_t p = 0; p < b.pixels; p += kPixels) {
    __m512i u[4];
    __m512i least = _mm512_set1_epi32(-1);
    int8_t* y[kPixels];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const int k = v % kVectors;
      const int64_t pixel = p + v / kVectors < b.pixels ? p + v / kVectors : b.pixels - 1;
      y[v / kVectors] = b.y + pixel * b.y_stride;
      const auto lanes = static_cast<__mmask16>(valid >> (16 * k));
      const int32_t* acc = b.acc + pixel * b.channels + 16 * k;
      const __m512i sums = kAll ? _mm512_loadu_si512(acc) : _mm512_maskz_loadu_epi32(lanes, acc);
      const int8_t* residual = kResidual ? b.residual + pixel * b.residual_stride + 16 * k : nullptr;
      u[v] = requantize_vector<kResidual, kAll, kWide>(vectors, _mm512_add_epi32(sums, bias[k]), factor[k], lanes,
                                                       residual);
      least = _mm512_min_epu16(least, u[v]);
    }
    if (__builtin_expect(any_doubt(vectors, least), 0)) {
      const int64_t end = p + kPixels < b.pixels ? p + kPixels : b.pixels;
      for (int64_t pixel = p; pixel < end; ++pixel) requantize_doubtful_pixel<kResidual, kWide>(b, pixel);
      continue;
    }
    store_results<kAll, kVectors>(result_bytes(vectors, u), valid, y);
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
  float z = scaled_value<kResidual>(b, acc, residual, c);
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
      if (fraction <= 2 * b.margin) results[c] = b.exact(b.context, acc[c], p * b.channels + c);
    }
    memcpy(b.y + p * b.y_stride, results, static_cast<size_t>(b.channels));
  }
}
#endif

void requantize_block(const RequantizeBlock& b) {
  if (b.residual == nullptr) {
    b.wide ? requantize_rows<false, true>(b) : requantize_rows<false, false>(b);
  } else {
    b.wide ? requantize_rows<true, true>(b) : requantize_rows<true, false>(b);
  }
}

}  // namespace
}  // namespace openrknn::npu
