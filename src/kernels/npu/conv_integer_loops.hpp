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
template <int kPanels>
inline void start_sums(const IntegerBlock& b, int64_t panel, Ints* start) {
#pragma GCC unroll 4
  for (int k = 0; k < kPanels; ++k) {
    const int64_t channel = (panel + k) * Ints::kLanes;
    const auto valid = lanes_of(b.out_channels, channel);
    start[k] = b.finish == nullptr ? Ints::zero() : Ints{_mm512_maskz_loadu_epi32(valid, b.finish->bias + channel)};
  }
}

// Results of a tile, four vectors at a time: several pixels where there are fewer panels.
template <bool kResidual, bool kAll, int kPixels, int kPanels>
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
      u[v] = requantize_vector<kResidual, kAll, false>(vectors, sum[at][k].v, factor[k],
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
        requantize_doubtful<kResidual, false>(b, sums + at * 16 * kPanels, pixel + p + at, channel, channels);
      continue;
    }
    store_results<kAll, kPanels>(result_bytes(vectors, u), valid, y);
  }
}

template <int kPixels, int kPanels>
inline void finish_sums(const RequantizeBlock& b, const Ints (*sum)[kPanels], int64_t pixel, int64_t channel) {
  const bool all = b.channels - channel >= kPanels * 16;
  if (b.residual != nullptr) {
    all ? finish_tile<true, true, kPixels>(b, sum, pixel, channel)
        : finish_tile<true, false, kPixels>(b, sum, pixel, channel);
  } else {
    all ? finish_tile<false, true, kPixels>(b, sum, pixel, channel)
        : finish_tile<false, false, kPixels>(b, sum, pixel, channel);
  }
}
#else
constexpr bool kFinishes = false;

template <int kPanels>
inline void start_sums(const IntegerBlock&, int64_t, Ints* start) {
  for (int k = 0; k < kPanels; ++k) start[k] = Ints::zero();
}

template <int kPixels, int kPanels>
inline void finish_sums(const RequantizeBlock&, const Ints (*)[kPanels], int64_t, int64_t) {}
#endif

