// int8 convolution loops over the vectors of conv_vectors.hpp. Sums of integers: any order gives the same result.
#pragma once

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/conv_vectors.hpp"
#include "kernels/npu/requantize_vectors.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kGroupBytes = 4;
constexpr int64_t kLaneBytes = int64_t{Ints::kLanes} * kGroupBytes;

#if defined(__AVX512BW__) && !defined(OPENRKNN_HALF_WIDTH)
constexpr bool kFinishes = true;

// Accumulators start with the bias where results follow.
template <bool kFinish, int kPanels>
inline void start_sums(const IntegerBlock& b, int64_t panel, Ints* start) {
#pragma GCC unroll 4
  for (int k = 0; k < kPanels; ++k) {
    const int64_t channel = (panel + k) * Ints::kLanes;
    start[k] = Ints::zero();
    if constexpr (kFinish)
      start[k].v = _mm512_maskz_loadu_epi32(lanes_of(b.out_channels, channel), b.finish->bias + channel);
  }
}

// Results of a tile, four vectors at a time: several pixels where there are fewer panels.
template <bool kResidual, bool kAll, bool kWide, int kPixels, int kPanels>
inline void finish_tile(const RequantizeBlock& b, const Ints (*sum)[kPanels], int64_t pixel, int64_t channel) {
  constexpr int kStep = 4 / kPanels;
  const int64_t channels = kAll || b.channels - channel > kPanels * 16 ? kPanels * 16 : b.channels - channel;
  const __mmask64 valid = ~__mmask64{0} >> (64 - channels);
  const RequantizeVectors vectors(b);
  __m512 factor[kPanels];
#pragma GCC unroll 4
  for (int k = 0; k < kPanels; ++k)
    factor[k] = _mm512_maskz_loadu_ps(static_cast<__mmask16>(valid >> (16 * k)), b.factor + channel + 16 * k);
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; p += kStep) {
    __m512i u[4];
    __m512i least = _mm512_set1_epi32(-1);
    int8_t* y[kStep];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const int k = v % kPanels, at = p + v / kPanels < kPixels ? p + v / kPanels : kPixels - 1;
      const int64_t row = pixel + at;
      y[v / kPanels] = b.y + row * b.y_stride + channel;
      const int8_t* residual = kResidual ? b.residual + row * b.residual_stride + channel + 16 * k : nullptr;
      u[v] = requantize_vector<kResidual, kAll, kWide>(vectors, sum[at][k].v, factor[k],
                                                       static_cast<__mmask16>(valid >> (16 * k)), residual);
      least = _mm512_min_epu16(least, u[v]);
    }
    if (__builtin_expect(any_doubt(vectors, least), 0)) {
      alignas(64) int32_t sums[4 * 16];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const int at = p + v / kPanels < kPixels ? p + v / kPanels : kPixels - 1;
        sum[at][v % kPanels].store(sums + 16 * v);
      }
      for (int at = 0; at < kStep && p + at < kPixels; ++at)
        requantize_doubtful<kResidual, kWide>(b, sums + at * 16 * kPanels, pixel + p + at, channel, channels);
      continue;
    }
    store_results<kAll, kPanels>(result_bytes(vectors, u), valid, y);
  }
}

template <bool kResidual, int kPixels, int kPanels>
inline void finish_sums(const RequantizeBlock& b, const Ints (*sum)[kPanels], int64_t pixel, int64_t channel) {
  const bool all = b.channels - channel >= kPanels * 16;
  if (b.wide) {
    all ? finish_tile<kResidual, true, true, kPixels>(b, sum, pixel, channel)
        : finish_tile<kResidual, false, true, kPixels>(b, sum, pixel, channel);
  } else {
    all ? finish_tile<kResidual, true, false, kPixels>(b, sum, pixel, channel)
        : finish_tile<kResidual, false, false, kPixels>(b, sum, pixel, channel);
  }
}
#else
constexpr bool kFinishes = false;

template <bool kFinish, int kPanels>
inline void start_sums(const IntegerBlock&, int64_t, Ints* start) {
  for (int k = 0; k < kPanels; ++k) start[k] = Ints::zero();
}

template <bool kResidual, int kPixels, int kPanels>
inline void finish_sums(const RequantizeBlock&, const Ints (*)[kPanels], int64_t, int64_t) {}
#endif

