// fp16 convolution loops. A group's products are exact in double; their sum is too when the values' spans are small
// enough (docs/ARITHMETIC.md "Exact sums in doubles"), and then the conversion to fp32 is the one rounding. Otherwise
// the sum's error is bounded and it counts only if both ends of the bound round to the same fp32; what remains goes to
// the exact integers of exact_dot_f16. Groups of one product are exact in fp32 itself. Contraction of products into fma
// changes nothing, so it is allowed in these files.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/half_finish_loops.hpp"
#include "kernels/npu/half_stats.hpp"

namespace openrknn::npu {
namespace {

#if defined(__AVX512F__)
constexpr int kHalfLanes = 8, kHalfVectors = 4, kHalfPixels = 6;
#elif defined(__AVX2__)
constexpr int kHalfLanes = 4, kHalfVectors = 2, kHalfPixels = 6;
#else
constexpr int kHalfLanes = 2, kHalfVectors = 2, kHalfPixels = 4;
#endif
constexpr int kHalfChannels = kHalfLanes * kHalfVectors;
typedef double Doubles __attribute__((vector_size(kHalfLanes * 8)));
typedef float Floats __attribute__((vector_size(kHalfLanes * 4)));

inline Doubles load(const double* p) {
  Doubles d;
  memcpy(&d, p, sizeof d);
  return d;
}

// Conversions of whole vectors: g++ 12 takes those of __builtin_convertvector apart.
inline Floats rounded(Doubles d) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(_mm512_cvtpd_ps(reinterpret_cast<__m512d>(d)));
#elif defined(__AVX2__)
  return reinterpret_cast<Floats>(_mm256_cvtpd_ps(reinterpret_cast<__m256d>(d)));
#else
  return __builtin_convertvector(d, Floats);
#endif
}

// 2^e for normal doubles.
inline double exp2_int(int e) {
  const uint64_t bits = static_cast<uint64_t>(e + 1023) << 52;
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

// Adds the group's sums of one pixel, not known to be exact, to its accumulators.
[[gnu::noinline]] void add_checked(const HalfBlock& b, int64_t pixel, const HalfStep& step, const HalfStats& x,
                                   const HalfStats& w, const double* sums, float* accumulators) {
  const bool special = x.span == kSpecialSpan || w.span == kSpecialSpan;
  const auto n = static_cast<double>(step.n);
  // n roundings of partial sums below n * 2^(tops), each at most 2^-53 of it; twice that, for what is neglected.
  const double error = special ? 0 : n * n * exp2_int(x.top + w.top - kDoubleBits + 1);
  for (int64_t c = 0; c < b.out_channels && c < kHalfChannels; ++c) {
    const auto low = static_cast<float>(sums[c] - error), high = static_cast<float>(sums[c] + error);
    float part = low;
    if (special || low != high) {
      const uint16_t* bits = b.input_bits + (b.pixel_index[pixel] + step.tap_pixel) * b.bits_step + step.first;
      part = b.exact(bits, b.weight_bits + c * b.filter_size + step.w, step.n);
    }
    accumulators[c] += part;
  }
}

// The accumulators of `pixels` pixels from one on, rows of `step` floats, as sums or results. Not part of the tiles,
// whose code would no longer fit the processor's caches of instructions. Vectors may be read behind the last row.
[[gnu::noinline]] void put_tile(const HalfBlock& b, int64_t pixel, int64_t pixels, const float* totals, int64_t step) {
  for (int64_t p = pixel; p < pixel + pixels; ++p, totals += step) {
    for (int64_t c = 0; c < b.out_channels; c += kRowLanes) {
      const Row total = *reinterpret_cast<const Row*>(totals + c);
      const int64_t n = b.out_channels - c;
      if (b.finish != nullptr) {
        finish_lanes<kRowLanes>(*b.finish, total, c, n, b.finish->y + p * b.finish->y_stride + c);
      } else {
        put_lanes(one_nan(total), n, b.output + p * b.out_stride + c);
      }
    }
  }
}

// P pixels times the first V vectors of the block's channels; kChecked: not all sums are known to be exact.
template <bool kChecked, int V, int P>
void half_tile(const HalfBlock& b, int64_t pixel) {
  const int64_t left = b.pixels - pixel;
  const double* window[P];
  const HalfStats* stats[P];
  for (int p = 0; p < P; ++p) {
    const int64_t at = pixel + (p < left ? p : left - 1);
    window[p] = b.input + b.pixel_offset[at];
    stats[p] = kChecked ? b.input_stats + b.pixel_index[at] * b.chunks : nullptr;
  }
  Floats accumulators[P][V];
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) accumulators[p][k] = Floats{};
  }
  const double* weights = b.weights;
  for (int64_t s = 0; s < b.step_count; ++s) {
    const HalfStep& step = b.steps[s];
    Doubles sum[P][V];
#pragma GCC unroll 24
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) sum[p][k] = Doubles{};
    }
    for (int64_t i = 0; i < step.n; ++i, weights += kHalfChannels) {
      Doubles w[V];
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) w[k] = load(weights + k * kHalfLanes);
#pragma GCC unroll 24
      for (int p = 0; p < P; ++p) {
        const double x = window[p][step.x + i];
#pragma GCC unroll 4
        for (int k = 0; k < V; ++k) sum[p][k] += w[k] * x;
      }
    }
    if constexpr (!kChecked) {
#pragma GCC unroll 24
      for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
        for (int k = 0; k < V; ++k) accumulators[p][k] += rounded(sum[p][k]);
      }
      continue;
    }
    const HalfStats& w_stats = b.weight_stats[s];
    const int allowed = most_span(step.n, w_stats);
    const int64_t stat = step.tap_pixel * b.chunks + step.chunk;
