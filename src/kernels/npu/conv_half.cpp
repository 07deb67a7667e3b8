// fp16 convolutions: brings the slab and blocks of filters to doubles, notes which groups are exact there, and splits
// the work. See conv_half_loops.hpp.
#include <algorithm>
#include <bit>
#include <vector>

#include "base/half.hpp"
#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/elementwise.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kPixelChunk = 48;

// The groups of one pixel: [first, first + n) channels, none across a slice.
struct Chunk {
  int64_t first, n;
};

std::vector<Chunk> chunks_of(int64_t channels, int64_t slice, int64_t group) {
  std::vector<Chunk> chunks;
  for (int64_t begin = 0; begin < channels; begin += slice) {
    const int64_t end = std::min(begin + slice, channels);
    for (int64_t c = begin; c < end; c += group) chunks.push_back({c, std::min(group, end - c)});
  }
  return chunks;
}

// The order of the fp32 additions: slice, kh, kw, and the groups of a slice.
std::vector<HalfStep> steps_of(const ConvShape& s, int64_t slice, const std::vector<Chunk>& chunks) {
  const std::vector<int64_t> taps = tap_pixels(s);
  std::vector<HalfStep> steps;
  for (size_t begin = 0; begin < chunks.size();) {
    size_t end = begin;
    while (end < chunks.size() && chunks[end].first / slice == chunks[begin].first / slice) ++end;
    for (size_t tap = 0; tap < taps.size(); ++tap) {
      for (size_t k = begin; k < end; ++k) {
        steps.push_back({taps[tap] * s.channels + chunks[k].first, static_cast<int64_t>(k), taps[tap], chunks[k].n,
                         static_cast<int64_t>(tap) * s.in_channels + chunks[k].first});
      }
    }
    begin = end;
  }
  return steps;
}

// Bits of the largest magnitude, and of the smallest nonzero one minus 1 (0x7FFF when all are zero).
struct Range {
  int16_t largest = 0, smallest = 0x7FFF;
  void add(const Range& other) {
    largest = std::max(largest, other.largest);
    smallest = std::min(smallest, other.smallest);
  }
};

Range range_of(const uint16_t* x, int64_t n) {
  int16_t largest = 0, smallest = 0x7FFF;
  for (int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<int16_t>(x[i] & 0x7FFF);
    const auto less = static_cast<int16_t>((x[i] - 1) & 0x7FFF);  // 0x7FFF for zeros of both signs
    largest = magnitude > largest ? magnitude : largest;
    smallest = less < smallest ? less : smallest;
  }
  return {largest, smallest};
}

// A half with exponent field e >= 1 lies below 2^(e - 14) and is a multiple of 2^(e - 25); subnormals as e = 1.
HalfStats stats_of(const Range& range) {
  if (range.largest == 0) return {0, -64};  // zeros only
  if (range.largest >= 0x7C00) return {kSpecialSpan, 0};
  const int top = std::max(range.largest >> 10, 1) - 14;
  const int unit = std::max((range.smallest + 1) >> 10, 1) - 25;
  return {static_cast<uint8_t>(top - unit), static_cast<int8_t>(top)};
}

struct WideSlab {
  std::vector<double> values;
  std::vector<HalfStats> stats;  // [pixel][chunk]
};

void widen(int64_t n, const uint16_t* from, double* to) {
  constexpr int64_t kPiece = 256;
  float piece[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t m = std::min(kPiece, n - i);
    widen_block(1, m, from + i, m, piece);
    for (int64_t k = 0; k < m; ++k) to[i + k] = piece[k];
  }
}

WideSlab widen_slab(const ConvShape& s, const std::vector<Chunk>& chunks, const uint16_t* input) {
  WideSlab slab;
  slab.values.resize(static_cast<size_t>(s.in_h * s.in_w * s.channels));
  slab.stats.resize(static_cast<size_t>(s.in_h * s.in_w) * chunks.size());
  parallel_for(s.in_h, 1, [&](int64_t first, int64_t last) {
    for (int64_t pixel = first * s.in_w; pixel < last * s.in_w; ++pixel) {
      const uint16_t* x = input + pixel * s.channels;
      widen(s.in_channels, x, slab.values.data() + pixel * s.channels);
      HalfStats* stats = slab.stats.data() + pixel * static_cast<int64_t>(chunks.size());
      for (const Chunk& chunk : chunks) *stats++ = stats_of(range_of(x + chunk.first, chunk.n));
    }
  });
  return slab;
}

// Filters [channel, channel + lanes) as doubles in the order of the loops: [step][n][lanes].
struct WideFilters {
  std::vector<double> values;
  std::vector<HalfStats> stats;  // [step]
};