// kPixels windows times kPanels panels, accumulators in registers; kFinish: results.
template <bool kFinish, int kPixels, int kPanels>
void integer_tile(const IntegerBlock& b, int64_t pixel, int64_t panel) {
  const uint8_t* window[kPixels];
  for (int p = 0; p < kPixels; ++p) window[p] = b.input + b.pixel_offset[pixel + p];
  const int64_t panel_bytes = b.taps * b.groups * kLaneBytes;
  const uint8_t* weights = b.weights + panel * panel_bytes;
  Ints sum[kPixels][kPanels], start[kPanels];
  start_sums<kFinish, kPanels>(b, panel, start);
  if (b.sums != nullptr && b.pairs) {
    Ints factor[kPanels];
#pragma GCC unroll 4
    for (int k = 0; k < kPanels; ++k) factor[k] = Ints::load(b.factors + (panel + k) * Ints::kLanes);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Ints window_sum = Ints::broadcast(b.sums + pixel + p);
#pragma GCC unroll 4
      for (int k = 0; k < kPanels; ++k) sum[p][k] = start[k].dot_pairs(factor[k], window_sum);
    }
  } else {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int k = 0; k < kPanels; ++k) sum[p][k] = start[k];
    }
  }
  for (int64_t tap = 0; tap < b.taps; ++tap) {
    const int64_t offset = b.tap_offset[tap];
    for (int64_t group = 0; group < b.groups; ++group, weights += kLaneBytes) {
      Ints w[kPanels];
#pragma GCC unroll 4
      for (int k = 0; k < kPanels; ++k) w[k] = Ints::load(weights + k * panel_bytes);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const Ints x = Ints::broadcast(window[p] + offset + group * kGroupBytes);
#pragma GCC unroll 4
        for (int k = 0; k < kPanels; ++k) sum[p][k] = sum[p][k].dot(w[k], x);
      }
    }
  }
  // Unrolled too: sums with a variable index would live in memory.
  if (b.sums != nullptr && !b.pairs) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Ints window_sum = Ints::broadcast(b.sums + pixel + p);
#pragma GCC unroll 4
      for (int k = 0; k < kPanels; ++k)
        sum[p][k] = sum[p][k] - window_sum.times(Ints::load(b.factors + (panel + k) * Ints::kLanes));
    }
  }
  if constexpr (kFinish) {
    b.finish->residual == nullptr ? finish_sums<false, kPixels>(*b.finish, sum, pixel, panel * Ints::kLanes)
                                  : finish_sums<true, kPixels>(*b.finish, sum, pixel, panel * Ints::kLanes);
    return;
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    int32_t* output = b.output + (pixel + p) * b.out_stride;
#pragma GCC unroll 4
    for (int k = 0; k < kPanels; ++k) {
      const int64_t first = (panel + k) * Ints::kLanes;
      const int64_t valid = b.out_channels - first;
      if (valid >= Ints::kLanes) {
        sum[p][k].store(output + first);
      } else {
        sum[p][k].store(output + first, valid);
      }
    }
  }
}

// Whole tiles, then smaller ones for the rest.
template <bool kFinish, int kPixels, int kPanels>
void integer_tiles(const IntegerBlock& b, int64_t pixel, int64_t panel) {
  for (; pixel + kPixels <= b.pixels; pixel += kPixels) integer_tile<kFinish, kPixels, kPanels>(b, pixel, panel);
  if constexpr (kPixels > 1) {
    if (pixel < b.pixels) integer_tiles<kFinish, kPixels / 2, kPanels>(b, pixel, panel);
  }
}

// Register tiles: 32 vector registers with AVX-512, 16 elsewhere.
constexpr int kWidePanels = Ints::kLanes == 16 ? 4 : 2;
constexpr int kWidePixels = Ints::kLanes == 16 ? 6 : 4;
constexpr int kNarrowPixels = Ints::kLanes == 16 ? 12 : 8;

template <bool kFinish>
void integer_panels(const IntegerBlock& b) {
  const int64_t panels = (b.out_channels + Ints::kLanes - 1) / Ints::kLanes;
  int64_t panel = 0;
  for (; panel + kWidePanels <= panels; panel += kWidePanels)
    integer_tiles<kFinish, kWidePixels, kWidePanels>(b, 0, panel);
  if constexpr (kWidePanels == 4) {
    if (panel + 2 <= panels) {
      integer_tiles<kFinish, kNarrowPixels, 2>(b, 0, panel);
      panel += 2;
    }
  }
  if (panel < panels) integer_tiles<kFinish, kNarrowPixels, 1>(b, 0, panel);
}

