// Depthwise int8 convolutions with vpdpbusd, 64 lanes at a time: the bytes of a group of four taps are interleaved, so
// that each dword of a vector holds the taps of one lane. Lanes are 64 channels, or 32 or 16 channels at 2 or 4 runs of
// windows side by side. Filters lie as ConvKernels::depthwise_bytes says. See rows_loops.hpp for what may not stand
// here.
#pragma once

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/requantize_vectors.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512VNNI__)
inline __mmask64 valid_channels(const DepthwiseRow& row) {
  return row.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << row.channels) - 1;
}

// The bytes of a tap, made unsigned.
template <int kRuns>
inline __m512i load_tap(const DepthwiseRow& row, __mmask64 valid, __m512i flips, const int8_t* p) {
  if constexpr (kRuns == 1) return _mm512_xor_si512(_mm512_maskz_loadu_epi8(valid, p), flips);
  const int64_t* run = row.run_elements;
  if constexpr (kRuns == 2) {
    const auto half = static_cast<__mmask32>(valid);
    const __m256i first = _mm256_maskz_loadu_epi8(half, p), second = _mm256_maskz_loadu_epi8(half, p + run[1]);
    return _mm512_xor_si512(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), flips);
  }
  const auto quarter = static_cast<__mmask16>(valid);
  __m512i all = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(quarter, p));
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, p + run[1]), 1);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, p + run[2]), 2);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(quarter, p + run[3]), 3);
  return _mm512_xor_si512(all, flips);
}

// The bytes of 4 vectors side by side, in 4 parts of 16 lanes.
inline void interleave_bytes(__m512i a, __m512i b, __m512i c, __m512i d, __m512i* parts) {
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  parts[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
  parts[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
  parts[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
  parts[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

// Between the order of 4 parts and that of their lanes: blocks of 128 bits turned like a matrix.
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

// Sums of windows, by parts, until they go to y in the order of their channels or become results. In memory, a few
// windows at a time: what makes them and what becomes of them need the registers one after the other.
template <bool kFinish, int kRuns>
class DepthwiseOutput {
 public:
  static constexpr int64_t kWindows = 16;

  DepthwiseOutput(const DepthwiseRow& row, __mmask64 valid, const uint8_t* starts, int32_t* y)
      : row_(row), valid_(valid), y_(y) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) start_[k] = _mm512_load_si512(starts + 64 * k);
    if constexpr (kFinish) {
      __m512i bias[4];
      by_parts(row.finish->bias, bias);
      by_parts(row.finish->factor, factor_);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) start_[k] = _mm512_add_epi32(start_[k], bias[k]);
    }
  }

  // What sums of a part begin with.
  __m512i start(int part) const { return start_[part]; }
  void put(int64_t window, int part, __m512i sum) {
    _mm512_store_si512(sums_ + window % kWindows * 64 + part * 16, sum);
  }

  // Windows [first, end), first a multiple of kWindows, have all been put.
  void flush(int64_t first, int64_t end) const {
    if constexpr (!kFinish) return store(first, end);
    row_.finish->wide ? finish<true>(first, end) : finish<false>(first, end);
  }

 private:
  static constexpr int kLanes = 64 / kRuns;  // of a run

  void by_parts(const void* channels, __m512i* parts) const {
    __m512i ordered[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const int first = k * 16 % kLanes;
      const auto lanes = static_cast<__mmask16>(valid_ >> first);
      ordered[k] = _mm512_maskz_loadu_epi32(lanes, static_cast<const int32_t*>(channels) + first);
    }
    turn_parts(ordered, parts);
  }

  void store(int64_t first, int64_t end) const {
    const int32_t* sums = sums_;
    for (int64_t window = first; window < end; ++window, sums += 64) {
      __m512i parts[4], ordered[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) parts[k] = _mm512_load_si512(sums + 16 * k);
      turn_parts(parts, ordered);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const int lane = k * 16 % kLanes, run = k * 16 / kLanes;
        const auto lanes = static_cast<__mmask16>(valid_ >> lane);
        int32_t* to = y_ + (window + row_.run_windows[run]) * row_.channels + lane;
        if (lanes == 0xFFFF) {
          _mm512_storeu_si512(to, ordered[k]);
        } else if (lanes != 0) {
          _mm512_mask_storeu_epi32(to, lanes, ordered[k]);
        }
      }
    }
  }

  template <bool kWide>
  void finish(int64_t first, int64_t end) const {
    const RequantizeBlock& b = *row_.finish;
    const RequantizeVectors vectors(b);
    const int64_t y_stride = b.y_stride;
    int64_t run[kRuns];
    for (int i = 0; i < kRuns; ++i) run[i] = row_.run_windows[i] * y_stride;
    int8_t* y = b.y + first * y_stride;
    const int32_t* sums = sums_;
    for (int64_t window = first; window < end; ++window, sums += 64, y += y_stride) {
      __m512i u[4];
      __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const __m512i t = _mm512_load_si512(sums + 16 * k);
        u[k] = requantize_vector<false, true, kWide>(vectors, t, _mm512_castsi512_ps(factor_[k]), 0xFFFF, nullptr);
        least = _mm512_min_epu16(least, u[k]);
      }
      if (__builtin_expect(any_doubt(vectors, least), 0)) {
        decide<kWide>(window, sums);
        continue;
      }
      const __m512i bytes = result_bytes_of_parts(vectors, u);
      int8_t* at[kRuns];
#pragma GCC unroll 4
      for (int i = 0; i < kRuns; ++i) at[i] = y + run[i];
      if (valid_ == ~__mmask64{0} >> (64 - kLanes)) {
        store_results<true, 4 / kRuns>(bytes, valid_, at);
      } else {
        store_results<false, 4 / kRuns>(bytes, valid_, at);
      }
    }
  }

  // Windows with values that fp32 does not decide.
  template <bool kWide>
  [[gnu::noinline]] void decide(int64_t window, const int32_t* sums) const {
    __m512i t[4], ordered[4];
    for (int k = 0; k < 4; ++k) t[k] = _mm512_load_si512(sums + 16 * k);
    turn_parts(t, ordered);
    alignas(64) int32_t values[64];
    for (int k = 0; k < 4; ++k) _mm512_store_si512(values + 16 * k, ordered[k]);
    for (int i = 0; i < kRuns; ++i)
      requantize_doubtful<false, kWide>(*row_.finish, values + i * kLanes, window + row_.run_windows[i], 0,
                                        row_.channels);
  }

  const DepthwiseRow& row_;
  __mmask64 valid_;
  int32_t* y_;
  __m512i start_[4], factor_[4] = {};
  alignas(64) int32_t sums_[kWindows * 64];
};