void widen_filters(const ConvShape& s, const std::vector<HalfStep>& steps, int64_t lanes, int64_t channel,
                   const uint16_t* weights, WideFilters& filters) {
  const int64_t filter = s.kernel_h * s.kernel_w * s.in_channels;
  const int64_t valid = std::min(lanes, s.out_channels - channel);
  filters.values.resize(static_cast<size_t>(filter * lanes));
  filters.stats.resize(steps.size());
  int64_t longest = 0;
  for (const HalfStep& step : steps) longest = std::max(longest, step.n);
  const int64_t row = longest + 16;  // a cache line more: rows of a power of two would share their cache sets
  std::vector<float> tile(static_cast<size_t>(lanes * row));
  double* to = filters.values.data();
  for (size_t i = 0; i < steps.size(); ++i) {
    const HalfStep& step = steps[i];
    Range range;
    for (int64_t lane = 0; lane < valid; ++lane) {
      const uint16_t* from = weights + (channel + lane) * filter + step.w;
      widen_block(1, step.n, from, step.n, tile.data() + lane * row);
      range.add(range_of(from, step.n));
    }
    filters.stats[i] = stats_of(range);
    for (int64_t k = 0; k < step.n; ++k, to += lanes) {
      const float* column = tile.data() + k;
      for (int64_t lane = 0; lane < lanes; ++lane) to[lane] = column[lane * row];
    }
  }
}

}  // namespace

void conv_f16(const ConvShape& s, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators) {
  const ConvKernels& kernels = conv_kernels();
  const std::vector<Chunk> chunks = chunks_of(s.in_channels, slice, group);
  const std::vector<HalfStep> steps = steps_of(s, slice, chunks);
  const WideSlab slab = widen_slab(s, chunks, input);
  const std::vector<int64_t> windows = window_pixels(s), offsets = scaled(windows, s.channels);
  const auto pixels = static_cast<int64_t>(windows.size());
  const int64_t lanes = kernels.half_channels, blocks = (s.out_channels + lanes - 1) / lanes;
  const int64_t pixel_chunks = (pixels + kPixelChunk - 1) / kPixelChunk;

  const auto run = [&](const WideFilters& filters, int64_t channel, int64_t first_chunk, int64_t last_chunk) {
    for (int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
      const int64_t pixel = chunk * kPixelChunk;
      HalfBlock block{};
      block.input = slab.values.data();
      block.input_bits = input;
      block.input_stats = slab.stats.data();
      block.chunks = static_cast<int64_t>(chunks.size());
      block.pixel_offset = offsets.data() + pixel;
      block.pixel_index = windows.data() + pixel;
      block.pixels = std::min(kPixelChunk, pixels - pixel);
      block.steps = steps.data();
      block.step_count = static_cast<int64_t>(steps.size());
      block.weights = filters.values.data();
      block.weight_stats = filters.stats.data();
      block.filter_size = s.kernel_h * s.kernel_w * s.in_channels;
      block.weight_bits = weights + channel * block.filter_size;
      block.out_channels = std::min(lanes, s.out_channels - channel);
      block.output = accumulators + pixel * s.out_channels + channel;
      block.out_stride = s.out_channels;
      block.exact = exact_dot_f16;
      kernels.half(block);
    }
  };

  if (blocks >= 2 * thread_count()) {  // every thread its own filters
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      WideFilters filters;
      for (int64_t i = first; i < last; ++i) {
        widen_filters(s, steps, lanes, i * lanes, weights, filters);
        run(filters, i * lanes, 0, pixel_chunks);
      }
    });
    return;
  }
  WideFilters filters;
  for (int64_t i = 0; i < blocks; ++i) {
    widen_filters(s, steps, lanes, i * lanes, weights, filters);
    parallel_for(pixel_chunks, 1, [&](int64_t first, int64_t last) { run(filters, i * lanes, first, last); });
  }
}

void depthwise_f16(const ConvShape& s, const uint16_t* input, const uint16_t* weights, float* accumulators) {
  const ConvKernels& kernels = conv_kernels();
  const int64_t row_size = s.in_w * s.channels, taps = s.kernel_h * s.kernel_w;
  std::vector<float> x(static_cast<size_t>(s.in_h * row_size)), w(static_cast<size_t>(taps * s.in_channels));
  widen_block(1, taps * s.in_channels, weights, taps * s.in_channels, w.data());
  parallel_for(s.in_h, 1, [&](int64_t first, int64_t last) {
    const int64_t n = (last - first) * row_size;
    widen_block(1, n, input + first * row_size, n, x.data() + first * row_size);
  });
  const std::vector<int64_t> offsets = scaled(tap_pixels(s), s.channels);
  const DepthwiseRow row{s.out_w, s.stride_w * s.channels, offsets.data(), taps, s.in_channels};
  parallel_for(s.out_h, 1, [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y) {
      kernels.depthwise_f16(row, x.data() + y * s.stride_h * row_size, w.data(),
                            accumulators + y * s.out_w * s.in_channels);
    }
  });
}

}  // namespace openrknn::npu
