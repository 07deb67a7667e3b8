// int8 convolution loops over the vectors of conv_vectors.hpp. Sums of integers: any order gives the same result.
#pragma once

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/conv_vectors.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kGroupBytes = 4;
constexpr int64_t kLaneBytes = int64_t{Ints::kLanes} * kGroupBytes;

// kPixels windows times kPanels panels, accumulators in registers. Windows beyond `pixels` repeat the last one.
template <int kPixels, int kPanels>
void integer_tile(const IntegerBlock& b, int64_t pixel, int64_t panel) {
  const int64_t left = b.pixels - pixel;
  const uint8_t* window[kPixels];
  for (int p = 0; p < kPixels; ++p) window[p] = b.input + b.pixel_offset[pixel + (p < left ? p : left - 1)];
  const int64_t panel_bytes = b.taps * b.groups * kLaneBytes;
  const uint8_t* weights = b.weights + panel * panel_bytes;
  Ints sum[kPixels][kPanels];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < kPanels; ++k) sum[p][k] = Ints::zero();
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
  for (int p = 0; p < kPixels && p < left; ++p) {
    const Ints less = b.subtrahend == nullptr ? Ints::zero() : Ints::broadcast(b.subtrahend + pixel + p);
    int32_t* output = b.output + (pixel + p) * b.out_stride;
    for (int k = 0; k < kPanels; ++k) {
      const int64_t first = (panel + k) * Ints::kLanes;
      const int64_t valid = b.out_channels - first;
      const Ints value = sum[p][k] - less;
      if (valid >= Ints::kLanes) {
        value.store(output + first);
      } else {
        int32_t lanes[Ints::kLanes];
        value.store(lanes);
        for (int64_t i = 0; i < valid; ++i) output[first + i] = lanes[i];
      }
    }
  }
}

template <int kPixels, int kPanels>
void integer_tiles(const IntegerBlock& b, int64_t panel) {
  for (int64_t pixel = 0; pixel < b.pixels; pixel += kPixels) integer_tile<kPixels, kPanels>(b, pixel, panel);
}

// Register tiles: 32 vector registers with AVX-512, 16 elsewhere.
constexpr int kWidePanels = Ints::kLanes == 16 ? 4 : 2;
constexpr int kWidePixels = Ints::kLanes == 16 ? 6 : 4;
constexpr int kNarrowPixels = Ints::kLanes == 16 ? 12 : 8;

void integer_block(const IntegerBlock& b) {
  const int64_t panels = (b.out_channels + Ints::kLanes - 1) / Ints::kLanes;
  int64_t panel = 0;
  for (; panel + kWidePanels <= panels; panel += kWidePanels) integer_tiles<kWidePixels, kWidePanels>(b, panel);
  if constexpr (kWidePanels == 4) {
    if (panel + 2 <= panels) {
      integer_tiles<kNarrowPixels, 2>(b, panel);
      panel += 2;
    }
  }
  if (panel < panels) integer_tiles<kNarrowPixels, 1>(b, panel);
}

int32_t dot_s8(int64_t n, const int8_t* w, const int16_t* x) {
  constexpr int kProducts = 2 * Ints::kLanes;
  Ints sums = Ints::zero();
  int64_t i = 0;
  for (; i + kProducts <= n; i += kProducts) sums = sums + Ints::widen_dot(w + i, x + i);
  int32_t lanes[Ints::kLanes];
  sums.store(lanes);
  int32_t sum = 0;
  for (int k = 0; k < Ints::kLanes; ++k) sum += lanes[k];
  for (; i < n; ++i) sum += w[i] * x[i];
  return sum;
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
        product[k] = product[k] + value * Ints::load(w + tap * row.channels + c + k * Ints::kLanes);
        if constexpr (kSums) window[k] = window[k] + value;
      }
    }
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
        product += value * w[tap * row.channels + c];
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