void integer_block(const IntegerBlock& b) {
  if constexpr (kFinishes) {
    if (b.finish != nullptr) return integer_panels<true>(b);
  }
  integer_panels<false>(b);
}

// Pixels of 3 or 4 channels that lie together, 16 at a time; returns how many are done.
template <int kChannels>
int64_t sum_sixteen_pixels(int64_t pixels, const int8_t* x, int32_t* sums) {
  int64_t p = 0;
#if defined(__AVX512VNNI__)
  if constexpr (kChannels == 3 || kChannels == 4) {
    const __m512i parts = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    const __m512i spread = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    for (; p + 16 <= pixels; p += 16) {
      __m512i bytes = _mm512_maskz_loadu_epi8(~__mmask64{0} >> (64 - 16 * kChannels), x + p * kChannels);
      if constexpr (kChannels == 3) bytes = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(parts, bytes), spread);
      _mm512_storeu_si512(sums + p, _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes));
    }
  }
#else
  (void)pixels, (void)x, (void)sums;
#endif
  return p;
}

// Pixels of few channels that lie together.
template <int kChannels>
void sum_small_pixels(int64_t pixels, const int8_t* x, int32_t* sums) {
  for (int64_t p = sum_sixteen_pixels<kChannels>(pixels, x, sums); p < pixels; ++p) {
    int32_t sum = 0;
    for (int c = 0; c < kChannels; ++c) sum += x[p * kChannels + c];
    sums[p] = sum;
  }
}

#if defined(__AVX512VNNI__)
// Sums of a pixel's bytes, still in 16 lanes.
inline __m512i sum_bytes(int64_t channels, const int8_t* x) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i total = _mm512_setzero_si512();
  int64_t c = 0;
  for (; c + 64 <= channels; c += 64) total = _mm512_dpbusd_epi32(total, ones, _mm512_loadu_si512(x + c));
  if (c == channels) return total;
  const __mmask64 valid = (__mmask64{1} << (channels - c)) - 1;
  return _mm512_dpbusd_epi32(total, ones, _mm512_maskz_loadu_epi8(valid, x + c));
}

// Lanes of a and of b added in pairs, side by side.
inline __m512i add_lanes(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

// Lanes of 128 bits added in pairs: those of a, then those of b.
inline __m512i add_quarters(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

// Pixels of 16 or 32 channels that lie together, 16 at a time; returns how many are done.
template <int kChannels>
int64_t sum_dense_pixels(int64_t pixels, const int8_t* x, int32_t* sums) {
  const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  int64_t p = 0;
  for (; p + 16 <= pixels; p += 16, x += 16 * kChannels) {
    const auto bytes = [&](int i) { return _mm512_dpbusd_epi32(zero, ones, _mm512_loadu_si512(x + 64 * i)); };
    __m512i four[4];  // pixels, a quarter each
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) four[i] = kChannels == 16 ? bytes(i) : add_quarters(bytes(2 * i), bytes(2 * i + 1));
    const __m512i ab = add_lanes(four[0], four[1]), cd = add_lanes(four[2], four[3]);
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    _mm512_storeu_si512(sums + p, _mm512_permutexvar_epi32(order, all));
  }
  return p;
}

// Several pixels at a time; returns how many are done.
int64_t sum_several_pixels(int64_t pixels, int64_t step, int64_t channels, const int8_t* x, int32_t* sums) {
  int64_t p = 0;
  if (step == channels && channels == 16) p = sum_dense_pixels<16>(pixels, x, sums);
  if (step == channels && channels == 32) p = sum_dense_pixels<32>(pixels, x, sums);
  x += p * step;
  for (; p + 4 <= pixels; p += 4, x += 4 * step) {
    const __m512i ab = add_lanes(sum_bytes(channels, x), sum_bytes(channels, x + step));
    const __m512i cd = add_lanes(sum_bytes(channels, x + 2 * step), sum_bytes(channels, x + 3 * step));
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + p), four);
  }
  return p;
}
#else
int64_t sum_several_pixels(int64_t, int64_t, int64_t, const int8_t*, int32_t*) { return 0; }
#endif