// Up to 4 taps of a window.
template <int kRuns>
inline void interleave_taps(const DepthwiseRow& row, __mmask64 valid, __m512i flips, const int8_t* x, int64_t tap,
                            __m512i* parts) {
  const int64_t left = row.taps - tap;
  const __m512i zero = _mm512_setzero_si512();
  const int64_t* offset = row.tap_offset + tap;
  const __m512i a = load_tap<kRuns>(row, valid, flips, x + offset[0]);
  const __m512i b = left > 1 ? load_tap<kRuns>(row, valid, flips, x + offset[1]) : zero;
  const __m512i c = left > 2 ? load_tap<kRuns>(row, valid, flips, x + offset[2]) : zero;
  const __m512i d = left > 3 ? load_tap<kRuns>(row, valid, flips, x + offset[3]) : zero;
  interleave_bytes(a, b, c, d, parts);
}

template <bool kFinish, int kRuns, int kAddends, int kWindows>
void depthwise_windows(const DepthwiseRow& row, DepthwiseOutput<kFinish, kRuns>& out, __mmask64 valid, const int8_t* x,
                       const uint8_t* weights, int64_t window) {
  __m512i sum[kWindows][kTapGroup], more[kWindows][kTapGroup];
  const __m512i flips = _mm512_load_si512(weights);
#pragma GCC unroll 4
  for (int k = 0; k < kTapGroup; ++k) {
#pragma GCC unroll 2
    for (int p = 0; p < kWindows; ++p) {
      sum[p][k] = out.start(k);
      more[p][k] = _mm512_setzero_si512();
    }
  }
  weights += (1 + kTapGroup) * 64;
  for (int64_t tap = 0; tap < row.taps; tap += kTapGroup, weights += 2 * kTapGroup * 64) {
    __m512i parts[kWindows][kTapGroup];
#pragma GCC unroll 2
    for (int p = 0; p < kWindows; ++p) interleave_taps<kRuns>(row, valid, flips, x + p * row.pixel_step, tap, parts[p]);
#pragma GCC unroll 4
    for (int k = 0; k < kTapGroup; ++k) {
      const __m512i first = _mm512_load_si512(weights + k * 64);
      const __m512i second = _mm512_load_si512(weights + (kTapGroup + k) * 64);
#pragma GCC unroll 2
      for (int p = 0; p < kWindows; ++p) {
        sum[p][k] = _mm512_dpbusd_epi32(sum[p][k], parts[p][k], first);
        if constexpr (kAddends == 2) more[p][k] = _mm512_dpbusd_epi32(more[p][k], parts[p][k], second);
      }
    }
  }
#pragma GCC unroll 2
  for (int p = 0; p < kWindows; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < kTapGroup; ++k) out.put(window + p, k, _mm512_add_epi32(sum[p][k], more[p][k]));
  }
}

template <bool kFinish, int kRuns, int kAddends>
void depthwise_bytes_of(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  using Output = DepthwiseOutput<kFinish, kRuns>;
  const __mmask64 valid = valid_channels(row);
  Output out(row, valid, w + 64, y);
  for (int64_t first = 0; first < row.pixels; first += Output::kWindows) {
    const int64_t end = first + Output::kWindows < row.pixels ? first + Output::kWindows : row.pixels;
    int64_t p = first;
    for (; p + 2 <= end; p += 2)
      depthwise_windows<kFinish, kRuns, kAddends, 2>(row, out, valid, x + p * row.pixel_step, w, p);
    if (p < end) depthwise_windows<kFinish, kRuns, kAddends, 1>(row, out, valid, x + p * row.pixel_step, w, p);
    out.flush(first, end);
  }
}