#pragma GCC unroll 24
    for (int p = 0; p < P; ++p) {
      const HalfStats& x_stats = stats[p][stat];
      if (x_stats.span <= allowed) {
#pragma GCC unroll 4
        for (int k = 0; k < V; ++k) accumulators[p][k] += rounded(sum[p][k]);
      } else if (p < left) {
        double lanes[V * kHalfLanes];
        float totals[V * kHalfLanes];
        memcpy(lanes, sum[p], sizeof lanes);
        memcpy(totals, accumulators[p], sizeof totals);
        add_checked(b, pixel + p, step, x_stats, w_stats, lanes, totals);
        memcpy(accumulators[p], totals, sizeof totals);
      }
    }
  }
  alignas(64) float totals[P * V * kHalfLanes + kRowLanes];
  memcpy(totals, accumulators, sizeof accumulators);
  put_tile(b, pixel, left < P ? left : P, totals, int64_t{V} * kHalfLanes);
}

template <bool kChecked, int V, int P>
void half_tiles(const HalfBlock& b) {
  for (int64_t pixel = 0; pixel < b.pixels; pixel += P) half_tile<kChecked, V, P>(b, pixel);
}

// Few channels leave vectors empty; more pixels take their registers.
template <bool kChecked>
void half_block_of(const HalfBlock& b) {
  constexpr int kTiles = kHalfVectors * kHalfPixels;
  const int64_t vectors = (b.out_channels + kHalfLanes - 1) / kHalfLanes;
  if (vectors == 1) return half_tiles<kChecked, 1, kTiles / 2>(b);
  if (vectors == 2) return half_tiles<kChecked, 2, kTiles / 2>(b);
  if (kHalfVectors == 4 && vectors == 3) return half_tiles<kChecked, 3, kTiles / 3>(b);
  half_tiles<kChecked, kHalfVectors, kHalfPixels>(b);
}

// Groups of one product: exact in fp32, also when it is infinite or NaN, so that each is one step of a sum in fp32.
template <int V, int P>
void single_tile(const HalfBlock& b, int64_t pixel) {
  const int64_t left = b.pixels - pixel;
  const double* window[P];
  for (int p = 0; p < P; ++p) window[p] = b.input + b.pixel_offset[pixel + (p < left ? p : left - 1)];
  Floats accumulators[P][V];
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) accumulators[p][k] = Floats{};
  }
  const double* weights = b.weights;
  for (int64_t s = 0; s < b.step_count; ++s, weights += kHalfChannels) {
    const int64_t at = b.steps[s].x;
    Floats w[V];
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) w[k] = rounded(load(weights + k * kHalfLanes));  // halves: exact
#pragma GCC unroll 24
    for (int p = 0; p < P; ++p) {
      const auto x = static_cast<float>(window[p][at]);
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) accumulators[p][k] += w[k] * x;
    }
  }
  alignas(64) float totals[P * V * kHalfLanes + kRowLanes];
  memcpy(totals, accumulators, sizeof accumulators);
  put_tile(b, pixel, left < P ? left : P, totals, int64_t{V} * kHalfLanes);
}

template <int V, int P>
void single_tiles(const HalfBlock& b) {
  for (int64_t pixel = 0; pixel < b.pixels; pixel += P) single_tile<V, P>(b, pixel);
}

void single_block(const HalfBlock& b) {
  constexpr int kTiles = kHalfVectors * kHalfPixels;
  const int64_t vectors = (b.out_channels + kHalfLanes - 1) / kHalfLanes;
  if (vectors == 1) return single_tiles<1, kTiles / 2>(b);
  if (vectors == 2) return single_tiles<2, kTiles / 2>(b);
  single_tiles<kHalfVectors, kHalfPixels>(b);
}

void half_block(const HalfBlock& b) {
  bool single = true;
  for (int64_t s = 0; s < b.step_count; ++s) single = single && b.steps[s].n == 1;
  if (single) return single_block(b);
  b.input_stats == nullptr ? half_block_of<false>(b) : half_block_of<true>(b);
}

}  // namespace
}  // namespace openrknn::npu