void sum_pixels(int64_t pixels, int64_t step, int64_t channels, const int8_t* x, int32_t* sums) {
  if (step == channels && channels == 1) return sum_small_pixels<1>(pixels, x, sums);
  if (step == channels && channels == 3) return sum_small_pixels<3>(pixels, x, sums);
  if (step == channels && channels == 4) return sum_small_pixels<4>(pixels, x, sums);
  for (int64_t p = sum_several_pixels(pixels, step, channels, x, sums); p < pixels; ++p) {
    const int8_t* from = x + p * step;
    Ints total = Ints::zero();
    int64_t c = 0;
    for (; c + Ints::kSumBytes <= channels; c += Ints::kSumBytes) total = total + Ints::sum_s8(from + c);
    int32_t lanes[Ints::kLanes];
    int32_t sum = 0;
    if (c > 0) {
      total.store(lanes);
      for (int k = 0; k < Ints::kLanes; ++k) sum += lanes[k];
    }
    for (; c < channels; ++c) sum += from[c];
    sums[p] = sum;
  }
}

template <int kStride>
void sum_line_of(int64_t n, int64_t taps, int64_t dilation, const int32_t* x, int32_t* sums) {
  for (int64_t k = 0; k < taps; ++k) {
    const int32_t* from = x + k * dilation;
    for (int64_t i = 0; i < n; ++i) sums[i] += from[i * kStride];
  }
}

void sum_line(int64_t n, int64_t taps, int64_t dilation, int64_t stride, const int32_t* x, int32_t* sums) {
  if (stride == 1) return sum_line_of<1>(n, taps, dilation, x, sums);
  if (stride == 2) return sum_line_of<2>(n, taps, dilation, x, sums);
  for (int64_t k = 0; k < taps; ++k) {
    for (int64_t i = 0; i < n; ++i) sums[i] += x[k * dilation + i * stride];
  }
}

template <int kVectors, bool kSums>
void depthwise_s8_channels(const DepthwiseRow& row, int64_t c, const int8_t* x, const int32_t* w, int32_t* y,
                           int32_t* sums) {
  for (int64_t p = 0; p < row.pixels; ++p) {
    Ints product[kVectors], window[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) product[k] = window[k] = Ints::zero();
    const int8_t* from = x + p * row.pixel_step + c;
    for (int64_t tap = 0; tap < row.taps; ++tap) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const Ints value = Ints::load_s8(from + row.tap_offset[tap] + k * Ints::kLanes);
        product[k] = product[k] + value * Ints::load(w + tap * row.weight_step + c + k * Ints::kLanes);
        if constexpr (kSums) window[k] = window[k] + value;
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      product[k].store(y + p * row.channels + c + k * Ints::kLanes);
      if constexpr (kSums) window[k].store(sums + p * row.channels + c + k * Ints::kLanes);
    }
  }
}

template <bool kSums>
void depthwise_s8_all(const DepthwiseRow& row, const int8_t* x, const int32_t* w, int32_t* y, int32_t* sums) {
  int64_t c = 0;
  for (; c + 4 * Ints::kLanes <= row.channels; c += 4 * Ints::kLanes) {
    depthwise_s8_channels<4, kSums>(row, c, x, w, y, sums);
  }
  for (; c + Ints::kLanes <= row.channels; c += Ints::kLanes) depthwise_s8_channels<1, kSums>(row, c, x, w, y, sums);
  for (; c < row.channels; ++c) {
    for (int64_t p = 0; p < row.pixels; ++p) {
      int32_t product = 0, window = 0;
      for (int64_t tap = 0; tap < row.taps; ++tap) {
        const int32_t value = x[p * row.pixel_step + row.tap_offset[tap] + c];
        product += value * w[tap * row.weight_step + c];
        window += value;
      }
      y[p * row.channels + c] = product;
      if (kSums) sums[p * row.channels + c] = window;
    }
  }
}

void depthwise_s8_row(const DepthwiseRow& row, const int8_t* x, const int32_t* w, int32_t* y, int32_t* sums) {
  if (sums == nullptr) {
    depthwise_s8_all<false>(row, x, w, y, sums);
  } else {
    depthwise_s8_all<true>(row, x, w, y, sums);
  }
}

}  // namespace
}  // namespace openrknn::npu