// A column of 3 rows.
template <int kRuns>
inline void interleave_column(const DepthwiseRow& row, __mmask64 valid, __m512i flips, const int8_t* x,
                              __m512i* parts) {
  interleave_bytes(load_tap<kRuns>(row, valid, flips, x + row.tap_offset[0]),
                   load_tap<kRuns>(row, valid, flips, x + row.tap_offset[3]),
                   load_tap<kRuns>(row, valid, flips, x + row.tap_offset[6]), _mm512_setzero_si512(), parts);
}

// One part of kWindows windows, kStride columns apart: the part of each column that they meet lies 64 bytes behind that
// of the one before it.
template <int kStride, int kAddends, int kWindows>
inline void depthwise_part(const uint8_t* columns, const __m512i (*weights)[2], __m512i start, __m512i* sum) {
#pragma GCC unroll 4
  for (int p = 0; p < kWindows; ++p) sum[p] = start;
#pragma GCC unroll 3
  for (int column = 0; column < 3; ++column) {
#pragma GCC unroll 2
    for (int addend = 0; addend < kAddends; ++addend) {
#pragma GCC unroll 4
      for (int p = 0; p < kWindows; ++p) {
        const __m512i x = _mm512_load_si512(columns + (p * kStride + column) * 64);
        sum[p] = _mm512_dpbusd_epi32(sum[p], x, weights[column][addend]);
      }
    }
  }
}

// First the columns of some windows are interleaved; then come all windows part by part, with the part's weights in
// registers.
template <bool kFinish, int kRuns, int kStride, int kAddends>
void depthwise_columns_of(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  using Output = DepthwiseOutput<kFinish, kRuns>;
  constexpr int64_t kColumns = (Output::kWindows - 1) * kStride + 3;
  const __mmask64 valid = valid_channels(row);
  const __m512i flips = _mm512_load_si512(w);
  Output out(row, valid, w + 64, y);
  w += (1 + kTapGroup) * 64;
  alignas(64) uint8_t columns[kTapGroup][kColumns][64];
  for (int64_t first = 0; first < row.pixels; first += Output::kWindows) {
    const int64_t n = first + Output::kWindows < row.pixels ? Output::kWindows : row.pixels - first;
    const int8_t* from = x + first * kStride * row.column_step;
    for (int64_t column = 0; column < (n - 1) * kStride + 3; ++column) {
      __m512i parts[kTapGroup];
      interleave_column<kRuns>(row, valid, flips, from + column * row.column_step, parts);
#pragma GCC unroll 4
      for (int k = 0; k < kTapGroup; ++k) _mm512_store_si512(columns[k][column], parts[k]);
    }
    for (int k = 0; k < kTapGroup; ++k) {
      __m512i weights[3][2];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) weights[i / 2][i % 2] = _mm512_load_si512(w + (i * kTapGroup + k) * 64);
      int64_t p = 0;
      for (; p + 4 <= n; p += 4) {
        __m512i sum[4];
        depthwise_part<kStride, kAddends, 4>(columns[k][p * kStride], weights, out.start(k), sum);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) out.put(p + i, k, sum[i]);
      }
      for (; p < n; ++p) {
        __m512i sum[1];
        depthwise_part<kStride, kAddends, 1>(columns[k][p * kStride], weights, out.start(k), sum);
        out.put(p, k, sum[0]);
      }
    }
    out.flush(first, first + n);
  }
}

template <bool kFinish, int kRuns, int kAddends>
void depthwise_with(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  if (row.shared_columns == 0) return depthwise_bytes_of<kFinish, kRuns, kAddends>(row, x, w, y);
  if (row.shared_columns == 1) return depthwise_columns_of<kFinish, kRuns, 1, kAddends>(row, x, w, y);
  depthwise_columns_of<kFinish, kRuns, 2, kAddends>(row, x, w, y);
}

template <bool kFinish, int kRuns>
void depthwise_of(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  row.one_addend ? depthwise_with<kFinish, kRuns, 1>(row, x, w, y) : depthwise_with<kFinish, kRuns, 2>(row, x, w, y);
}

template <bool kFinish>
void depthwise_in_runs(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  if (row.runs == 4) return depthwise_of<kFinish, 4>(row, x, w, y);
  if (row.runs == 2) return depthwise_of<kFinish, 2>(row, x, w, y);
  depthwise_of<kFinish, 1>(row, x, w, y);
}

void depthwise_bytes_row(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
  row.finish == nullptr ? depthwise_in_runs<false>(row, x, w, y) : depthwise_in_runs<true>(row, x, w, y);
}
#endif

}  // namespace
}  // namespace openrknn::npu
