// fp16 depthwise convolutions: products of halves are exact in fp32, so each tap is one multiply-add, in the order kh,
// kw. Windows that share columns (kernels of 3 or 5 columns, strides 1 and 2) take halves as they lie: each is brought
// to fp32 once for all windows of a run. The others take a slab of floats. Compiled per instruction set: see
// rows_loops.hpp for what may not stand here.
#pragma once

#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/half_finish_loops.hpp"

namespace openrknn::npu {
namespace {

// P pixels of V vectors of channels, at x, w and y. Vectors reach beyond the channels: what they write there is either
// written again by the next pixel or lies behind the block.
template <int V, int P>
inline void depthwise_pixels(const DepthwiseRow& row, const float* x, const float* w, float* y) {
  Row sum[P][V];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) sum[p][k] = Row{};
  }
  for (int64_t tap = 0; tap < row.taps; ++tap, w += row.weight_step) {
    const float* from = x + row.tap_offset[tap];
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) {
      const Row weights = *reinterpret_cast<const Row*>(w + k * kRowLanes);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p)
        sum[p][k] += weights * *reinterpret_cast<const Row*>(from + p * row.pixel_step + k * kRowLanes);
    }
  }
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) *reinterpret_cast<Row*>(y + p * row.channels + k * kRowLanes) = one_nan(sum[p][k]);
  }
}

template <int V>
void depthwise_row_of(const DepthwiseRow& row, const float* x, const float* w, float* y) {
  constexpr int kPixels = 8 / V;
  int64_t p = 0;
  for (; p + kPixels <= row.pixels; p += kPixels)
    depthwise_pixels<V, kPixels>(row, x + p * row.pixel_step, w, y + p * row.channels);
  for (; p < row.pixels; ++p) depthwise_pixels<V, 1>(row, x + p * row.pixel_step, w, y + p * row.channels);
}

// Reads and writes whole vectors: x, w and y must be readable and writable kDepthwiseSlack floats beyond their ends.
void depthwise_f16_row(const DepthwiseRow& row, const float* x, const float* w, float* y) {
  const int64_t vectors = (row.channels + kRowLanes - 1) / kRowLanes;
  switch (vectors) {
    case 1:
      return depthwise_row_of<1>(row, x, w, y);
    case 2:
      return depthwise_row_of<2>(row, x, w, y);
    case 3:
    case 4:
      return depthwise_row_of<4>(row, x, w, y);
    default:
      break;
  }
  for (int64_t p = 0; p < row.pixels; ++p) {
    const float* from = x + p * row.pixel_step;
    float* to = y + p * row.channels;
    int64_t k = 0;
    for (; k + 4 <= vectors; k += 4)
      depthwise_pixels<4, 1>(row, from + k * kRowLanes, w + k * kRowLanes, to + k * kRowLanes);
    for (; k < vectors; ++k) depthwise_pixels<1, 1>(row, from + k * kRowLanes, w + k * kRowLanes, to + k * kRowLanes);
  }
}

#if defined(__F16C__)

inline Row load_halves(const uint16_t* x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Row>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
#else
  return reinterpret_cast<Row>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
#endif
}

// P windows `S` columns apart, one vector of channels from c on.
template <int K, int S, int P>
inline void shared_windows(const DepthwiseRow& row, const uint16_t* x, const float* w, int64_t pixel, int64_t c,
                           float* y) {
  Row sum[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p] = Row{};
  for (int64_t tap = 0; tap < row.taps; tap += K, w += K * row.weight_step) {
    const uint16_t* from = x + row.tap_offset[tap];
    Row weights[K], columns[(P - 1) * S + K];
#pragma GCC unroll 5
    for (int k = 0; k < K; ++k) weights[k] = *reinterpret_cast<const Row*>(w + k * row.weight_step);
    int loaded = 0;
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 8
      for (; loaded < p * S + K; ++loaded) columns[loaded] = load_halves(from + loaded * row.column_step);
#pragma GCC unroll 5
      for (int k = 0; k < K; ++k) sum[p] += weights[k] * columns[p * S + k];
    }
  }
  const int64_t n = row.channels - c;
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    if (row.half_finish != nullptr) {
      const HalfOutput& o = *row.half_finish;
      finish_lanes<kRowLanes>(o, sum[p], c, n, o.y + (pixel + p) * o.y_stride + c);
      continue;
    }
    put_lanes(one_nan(sum[p]), n, y + (pixel + p) * row.channels + c);
  }
}

// P windows at a time, the last ones with some that were computed before; false: there are fewer.
template <int K, int S, int P>
bool shared_runs(const DepthwiseRow& row, const uint16_t* x, const float* w, float* y) {
  if (row.pixels < P) return false;
  for (int64_t first = 0; first < row.pixels; first += P) {
    const int64_t p = first + P <= row.pixels ? first : row.pixels - P;
    for (int64_t c = 0; c < row.channels; c += kRowLanes)
      shared_windows<K, S, P>(row, x + p * row.pixel_step + c, w + c, p, c, y);
  }
  return true;
}

template <int K, int S>
void shared_row(const DepthwiseRow& row, const uint16_t* x, const float* w, float* y) {
#if defined(__AVX512F__)
  if (shared_runs<K, S, 8>(row, x, w, y)) return;
#endif
  if (!shared_runs<K, S, 4>(row, x, w, y)) shared_runs<K, S, 1>(row, x, w, y);
}

void depthwise_halves_row(const DepthwiseRow& row, const uint16_t* x, const float* w, float* y) {
  const bool wide = row.kernel_w == 5;
  if (row.shared_columns == 1) return wide ? shared_row<5, 1>(row, x, w, y) : shared_row<3, 1>(row, x, w, y);
  wide ? shared_row<5, 2>(row, x, w, y) : shared_row<3, 2>(row, x, w, y);
}

#endif

}  // namespace
}  // namespace openrknn::npu