// kPixels windows times kPanels panels, accumulators in registers.
template <int kPixels, int kPanels>
void integer_tile(const IntegerBlock& b, int64_t pixel, int64_t panel) {
  const uint8_t* window[kPixels];
  for (int p = 0; p < kPixels; ++p) window[p] = b.input + b.pixel_offset[pixel + p];
  const int64_t panel_bytes = b.taps * b.groups * kLaneBytes;
  const uint8_t* weights = b.weights + panel * panel_bytes;
  Ints sum[kPixels][kPanels], start[kPanels];
  start_sums<kPanels>(b, panel, start);
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
  if (kFinishes && b.finish != nullptr) return finish_sums<kPixels>(*b.finish, sum, pixel, panel * Ints::kLanes);
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
template <int kPixels, int kPanels>
void integer_tiles(const IntegerBlock& b, int64_t pixel, int64_t panel) {
  for (; pixel + kPixels <= b.pixels; pixel += kPixels) integer_tile<kPixels, kPanels>(b, pixel, panel);
  if constexpr (kPixels > 1) {
    if (pixel < b.pixels) integer_tiles<kPixels / 2, kPanels>(b, pixel, panel);
  }
}

// Register tiles: 32 vector registers with AVX-512, 16 elsewhere.
constexpr int kWidePanels = Ints::kLanes == 16 ? 4 : 2;
constexpr int kWidePixels = Ints::kLanes == 16 ? 6 : 4;
constexpr int kNarrowPixels = Ints::kLanes == 16 ? 12 : 8;

void integer_block(const IntegerBlock& b) {
  const int64_t panels = (b.out_channels + Ints::kLanes - 1) / Ints::kLanes;
  int64_t panel = 0;
  for (; panel + kWidePanels <= panels; panel += kWidePanels) integer_tiles<kWidePixels, kWidePanels>(b, 0, panel);
  if constexpr (kWidePanels == 4) {
    if (panel + 2 <= panels) {
      integer_tiles<kNarrowPixels, 2>(b, 0, panel);
      panel += 2;
    }
  }
  if (panel < panels) integer_tiles<kNarrowPixels, 1>(b, 0, panel);
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

// Four pixels at a time; returns how many are done.
int64_t sum_four_pixels(int64_t pixels, int64_t step, int64_t channels, const int8_t* x, int32_t* sums) {
  int64_t p = 0;
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
int64_t sum_four_pixels(int64_t, int64_t, int64_t, const int8_t*, int32_t*) { return 0; }
#endif

void sum_pixels(int64_t pixels, int64_t step, int64_t channels, const int8_t* x, int32_t* sums) {
  if (step == channels && channels == 1) return sum_small_pixels<1>(pixels, x, sums);
  if (step == channels && channels == 3) return sum_small_pixels<3>(pixels, x, sums);
  if (step == channels && channels == 4) return sum_small_pixels<4>(pixels, x, sums);
  for (int64_t p = sum_four_pixels(pixels, step, channels, x, sums); p < pixels; ++p) {
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

#if defined(__AVX512VNNI__)
// 64 bytes of a tap, or as many as there are channels.
inline __m512i load_tap(__mmask64 valid, __m512i flips, const int8_t* p) {
  return _mm512_xor_si512(_mm512_maskz_loadu_epi8(valid, p), flips);
}

// The bytes of 4 vectors side by side, in 4 parts of 16 channels.
inline void interleave_bytes(__m512i a, __m512i b, __m512i c, __m512i d, __m512i* parts) {
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  parts[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
  parts[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
  parts[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
  parts[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

// Those of up to 4 taps.
inline void interleave_taps(const DepthwiseRow& row, __mmask64 valid, __m512i flips, const int8_t* x, int64_t tap,
                            __m512i* parts) {
  const int64_t left = row.taps - tap;
  const __m512i zero = _mm512_setzero_si512();
  const __m512i a = load_tap(valid, flips, x + row.tap_offset[tap]);
  const __m512i b = left > 1 ? load_tap(valid, flips, x + row.tap_offset[tap + 1]) : zero;
  const __m512i c = left > 2 ? load_tap(valid, flips, x + row.tap_offset[tap + 2]) : zero;
  const __m512i d = left > 3 ? load_tap(valid, flips, x + row.tap_offset[tap + 3]) : zero;
  interleave_bytes(a, b, c, d, parts);
}

// Between the order of 4 parts and that of their channels: lanes of 128 bits turned like a matrix.
inline void turn_parts(const __m512i* from, __m512i* to) {
  const __m512i even_low = _mm512_shuffle_i32x4(from[0], from[1], 0x44);
  const __m512i odd_low = _mm512_shuffle_i32x4(from[0], from[1], 0xEE);
  const __m512i even_high = _mm512_shuffle_i32x4(from[2], from[3], 0x44);
  const __m512i odd_high = _mm512_shuffle_i32x4(from[2], from[3], 0xEE);
  to[0] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
  to[1] = _mm512_shuffle_i32x4(even_low, even_high, 0xDD);
  to[2] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
  to[3] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD);
}

// Where sums of pixels go: to y in the order of the channels, or, by parts, to a few pixels' memory, from which they
// become results. These take a pass of their own since the windows' columns and the sums leave them no registers.
template <bool kFinish>
class DepthwiseOutput {
 public:
  DepthwiseOutput(const DepthwiseRow& row, __mmask64 valid, int32_t* y) : row_(row), valid_(valid), y_(y) {
    if constexpr (kFinish) {
      by_parts(row.finish->bias, bias_);
      by_parts(row.finish->factor, factor_);
    }
  }

  // Pixels one after the other.
  void put(int64_t pixel, const __m512i* sum) const {
    if constexpr (kFinish) {
      int32_t* to = y_ + pixel % kPixels * 64;
#pragma GCC unroll 4
      for (int k = 0; k < kTapGroup; ++k) _mm512_store_si512(to + k * 16, sum[k]);
    } else {
      __m512i ordered[kTapGroup];
      turn_parts(sum, ordered);
      int32_t* to = y_ + pixel * row_.channels;
#pragma GCC unroll 4
      for (int k = 0; k < kTapGroup; ++k) {
        const auto lanes = static_cast<__mmask16>(valid_ >> (16 * k));
        if (lanes == 0xFFFF) {
          _mm512_storeu_si512(to + k * 16, ordered[k]);
        } else if (lanes != 0) {
          _mm512_mask_storeu_epi32(to + k * 16, lanes, ordered[k]);
        }
      }
    }
  }

  // Before `pixel` is put, or behind the last one.
  void finish_before(int64_t pixel) const {
    if constexpr (!kFinish) return;
    if (pixel == row_.pixels) {
      finish((pixel - 1) / kPixels * kPixels, pixel);
    } else if (pixel % kPixels == 0 && pixel > 0) {
      finish(pixel - kPixels, pixel);
    }
  }

 private:
  static constexpr int64_t kPixels = 16;  // even: loops put two at a time

  void by_parts(const void* channels, __m512i* parts) const {
    __m512i ordered[kTapGroup];
#pragma GCC unroll 4
    for (int k = 0; k < kTapGroup; ++k) {
      const auto lanes = static_cast<__mmask16>(valid_ >> (16 * k));
      ordered[k] = _mm512_maskz_loadu_epi32(lanes, static_cast<const int32_t*>(channels) + 16 * k);
    }
    turn_parts(ordered, parts);
  }

  void finish(int64_t first, int64_t end) const {
    const RequantizeBlock& b = *row_.finish;
    const RequantizeVectors vectors(b);
    const __mmask64 valid = valid_;
    const int64_t y_stride = b.y_stride;
    int8_t* y = b.y + first * y_stride;
    const int32_t* sums = y_;
    for (int64_t p = first; p < end; ++p, sums += 64, y += y_stride) {
      __m512i t[kTapGroup], u[kTapGroup];
      __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
      for (int k = 0; k < kTapGroup; ++k) {
        t[k] = _mm512_add_epi32(_mm512_load_si512(sums + 16 * k), bias_[k]);
        u[k] = requantize_vector<false, true, false>(vectors, t[k], _mm512_castsi512_ps(factor_[k]), 0xFFFF, nullptr);
        least = _mm512_min_epu16(least, u[k]);
      }
      if (__builtin_expect(any_doubt(vectors, least), 0)) {
        decide(p, sums);
      } else {
        _mm512_mask_storeu_epi8(y, valid, result_bytes_of_parts(vectors, u));
      }
    }
  }

  // A pixel with values that fp32 does not decide.
  [[gnu::noinline]] void decide(int64_t pixel, const int32_t* sums) const {
    __m512i t[kTapGroup], ordered[kTapGroup];
    for (int k = 0; k < kTapGroup; ++k) t[k] = _mm512_add_epi32(_mm512_load_si512(sums + 16 * k), bias_[k]);
    turn_parts(t, ordered);
    alignas(64) int32_t values[64];
    for (int k = 0; k < kTapGroup; ++k) _mm512_store_si512(values + 16 * k, ordered[k]);
    requantize_doubtful<false, false>(*row_.finish, values, pixel, 0, row_.channels);
  }

  const DepthwiseRow& row_;
  __mmask64 valid_;
  int32_t* y_;
  __m512i bias_[kTapGroup] = {}, factor_[kTapGroup] = {};
};

template <bool kFinish, int kPixels>
void depthwise_bytes_pixels(const DepthwiseRow& row, const DepthwiseOutput<kFinish>& out, __mmask64 valid,
                            const int8_t* x, const uint8_t* weights, int64_t pixel) {
  __m512i sum[kPixels][kTapGroup], more[kPixels][kTapGroup];
  const __m512i flips = _mm512_load_si512(weights);
  weights += 64;
#pragma GCC unroll 4
  for (int k = 0; k < kTapGroup; ++k) {
    const __m512i start = _mm512_load_si512(weights + k * 64);
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) {
      sum[p][k] = start;
      more[p][k] = _mm512_setzero_si512();
    }
  }
  weights += kTapGroup * 64;
  for (int64_t tap = 0; tap < row.taps; tap += kTapGroup, weights += 2 * kTapGroup * 64) {
    __m512i parts[kPixels][kTapGroup];
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) interleave_taps(row, valid, flips, x + p * row.pixel_step, tap, parts[p]);
#pragma GCC unroll 4
    for (int k = 0; k < kTapGroup; ++k) {
      const __m512i first = _mm512_load_si512(weights + k * 64);
      const __m512i second = _mm512_load_si512(weights + (kTapGroup + k) * 64);
#pragma GCC unroll 2
      for (int p = 0; p < kPixels; ++p) {
        sum[p][k] = _mm512_dpbusd_epi32(sum[p][k], parts[p][k], first);
        more[p][k] = _mm512_dpbusd_epi32(more[p][k], parts[p][k], second);
      }
    }
  }
#pragma GCC unroll 2
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < kTapGroup; ++k) sum[p][k] = _mm512_add_epi32(sum[p][k], more[p][k]);
    out.put(pixel + p, sum[p]);
  }
}

inline __mmask64 valid_channels(const DepthwiseRow& row) {
  return row.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << row.channels) - 1;
}

template <bool kFinish>
void depthwise_bytes_of(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  const __mmask64 valid = valid_channels(row);
  const DepthwiseOutput<kFinish> out(row, valid, y);
  int64_t p = 0;
  for (; p + 2 <= row.pixels; p += 2) {
    out.finish_before(p);
    depthwise_bytes_pixels<kFinish, 2>(row, out, valid, x + p * row.pixel_step, w, p);
  }
  if (p < row.pixels) {
    out.finish_before(p);
    depthwise_bytes_pixels<kFinish, 1>(row, out, valid, x + p * row.pixel_step, w, p);
  }
  out.finish_before(row.pixels);
}

void depthwise_bytes_row(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  row.finish == nullptr ? depthwise_bytes_of<false>(row, x, w, y) : depthwise_bytes_of<true>(row, x, w, y);
}

// Those of a column of 3 rows.
inline void interleave_column(const DepthwiseRow& row, __mmask64 valid, __m512i flips, const int8_t* x,
                              __m512i* parts) {
  interleave_bytes(load_tap(valid, flips, x + row.tap_offset[0]), load_tap(valid, flips, x + row.tap_offset[3]),
                   load_tap(valid, flips, x + row.tap_offset[6]), _mm512_setzero_si512(), parts);
}

// Two windows kStride columns apart, from the 3 + kStride columns that they meet.
template <bool kFinish, int kStride>
inline void depthwise_column_pixels(const DepthwiseOutput<kFinish>& out, const __m512i (*columns)[kTapGroup],
                                    const uint8_t* weights, int64_t pixel, int64_t left) {
  __m512i sum[2][kTapGroup];
#pragma GCC unroll 4
  for (int k = 0; k < kTapGroup; ++k) sum[0][k] = sum[1][k] = _mm512_load_si512(weights + k * 64);
  const uint8_t* line = weights + kTapGroup * 64;
#pragma GCC unroll 3
  for (int column = 0; column < 3; ++column) {
#pragma GCC unroll 2
    for (int addend = 0; addend < 2; ++addend) {
#pragma GCC unroll 4
      for (int k = 0; k < kTapGroup; ++k, line += 64) {
        const __m512i w = _mm512_load_si512(line);
        sum[0][k] = _mm512_dpbusd_epi32(sum[0][k], columns[column][k], w);
        sum[1][k] = _mm512_dpbusd_epi32(sum[1][k], columns[column + kStride][k], w);
      }
    }
  }
  out.put(pixel, sum[0]);
  if (left > 1) out.put(pixel + 1, sum[1]);
}

template <bool kFinish, int kStride>
void depthwise_columns_of(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  constexpr int kColumns = 3 + kStride, kKept = 3 - kStride;  // of two windows, and those of the next two
  const __mmask64 valid = valid_channels(row);
  const __m512i flips = _mm512_load_si512(w);
  const DepthwiseOutput<kFinish> out(row, valid, y);
  w += 64;
  __m512i columns[kColumns][kTapGroup];
#pragma GCC unroll 2
  for (int k = 0; k < kKept; ++k) interleave_column(row, valid, flips, x + k * row.column_step, columns[k]);
  for (int64_t p = 0; p < row.pixels; p += 2) {
    out.finish_before(p);
    const int64_t left = row.pixels - p;
    const int8_t* from = x + p * kStride * row.column_step;
#pragma GCC unroll 4
    for (int k = kKept; k < kColumns; ++k) {
      // An odd last window has no second: its columns need not exist.
      if (k < 3 || left > 1) interleave_column(row, valid, flips, from + k * row.column_step, columns[k]);
    }
    depthwise_column_pixels<kFinish, kStride>(out, columns, w, p, left);
#pragma GCC unroll 2
    for (int k = 0; k < kKept; ++k) {
#pragma GCC unroll 4
      for (int part = 0; part < kTapGroup; ++part) columns[k][part] = columns[2 * kStride + k][part];
    }
  }
  out.finish_before(row.pixels);
}

void depthwise_columns_row(const DepthwiseRow& row, int64_t stride, const int8_t* x, const uint8_t* w, int32_t* y) {
  if (row.finish == nullptr) {
    stride == 1 ? depthwise_columns_of<false, 1>(row, x, w, y) : depthwise_columns_of<false, 2>(row, x, w, y);
  } else {
    stride == 1 ? depthwise_columns_of<true, 1>(row, x, w, y) : depthwise_columns_of<true, 2>(row, x, w, y);
  }
}
#endif

}  // namespace
}  // namespace openrknn::npu
