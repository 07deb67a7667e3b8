// The loops of winograd.cpp over the vectors of conv_vectors.hpp. All integers modulo 2^32 but for the transforms,
// which fit 16 bits. Compiled per instruction set: see rows_loops.hpp for what may not stand here.
#pragma once

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/conv_vectors.hpp"

namespace openrknn::npu {
namespace {

// out = B^T d: 4d0 - 5d2 + d4, and so on (Lavin and Gray's F(4, 3)).
inline void transform_input(const Shorts* d, Shorts* out, int step) {
  const Shorts sum12 = d[1 * step] + d[2 * step], difference12 = d[1 * step] - d[2 * step];
  const Shorts sum34 = d[3 * step] + d[4 * step], difference43 = d[4 * step] - d[3 * step];
  const Shorts difference42 = d[4 * step] - d[2 * step];
  const Shorts twice31 = (d[3 * step] - d[1 * step]).left<1>();
  out[0] = d[0].left<2>() - d[2 * step].left<2>() + difference42;
  out[1] = sum34 - sum12.left<2>();
  out[2] = difference43 + difference12.left<2>();
  out[3] = difference42 + twice31;
  out[4] = difference42 - twice31;
  out[5] = (d[1 * step] - d[3 * step]).left<2>() - d[3 * step] + d[5 * step];
}

// One tile of 6x6 pixels, whose rows and columns lie at these offsets: to[point * plane + channel], whole vectors.
void winograd_input(const int8_t* x, const int64_t* rows, const int64_t* columns, int64_t channels, int16_t* to,
                    int64_t plane) {
  for (int64_t c = 0; c < channels; c += Shorts::kLanes) {
    const int64_t left = channels - c;
    Shorts across[6 * 6];  // [column][row of B^T]
    for (int column = 0; column < 6; ++column) {
      Shorts d[6];
#pragma GCC unroll 6
      for (int row = 0; row < 6; ++row) {
        const int8_t* from = x + rows[row] + columns[column] + c;
        d[row] = left >= Shorts::kLanes ? Shorts::load_s8(from) : Shorts::load_s8(from, left);
      }
      transform_input(d, across + column * 6, 1);
    }
    for (int row = 0; row < 6; ++row) {
      Shorts points[6];
      transform_input(across + row, points, 6);
#pragma GCC unroll 6
      for (int column = 0; column < 6; ++column) points[column].store(to + (row * 6 + column) * plane + c);
    }
  }
}

// At one point: sums over the channels for kTiles tiles and kPanels panels.
template <int kTiles, int kPanels>
inline void winograd_point(const WinogradBlock& b, const int16_t* x, const uint8_t* weights, int32_t* sums) {
  constexpr int64_t kGroup = 4, kLine = int64_t{Ints::kLanes} * kGroup;
  Ints sum[kTiles][kPanels];
#pragma GCC unroll 16
  for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 2
    for (int k = 0; k < kPanels; ++k) sum[t][k] = Ints::zero();
  }
  for (int64_t group = 0; group < b.groups; ++group, weights += kLine) {
    Ints w[kPanels];
#pragma GCC unroll 2
    for (int k = 0; k < kPanels; ++k) w[k] = Ints::load(weights + k * b.panel_bytes);
#pragma GCC unroll 16
    for (int t = 0; t < kTiles; ++t) {
      const Ints pair = Ints::broadcast(x + t * b.tile_step + 2 * group);
#pragma GCC unroll 2
      for (int k = 0; k < kPanels; ++k) sum[t][k] = sum[t][k].dot_pairs(w[k], pair);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 2
    for (int k = 0; k < kPanels; ++k) sum[t][k].store(sums + (t * kPanels + k) * Ints::kLanes);
  }
}

// So many tiles, at most as many as registers hold sums of.
template <int kPanels, int kTiles>
inline void winograd_rest(const WinogradBlock& b, int64_t tiles, const int16_t* x, const uint8_t* weights,
                          int32_t* sums) {
  if (tiles == kTiles) return winograd_point<kTiles, kPanels>(b, x, weights, sums);
  if constexpr (kTiles > 1) winograd_rest<kPanels, kTiles - 1>(b, tiles, x, weights, sums);
}

template <int kPanels>
void winograd_points(const WinogradBlock& b) {
  constexpr int kMost = Ints::kLanes == 16 ? 12 : 6;
  const int64_t point_bytes = b.groups * Ints::kLanes * 4;
  for (int64_t point = 0; point < kWinogradPoints; ++point) {
    const int16_t* x = b.input + point * b.plane;
    const uint8_t* weights = b.weights + point * point_bytes;
    int32_t* sums = b.sums + point * b.sum_plane;
    for (int64_t t = 0; t < b.tiles;) {
      const int64_t left = b.tiles - t, rounds = (left + kMost - 1) / kMost, n = (left + rounds - 1) / rounds;
      winograd_rest<kPanels, kMost>(b, n, x + t * b.tile_step, weights, sums + t * kPanels * Ints::kLanes);
      t += n;
    }
  }
}

// A^T m with the factors 24 / (4, -6, -6, 24, 24, 1) of the points in it.
inline void transform_output(const Ints* m, Ints* out, int step) {
  const Ints sum12 = m[1] + m[2], difference12 = (m[1] - m[2]).left<2>();
  const Ints sum34 = m[3] + m[4], difference34 = m[3] - m[4];
  out[0 * step] = m[0].left<2>() + m[0].left<1>() + sum34 - sum12.left<2>();
  out[1 * step] = difference34.left<1>() - difference12;
  out[2 * step] = (sum34 - sum12).left<2>();
  out[3 * step] = difference34.left<3>() - difference12 + m[5].left<4>() + m[5].left<3>();
}

// 16 pixels of `channels` results from the sums of one tile, vectors one after the other.
void winograd_output(const int32_t* sums, int64_t plane, int64_t channels, int32_t* y, int64_t row_step,
                     int64_t pixel_step) {
  const int32_t kNinth = 954437177;  // times 9 is 1 modulo 2^32
  const Ints ninth = Ints::broadcast(&kNinth);
  for (int64_t c = 0; c < channels; c += Ints::kLanes) {
    const int64_t left = channels - c;
    Ints down[6 * 4];  // [column][row]
    for (int column = 0; column < 6; ++column) {
      Ints m[6];
#pragma GCC unroll 6
      for (int row = 0; row < 6; ++row) m[row] = Ints::load(sums + (row * 6 + column) * plane + c);
      transform_output(m, down + column, 6);
    }
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row) {
      Ints out[4];
      transform_output(down + row * 6, out, 1);
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) {
        const Ints value = out[p].times(ninth).right<6>();
        int32_t* to = y + row * row_step + p * pixel_step + c;
        if (left >= Ints::kLanes) {
          value.store(to);
        } else {
          value.store(to, left);
        }
      }
    }
  }
}

void winograd_products(const WinogradBlock& b) {
  if (b.panels == 2) return winograd_points<2>(b);
  winograd_points<1>(b);
}

constexpr WinogradKernels kWinogradLoops = {Ints::kLanes, winograd_input, winograd_products, winograd_output};

}  // namespace
}  // namespace openrknn::npu
