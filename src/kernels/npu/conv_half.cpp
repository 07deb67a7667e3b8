// fp16 convolutions: brings the slab and blocks of filters to doubles, notes which groups are exact there, and splits
// the work. See conv_half_loops.hpp.
#include <algorithm>
#include <atomic>
#include <vector>

#include "base/checked.hpp"
#include "base/half.hpp"
#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/elementwise.hpp"
#include "kernels/npu/kept.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kPixelChunk = 48;
constexpr int64_t kMostLanes = 32;      // of a block of filters
constexpr int64_t kBlockChannels = 64;  // of a depthwise block

std::vector<HalfGroup> chunks_of(int64_t channels, int64_t slice, int64_t group) {
  std::vector<HalfGroup> chunks;
  for (int64_t begin = 0; begin < channels; begin += slice) {
    const int64_t end = std::min(begin + slice, channels);
    for (int64_t c = begin; c < end; c += group) chunks.push_back({c, std::min(group, end - c)});
  }
  return chunks;
}

// The order of the fp32 additions: slice, kh, kw, and the groups of a slice.
std::vector<HalfStep> steps_of(const ConvShape& s, int64_t slice, const std::vector<HalfGroup>& chunks) {
  const std::vector<int64_t> taps = tap_pixels(s);
  std::vector<HalfStep> steps;
  for (size_t begin = 0; begin < chunks.size();) {
    size_t end = begin;
    while (end < chunks.size() && chunks[end].first / slice == chunks[begin].first / slice) ++end;
    for (size_t tap = 0; tap < taps.size(); ++tap) {
      for (size_t k = begin; k < end; ++k) {
        steps.push_back({taps[tap] * s.in_channels + chunks[k].first, static_cast<int64_t>(k), taps[tap],
                         chunks[k].first, chunks[k].n, static_cast<int64_t>(tap) * s.in_channels + chunks[k].first});
      }
    }
    begin = end;
  }
  return steps;
}

// Real channels alone, as doubles.
struct WideSlab {
  WideSlab(size_t count, size_t groups, bool all_exact)
      : values(count), stats(all_exact ? 0 : groups), exact(all_exact) {}
  Kept<double> values;
  Kept<HalfStats> stats;  // [pixel][chunk], unless all sums are exact
  bool exact;
};

// The stats of whole rows hold for all groups in them, and often suffice; the first that do not end the search.
bool all_exact(const ConvShape& s, const ConvKernels& kernels, int most_span, const uint16_t* input) {
  const int64_t row = s.in_w * s.channels;
  std::atomic<bool> exact{true};
  parallel_for(s.in_h, std::max<int64_t>(1, 65536 / row), [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last && exact; ++y) {
      if (kernels.half_stats(row, input + y * row).span > most_span) exact = false;
    }
  });
  return exact;
}

void widen_slab(const ConvShape& s, const ConvKernels& kernels, const std::vector<HalfGroup>& chunks,
                const uint16_t* input, WideSlab& slab) {
  const auto count = static_cast<int64_t>(slab.exact ? 0 : chunks.size());
  parallel_for(s.in_h, std::max<int64_t>(1, 8192 / (s.in_w * s.channels)), [&](int64_t first, int64_t last) {
    const int64_t pixel = first * s.in_w;
    kernels.half_slab((last - first) * s.in_w, s.channels, s.in_channels, chunks.data(), count,
                      input + pixel * s.channels, slab.values.data() + pixel * s.in_channels,
                      slab.exact ? nullptr : slab.stats.data() + pixel * count);
  });
}

// Filters [channel, channel + lanes) in the order of the loops, [step][n][lanes], and their stats a step; `to` holds
// zeros, which stats ignore.
void pack_filters(const ConvShape& s, const ConvKernels& kernels, const std::vector<HalfStep>& steps, int64_t channel,
                  const uint16_t* weights, uint16_t* to, HalfStats* stats) {
  const int64_t filter = s.kernel_h * s.kernel_w * s.in_channels, lanes = kernels.half_channels;
  const int64_t valid = std::min(lanes, s.out_channels - channel);
  for (const HalfStep& step : steps) {
    for (int64_t lane = 0; lane < valid; ++lane) {
      const uint16_t* from = weights + (channel + lane) * filter + step.w;
      for (int64_t k = 0; k < step.n; ++k) to[k * lanes + lane] = from[k];
    }
    *stats++ = kernels.half_stats(step.n * lanes, to);
    to += step.n * lanes;
  }
}

// Doubles of filters, whole vectors in lines of the cache.
struct alignas(64) WideLine {
  static constexpr int64_t kDoubles = 8;
  double values[kDoubles];
};
using WideFilters = Kept<WideLine>;

// What the blocks of one call share.
class HalfRun {
 public:
  HalfRun(const ConvShape& s, const uint16_t* input, const HalfFilters& filters, const AccumulatorSink<float>& sink,
          const HalfRequest& request)
      : s_(s),
        input_(input),
        filters_(filters),
        sink_(sink),
        request_(request),
        kernels_(*filters.kernels),
        chunks_(chunks_of(s.in_channels, filters.slice, filters.group)),
        steps_(steps_of(s, filters.slice, chunks_)),
        slab_(static_cast<size_t>(s.in_h * s.in_w * s.in_channels),
              static_cast<size_t>(s.in_h * s.in_w) * chunks_.size(), all_exact(s, kernels_, filters.most_span, input)),
        windows_(window_pixels(s)),
        offsets_(scaled(windows_, s.in_channels)),
        filter_(s.kernel_h * s.kernel_w * s.in_channels) {
    widen_slab(s, kernels_, chunks_, input, slab_);
  }

  int64_t blocks() const { return ceil_div(s_.out_channels, lanes()); }
  int64_t pixel_chunks() const { return ceil_div(pixels(), kPixelChunk); }

  size_t filter_lines() const { return static_cast<size_t>(ceil_div(filter_ * lanes(), WideLine::kDoubles)); }
  // The filters of a block as doubles.
  void widen_filters(int64_t i, WideFilters& wide) const {
    const int64_t n = filter_ * lanes();
    kernels_.half_slab(1, n, n, nullptr, 0, filters_.packed.data() + i * n, reinterpret_cast<double*>(wide.data()),
                       nullptr);
  }

  void run(int64_t i, const WideFilters& wide, int64_t first_chunk, int64_t last_chunk) const {
    alignas(64) float accumulators[kPixelChunk * kMostLanes];
    const int64_t channel = i * lanes();
    HalfBlock block{};
    block.input = slab_.values.data();
    block.input_bits = input_;
    block.bits_step = s_.channels;
    block.input_stats = slab_.exact ? nullptr : slab_.stats.data();
    block.chunks = static_cast<int64_t>(chunks_.size());
    block.steps = steps_.data();
    block.step_count = static_cast<int64_t>(steps_.size());
    block.weights = reinterpret_cast<const double*>(wide.data());
    block.weight_stats = filters_.stats.data() + i * block.step_count;
    block.weight_bits = filters_.plain.data() + channel * filter_;
    block.filter_size = filter_;
    block.out_channels = std::min(lanes(), s_.out_channels - channel);
    block.output = accumulators;
    block.out_stride = block.out_channels;
    block.exact = exact_dot_f16;
    for (int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
      const int64_t pixel = chunk * kPixelChunk;
      block.pixel_offset = offsets_.data() + pixel;
      block.pixel_index = windows_.data() + pixel;
      block.pixels = std::min(kPixelChunk, pixels() - pixel);
      HalfOutput finish{};
      const bool finishes = request_ && request_(pixel, block.pixels, channel, block.out_channels, finish);
      block.finish = finishes ? &finish : nullptr;
      kernels_.half(block);
      if (!finishes) sink_({pixel, block.pixels, channel, block.out_channels, accumulators, nullptr});
    }
  }

 private:
  int64_t lanes() const { return kernels_.half_channels; }
  int64_t pixels() const { return static_cast<int64_t>(windows_.size()); }

  const ConvShape& s_;
  const uint16_t* input_;
  const HalfFilters& filters_;
  const AccumulatorSink<float>& sink_;
  const HalfRequest& request_;
  const ConvKernels& kernels_;
  std::vector<HalfGroup> chunks_;
  std::vector<HalfStep> steps_;
  WideSlab slab_;
  std::vector<int64_t> windows_, offsets_;
  int64_t filter_;
};

// Whether the loops take the slab as it is: windows share columns, and whole vectors of channels may be read.
bool takes_halves(const ConvShape& s, const ConvKernels& kernels) {
  if (kernels.depthwise_halves == nullptr || s.dilation_w != 1 || s.stride_w > 2) return false;
  const int64_t read = ceil_div(s.in_channels, kernels.row_lanes) * kernels.row_lanes;
  return (s.kernel_w == 3 || s.kernel_w == 5) && (read - s.channels) * int64_t{sizeof(uint16_t)} <= s.slack;
}

}  // namespace

bool HalfFilters::current() const { return kernels == &conv_kernels(); }

HalfFilters pack_conv_f16(const ConvShape& s, int64_t slice, int64_t group, const uint16_t* weights) {
  HalfFilters filters{&conv_kernels(), slice, group, {}, {}, {}, 0, {}};
  const std::vector<HalfStep> steps = steps_of(s, slice, chunks_of(s.in_channels, slice, group));
  const auto count = static_cast<int64_t>(steps.size());
  const int64_t lanes = filters.kernels->half_channels, blocks = ceil_div(s.out_channels, lanes);
  const int64_t filter = s.kernel_h * s.kernel_w * s.in_channels;
  filters.plain.assign(weights, weights + s.out_channels * filter);
  filters.packed.resize(static_cast<size_t>(blocks * filter * lanes));
  filters.stats.resize(static_cast<size_t>(blocks * count));
  parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      pack_filters(s, *filters.kernels, steps, i * lanes, weights, filters.packed.data() + i * filter * lanes,
                   filters.stats.data() + i * count);
    }
  });
  filters.most_span = kDoubleBits;
  for (size_t i = 0; i < filters.stats.size(); ++i) {
    const int most = most_span(steps[i % steps.size()].n, filters.stats[i]);
    filters.most_span = std::min(filters.most_span, most);
  }
  return filters;
}

HalfFilters pack_depthwise_f16(const ConvShape& s, const uint16_t* weights) {
  HalfFilters filters;
  filters.kernels = &conv_kernels();
  const int64_t n = s.kernel_h * s.kernel_w * s.in_channels;
  filters.wide.resize(static_cast<size_t>(n + kDepthwiseSlack));
  widen_block(1, n, weights, n, filters.wide.data());
  return filters;
}

void conv_f16(const ConvShape& s, const uint16_t* input, const HalfFilters& filters, const AccumulatorSink<float>& sink,
              const HalfRequest& request) {
  const HalfRun run(s, input, filters, sink, request);
  if (run.blocks() >= 2 * thread_count()) {  // every thread its own filters
    parallel_for(run.blocks(), 1, [&](int64_t first, int64_t last) {
      WideFilters wide(run.filter_lines());
      for (int64_t i = first; i < last; ++i) {
        run.widen_filters(i, wide);
        run.run(i, wide, 0, run.pixel_chunks());
      }
    });
    return;
  }
  WideFilters wide(run.filter_lines());
  for (int64_t i = 0; i < run.blocks(); ++i) {
    run.widen_filters(i, wide);
    parallel_for(run.pixel_chunks(), 1, [&](int64_t first, int64_t last) { run.run(i, wide, first, last); });
  }
}

void depthwise_f16(const ConvShape& s, const uint16_t* input, const HalfFilters& filters,
                   const AccumulatorSink<float>& sink, const HalfRequest& request) {
  const ConvKernels& kernels = *filters.kernels;
  const int64_t row_size = s.in_w * s.channels, taps = s.kernel_h * s.kernel_w;
  const bool halves = takes_halves(s, kernels);
  Kept<float> x(static_cast<size_t>(halves ? 0 : s.in_h * row_size + kDepthwiseSlack));
  if (!halves) {
    parallel_for(s.in_h, std::max<int64_t>(1, 8192 / row_size), [&](int64_t first, int64_t last) {
      const int64_t n = (last - first) * row_size;
      widen_block(1, n, input + first * row_size, n, x.data() + first * row_size);
    });
  }
  const std::vector<int64_t> offsets = scaled(tap_pixels(s), s.channels);
  const int64_t pieces = ceil_div(s.out_w, kPixelChunk);
  parallel_for(
      s.out_h * pieces, std::max<int64_t>(1, 4096 / (s.out_w * s.in_channels)), [&](int64_t begin, int64_t end) {
        alignas(64) float accumulators[kPixelChunk * kBlockChannels + kDepthwiseSlack];
        DepthwiseRow row{};
        row.pixel_step = s.stride_w * s.channels;
        row.tap_offset = offsets.data();
        row.taps = taps;
        row.weight_step = s.in_channels;
        row.column_step = s.channels;
        row.shared_columns = s.stride_w;
        row.kernel_w = s.kernel_w;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t y = i / pieces, column = i % pieces * kPixelChunk;
          const int64_t pixel = y * s.out_w + column;
          row.pixels = std::min(kPixelChunk, s.out_w - column);
          for (int64_t channel = 0; channel < s.in_channels; channel += kBlockChannels) {
            row.channels = std::min(kBlockChannels, s.in_channels - channel);
            const int64_t from = y * s.stride_h * row_size + column * row.pixel_step + channel;
            const float* w = filters.wide.data() + channel;
            HalfOutput finish{};
            const bool finishes = halves && request && request(pixel, row.pixels, channel, row.channels, finish);
            row.half_finish = finishes ? &finish : nullptr;
            if (halves) {
              kernels.depthwise_halves(row, input + from, w, accumulators);
            } else {
              kernels.depthwise_f16(row, x.data() + from, w, accumulators);
            }
            if (!finishes) sink({pixel, row.pixels, channel, row.channels, accumulators, nullptr});
          }
        }
      });
}

namespace {

AccumulatorSink<float> store_all(int64_t channels, float* accumulators) {
  return [=](const AccumulatorBlock<float>& b) {
    for (int64_t p = 0; p < b.pixels; ++p)
      std::copy_n(b.values + p * b.channels, b.channels, accumulators + (b.pixel + p) * channels + b.channel);
  };
}

}  // namespace

void conv_f16(const ConvShape& s, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators) {
  conv_f16(s, input, pack_conv_f16(s, slice, group, weights), store_all(s.out_channels, accumulators));
}

void depthwise_f16(const ConvShape& s, const uint16_t* input, const uint16_t* weights, float* accumulators) {
  depthwise_f16(s, input, pack_depthwise_f16(s, weights), store_all(s.in_channels, accumulators));
}

}  // namespace openrknn::npu
