// int8 convolutions: packs filters into panels, brings the slab into the loops' element type, and splits the work.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/requantizer.hpp"
#include "kernels/npu/winograd.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kPixelChunk = 96;                   // of one piece of work
constexpr int64_t kBlockChannels = 64;                // at most, of one block of accumulators
constexpr int64_t kInputOffset = 128;                 // what makes bytes of depthwise inputs unsigned
constexpr int64_t kGrainProducts = int64_t{1} << 20;  // of one thread at least
constexpr int64_t kGroupBytes = 4;
constexpr int64_t kSlack = 4;  // bytes that the last group may read behind a slab

int64_t taps_of(const ConvShape& s) { return s.kernel_h * s.kernel_w; }

// Few channels would leave much of their groups empty. The pixels that a row of the kernel meets follow each other, so
// that the row can be one tap of all their channels.
bool joins_columns(const ConvShape& s) { return s.kernel_w > 1 && s.dilation_w == 1 && s.in_channels % 4 != 0; }

// The same convolution as the loops see it.
struct Taps {
  int64_t count, channels;
};
Taps taps_of_loops(const ConvShape& s) {
  if (joins_columns(s)) return {s.kernel_h, s.kernel_w * s.in_channels};
  return {taps_of(s), s.in_channels};
}

// ---- direct ----

// The slab as the loops want it: pixels of `lanes` elements of 1 or 2 bytes.
struct Slab {
  const uint8_t* data = nullptr;
  int64_t pixel_bytes = 0;
  std::vector<uint8_t> storage;
};

// Copies the real channels of every pixel, padded by zeros to whole groups.
template <typename T>
void copy_slab(const ConvShape& s, const int8_t* input, int64_t lanes, Slab& slab) {
  slab.pixel_bytes = lanes * static_cast<int64_t>(sizeof(T));
  slab.storage.resize(static_cast<size_t>(s.in_h * s.in_w * slab.pixel_bytes + kSlack));
  slab.data = slab.storage.data();
  auto* to = reinterpret_cast<T*>(slab.storage.data());
  parallel_for(s.in_h, 1, [&](int64_t first, int64_t last) {
    for (int64_t pixel = first * s.in_w; pixel < last * s.in_w; ++pixel) {
      const int8_t* from = input + pixel * s.channels;
      for (int64_t c = 0; c < s.in_channels; ++c) to[pixel * lanes + c] = from[c];
    }
  });
}

Slab prepare_slab(const ConvShape& s, const int8_t* input, bool bytes) {
  Slab slab;
  const bool join = joins_columns(s);
  if (!bytes) {
    copy_slab<int16_t>(s, input, join ? s.in_channels : align_up(s.in_channels, 2), slab);
  } else if (join && (s.channels != s.in_channels || s.slack < kGroupBytes)) {
    copy_slab<int8_t>(s, input, s.in_channels, slab);
  } else if (join || s.channels >= align_up(s.in_channels, 4)) {
    slab.data = reinterpret_cast<const uint8_t*>(input);  // lanes beyond the real ones meet zero weights
    slab.pixel_bytes = s.channels;
  } else {
    copy_slab<int8_t>(s, input, align_up(s.in_channels, 4), slab);
  }
  return slab;
}

// 4 bytes of a panel from the `left` channels that remain. The bits of `flips` add the offset of 128.
// Channels beyond the real ones weigh nothing: byte 0.
uint32_t byte_group(const int8_t* from, int64_t left, uint32_t flips) {
  uint32_t word = 0;
  if (left >= 4) {
    std::memcpy(&word, from, 4);
    return word ^ flips;
  }
  std::memcpy(&word, from, static_cast<size_t>(left));
  return (word ^ flips) & (0xFFFFFFFFU >> (8 * (4 - left)));
}

uint32_t pair_group(const int8_t* from, int64_t left, uint32_t) {
  const auto first = static_cast<uint16_t>(from[0]), second = static_cast<uint16_t>(left > 1 ? from[1] : 0);
  return first | static_cast<uint32_t>(second) << 16;
}

// One panel: [tap][group][lane][4 bytes].
template <bool kBytes>
void pack_panel(const ConvShape& s, const ConvKernels& kernels, const int8_t* weights, int64_t first_channel,
                uint8_t* panel) {
  constexpr int64_t kGroup = kBytes ? 4 : 2;
  const uint32_t flips = kernels.weight_offset == 0 ? 0 : 0x80808080U;  // of 128
  const int64_t lanes = kernels.integer_lanes;
  const auto [taps, channels] = taps_of_loops(s);
  const int64_t filter = taps * channels;
  const int64_t valid = std::min<int64_t>(lanes, s.out_channels - first_channel);
  const int8_t* from = weights + first_channel * filter;
  for (int64_t tap = 0; tap < taps; ++tap, from += channels) {
    for (int64_t c = 0; c < channels; c += kGroup, panel += lanes * 4) {
      for (int64_t lane = 0; lane < valid; ++lane) {
        const int8_t* group = from + lane * filter + c;
        const uint32_t word = kBytes ? byte_group(group, channels - c, flips) : pair_group(group, channels - c, flips);
        std::memcpy(panel + lane * 4, &word, sizeof word);
      }
      if (valid < lanes) std::memset(panel + valid * 4, 0, static_cast<size_t>(lanes - valid) * 4);
    }
  }
}

struct Panels {
  int64_t groups, count, bytes;  // 4-byte groups a pixel; panels; bytes of one
};

Panels panels_of(const ConvShape& s, const ConvKernels& kernels) {
  const auto [taps, channels] = taps_of_loops(s);
  const int64_t groups = ceil_div(channels, kernels.integer_bytes ? 4 : 2);
  return {groups, ceil_div(s.out_channels, kernels.integer_lanes), taps * groups * kernels.integer_lanes * kGroupBytes};
}

// Bytes from the slab's start to the windows of pixels [first, first + n), counted row by row.
void window_offsets(const ConvShape& s, int64_t pixel_bytes, int64_t first, int64_t n, int64_t* offsets) {
  const int64_t step = s.stride_w * pixel_bytes;
  for (int64_t i = 0, y = first / s.out_w, x = first % s.out_w; i < n; ++y, x = 0) {
    const int64_t end = std::min(n, i + s.out_w - x);
    int64_t at = (y * s.stride_h * s.in_w + x * s.stride_w) * pixel_bytes;
    for (; i < end; ++i, at += step) offsets[i] = at;
  }
}

// Whether two int16 hold any window's sum.
bool sums_fit_pairs(const ConvShape& s) { return taps_of(s) * s.in_channels * 128 <= 2 * INT16_MAX; }

int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xFFFFU) | static_cast<uint32_t>(high) << 16);
}
int32_t pair_of_sum(int32_t sum) { return pair_of(sum >> 1, sum - (sum >> 1)); }

// Sums of x over each window, from sums over each pixel of the slab: along the rows, then down the columns.
std::vector<int32_t> sum_windows(const ConvShape& s, const ConvKernels& kernels, const int8_t* input) {
  std::vector<int32_t> lines(static_cast<size_t>(s.in_h * s.out_w));
  parallel_for(s.in_h, std::max<int64_t>(1, 4096 / s.in_w), [&](int64_t first, int64_t last) {
    const bool direct = s.kernel_w == 1 && s.stride_w == 1 && s.in_w == s.out_w;
    std::vector<int32_t> pixels(static_cast<size_t>(direct ? 0 : s.in_w));
    for (int64_t y = first; y < last; ++y) {
      if (direct) {
        kernels.sum_pixels(s.in_w, s.channels, s.in_channels, input + y * s.in_w * s.channels,
                           lines.data() + y * s.out_w);
        continue;
      }
      kernels.sum_pixels(s.in_w, s.channels, s.in_channels, input + y * s.in_w * s.channels, pixels.data());
      kernels.sum_line(s.out_w, s.kernel_w, s.dilation_w, s.stride_w, pixels.data(), lines.data() + y * s.out_w);
    }
  });
  if (s.kernel_h == 1 && s.stride_h == 1) {
    lines.resize(static_cast<size_t>(s.out_h * s.out_w));
    return lines;
  }
  std::vector<int32_t> sums(static_cast<size_t>(s.out_h * s.out_w));
  for (int64_t y = 0; y < s.out_h; ++y) {
    kernels.sum_line(s.out_w, s.kernel_h, s.dilation_h * s.out_w, 1, lines.data() + y * s.stride_h * s.out_w,
                     sums.data() + y * s.out_w);
  }
  return sums;
}

// ---- depthwise ----

int64_t depthwise_lines(const ConvShape& s) { return 1 + kTapGroup * (2 * ceil_div(taps_of(s), kTapGroup) + 1); }

// Few channels leave lanes of a block empty; where they divide it, neighbouring pixels can fill it if they lie
// together. With more channels, runs of windows fill it as well, and share columns.
bool pixels_share_block(const ConvShape& s) {
  constexpr int64_t kFew = 8;
  return s.stride_w == 1 && s.in_channels <= kFew && kBlockChannels % s.in_channels == 0;
}

// Lanes of a run of windows of `channels` channels (DepthwiseRow::runs).
int64_t run_lanes(int64_t channels) { return channels > 32 ? 64 : channels > 16 ? 32 : 16; }

// Whether windows share the columns that they interleave (DepthwiseRow::shared_columns).
bool shares_columns(const ConvShape& s) {
  return s.kernel_h == 3 && s.kernel_w == 3 && s.dilation_w == 1 && s.stride_w <= 2 && !pixels_share_block(s);
}

// The loops' interleaved bytes: see ConvKernels::depthwise_bytes. False when two bytes do not hold a weight.
bool interleave_depthwise(const ConvShape& s, IntegerFilters& filters) {
  const int64_t taps = taps_of(s), lines = depthwise_lines(s), blocks = ceil_div(s.in_channels, kBlockChannels);
  filters.packed.assign(static_cast<size_t>(blocks * lines), CacheLine{});
  filters.one_addend.assign(static_cast<size_t>(blocks), true);
  for (int64_t i = 0; i < blocks * kBlockChannels; ++i) {
    const int64_t block_channel = i / kBlockChannels * kBlockChannels, lane = i % kBlockChannels;
    const int64_t period = pixels_share_block(s) ? s.in_channels : run_lanes(s.in_channels - block_channel);
    const int64_t c = block_channel + lane % period;
    if (c >= s.in_channels) continue;
    CacheLine* block = filters.packed.data() + block_channel / kBlockChannels * lines;
    // The order that two rounds of byte unpacking within 16 bytes leave.
    const int64_t part = lane % 16 / 4, at = lane / 16 * 4 + lane % 4;
    const auto weight = [&](int64_t tap) { return filters.wide[static_cast<size_t>(tap * s.in_channels + c)]; };
    int32_t largest = 0;
    for (int64_t tap = 0; tap < taps; ++tap) largest = std::max(largest, weight(tap));
    // 255 = 127 + 128 is too much for two bytes, but -255 is not.
    const bool negate = largest > 2 * 127;
    block[0].bytes[lane] = negate ? 0x7F : 0x80;
    int32_t sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int32_t w = negate ? -weight(tap) : weight(tap);
      const int32_t first = std::clamp(w, -128, 127), second = w - first;
      if (second < -128 || second > 127) return false;
      if (second != 0) filters.one_addend[static_cast<size_t>(block_channel / kBlockChannels)] = false;
      sum += w;
      const int64_t slot = shares_columns(s) ? tap % 3 * kTapGroup + tap / 3 : tap;
      CacheLine* group = block + 1 + (1 + slot / kTapGroup * 2) * kTapGroup + part;
      group[0].bytes[at * 4 + slot % kTapGroup] = static_cast<uint8_t>(first);
      group[kTapGroup].bytes[at * 4 + slot % kTapGroup] = static_cast<uint8_t>(second);
    }
    // x = (x ^ 0x80) - 128 = 127 - (x ^ 0x7F)
    const auto start = static_cast<int32_t>((negate ? -127 : -kInputOffset) * sum);
    std::memcpy(block[1 + part].bytes + at * 4, &start, sizeof start);
  }
  return true;
}

// A row whose pixels lie together, as blocks of several pixels; `call`: of its results, or nullptr.
void depthwise_shared(const ConvKernels& kernels, DepthwiseRow row, const int8_t* x, const uint8_t* weights,
                      int32_t* accumulators, RequantizeCall* call) {
  const int64_t values = row.pixels * row.channels, whole = values / kBlockChannels;
  row.pixels = whole;
  row.channels = row.pixel_step = kBlockChannels;
  kernels.depthwise_bytes(row, x, weights, accumulators);
  row.pixels = 1;
  row.channels = values - whole * kBlockChannels;
  if (row.channels == 0) return;
  x += whole * kBlockChannels;
  if (call != nullptr) call->skip_rows(whole);
  kernels.depthwise_bytes(row, x, weights, accumulators + whole * kBlockChannels);
}

// Splits a row where several windows fit into a vector; the last run may repeat windows of the one before it.
void set_runs(DepthwiseRow& row) {
  const int64_t pixels = row.pixels, runs = std::min(kBlockChannels / run_lanes(row.channels), pixels);
  row.runs = runs == 3 ? 2 : runs;
  row.pixels = ceil_div(pixels, row.runs);
  for (int64_t run = 0; run < row.runs; ++run) {
    row.run_windows[run] = std::min(run * row.pixels, pixels - row.pixels);
    row.run_elements[run] = row.run_windows[run] * row.pixel_step;
  }
}

}  // namespace

bool IntegerFilters::current() const { return kernels == &conv_kernels(); }

IntegerFilters pack_fastest_conv_s8(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero, int64_t out_h,
                                    int64_t out_w) {
  IntegerFilters filters;
  filters.kernels = &conv_kernels();
  if (winograd_refusal(s, out_h, out_w, bytes_are_cheap()) == nullptr)
    filters.winograd = pack_winograd_s8(s, weights, minus_zero);
  return filters.winograd.empty() ? pack_conv_s8(s, weights, minus_zero) : filters;
}

IntegerFilters pack_conv_s8(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  IntegerFilters filters;
  filters.kernels = &conv_kernels();
  const ConvKernels& kernels = *filters.kernels;
  const Panels panels = panels_of(s, kernels);
  filters.packed.resize(static_cast<size_t>(ceil_div(panels.count * panels.bytes, int64_t{sizeof(CacheLine)})));
  auto* to = reinterpret_cast<uint8_t*>(filters.packed.data());
  parallel_for(panels.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto pack = kernels.integer_bytes ? pack_panel<true> : pack_panel<false>;
      pack(s, kernels, weights, i * kernels.integer_lanes, to + i * panels.bytes);
    }
  });
  if (minus_zero == nullptr && kernels.weight_offset == 0) return filters;
  // Unsigned weights add their offset times the window's sum.
  filters.sum_factors.resize(static_cast<size_t>(panels.count * kernels.integer_lanes));
  for (int64_t oc = 0; oc < s.out_channels; ++oc) {
    const auto factor = kernels.weight_offset - (minus_zero == nullptr ? 0 : minus_zero[oc]);
    filters.sum_factors[static_cast<size_t>(oc)] = sums_fit_pairs(s) ? pair_of(-factor, -factor) : factor;
  }
  return filters;
}

IntegerFilters pack_depthwise_s8(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  IntegerFilters filters;
  filters.kernels = &conv_kernels();
  for (int64_t i = 0; i < taps_of(s) * s.in_channels; ++i)
    filters.wide.push_back(weights[i] + (minus_zero == nullptr ? 0 : minus_zero[i % s.in_channels]));
  if (filters.kernels->depthwise_bytes != nullptr && !interleave_depthwise(s, filters)) filters.packed.clear();
  return filters;
}

void conv_s8(const ConvShape& s, const int8_t* input, const IntegerFilters& filters, bool sums,
             const AccumulatorSink<int32_t>& sink, const RequantizeRequest& request) {
  if (!filters.winograd.empty()) return winograd_s8(s, input, filters.winograd, sink);
  const ConvKernels& kernels = *filters.kernels;
  const Slab slab = prepare_slab(s, input, kernels.integer_bytes);
  ConvShape loops = s;
  if (joins_columns(s)) loops.kernel_w = 1;
  const std::vector<int64_t> taps = scaled(tap_pixels(loops), slab.pixel_bytes);
  const int64_t pixels = s.out_h * s.out_w;
  const bool subtracts = !filters.sum_factors.empty();
  std::vector<int32_t> window_sums;
  if (sums || subtracts) window_sums = sum_windows(s, kernels, input);
  const bool pairs = subtracts && sums_fit_pairs(s);
  std::vector<int32_t> window_pairs;
  if (pairs && !sums) {
    for (int32_t& sum : window_sums) sum = pair_of_sum(sum);
  } else if (pairs) {
    for (const int32_t sum : window_sums) window_pairs.push_back(pair_of_sum(sum));
  }
  const bool finishes = kernels.finishes && !sums && request;
  const std::vector<int32_t>& subtracted = window_pairs.empty() ? window_sums : window_pairs;

  const Panels panels = panels_of(s, kernels);
  const auto* packed = reinterpret_cast<const uint8_t*>(filters.packed.data());
  const int64_t chunks = ceil_div(pixels, kPixelChunk), runs = ceil_div(panels.count, kernels.integer_panels);
  const int64_t run_channels = int64_t{kernels.integer_panels} * kernels.integer_lanes;
  const int64_t chunk_products = kPixelChunk * run_channels * panels.groups * static_cast<int64_t>(taps.size()) * 4;
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / chunk_products);
  parallel_for(runs * chunks, grain, [&](int64_t first, int64_t last) {
    alignas(64) int32_t accumulators[kPixelChunk * kBlockChannels];
    int64_t windows[kPixelChunk];
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / chunks * kernels.integer_panels, pixel = i % chunks * kPixelChunk;
      const int64_t channel = panel * kernels.integer_lanes;
      IntegerBlock block{};
      block.input = slab.data;
      block.pixel_offset = windows;
      block.pixels = std::min(kPixelChunk, pixels - pixel);
      window_offsets(s, slab.pixel_bytes, pixel, block.pixels, windows);
      block.tap_offset = taps.data();
      block.taps = static_cast<int64_t>(taps.size());
      block.groups = panels.groups;
      block.weights = packed + panel * panels.bytes;
      block.out_channels = std::min(run_channels, s.out_channels - channel);
      block.output = accumulators;
      block.out_stride = block.out_channels;
      if (subtracts) {
        block.sums = subtracted.data() + pixel;
        block.pairs = pairs;
        block.factors = filters.sum_factors.data() + channel;
      }
      RequantizeCall call;
      if (finishes && request(pixel, block.pixels, channel, block.out_channels, call)) {
        block.finish = &call.block;
        kernels.integer(block);
        continue;
      }
      kernels.integer(block);
      sink({pixel, block.pixels, channel, block.out_channels, accumulators,
            sums ? window_sums.data() + pixel : nullptr});
    }
  });
}

void depthwise_s8(const ConvShape& s, const int8_t* input, const IntegerFilters& filters, bool sums,
                  const AccumulatorSink<int32_t>& sink, const RequantizeRequest& request) {
  const ConvKernels& kernels = *filters.kernels;
  const std::vector<int64_t> taps = scaled(tap_pixels(s), s.channels);
  const int64_t blocks = ceil_div(s.in_channels, kBlockChannels), pieces = ceil_div(s.out_w, kPixelChunk);
  const bool bytes = !filters.packed.empty() && !sums;
  const bool shared = bytes && pixels_share_block(s) && s.channels == s.in_channels;
  const int64_t lines = depthwise_lines(s);
  const int64_t row_values = s.out_w * s.in_channels;
  parallel_for(s.out_h * pieces, std::max<int64_t>(1, 4096 / row_values), [&](int64_t first, int64_t last) {
    alignas(64) int32_t accumulators[kPixelChunk * kBlockChannels];
    std::vector<int32_t> window(sums ? static_cast<size_t>(kPixelChunk * kBlockChannels) : 0);
    for (int64_t i = first; i < last; ++i) {
      const int64_t y = i / pieces, x = i % pieces * kPixelChunk;
      DepthwiseRow row{};
      const int64_t pixels = std::min(kPixelChunk, s.out_w - x);
      row.pixel_step = s.stride_w * s.channels;
      row.tap_offset = taps.data();
      row.taps = static_cast<int64_t>(taps.size());
      row.weight_step = s.in_channels;
      row.column_step = s.channels;
      row.shared_columns = shares_columns(s) ? s.stride_w : 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t channel = b * kBlockChannels;
        row.channels = std::min(kBlockChannels, s.in_channels - channel);
        row.pixels = pixels;
        row.runs = 1;
        row.one_addend = bytes && filters.one_addend[static_cast<size_t>(b)];
        const int8_t* from = input + (y * s.stride_h * s.in_w + x * s.stride_w) * s.channels + channel;
        RequantizeCall call;
        const bool finishes = bytes && request && request(y * s.out_w + x, pixels, channel, row.channels, call) &&
                              call.block.residual == nullptr && (!shared || call.share_rows());
        row.finish = finishes ? &call.block : nullptr;
        if (shared) {
          depthwise_shared(kernels, row, from, filters.packed[0].bytes, accumulators, finishes ? &call : nullptr);
        } else if (bytes) {
          set_runs(row);
          kernels.depthwise_bytes(row, from, filters.packed[static_cast<size_t>(b * lines)].bytes, accumulators);
        } else {
          kernels.depthwise_s8(row, from, filters.wide.data() + channel, accumulators, sums ? window.data() : nullptr);
        }
        if (finishes) continue;
        sink({y * s.out_w + x, pixels, channel, row.channels, accumulators, sums ? window.data() : nullptr});
      }
    }
  });
}

namespace {

// A sink that stores everything.
AccumulatorSink<int32_t> store_all(int64_t channels, bool sums_per_channel, int32_t* accumulators,
                                   int32_t* window_sums) {
  return [=](const AccumulatorBlock<int32_t>& b) {
    for (int64_t p = 0; p < b.pixels; ++p) {
      const int64_t at = (b.pixel + p) * channels + b.channel;
      std::copy_n(b.values + p * b.channels, b.channels, accumulators + at);
      if (window_sums == nullptr) continue;
      if (sums_per_channel) {
        std::copy_n(b.window_sums + p * b.channels, b.channels, window_sums + at);
      } else if (b.channel == 0) {
        window_sums[b.pixel + p] = b.window_sums[p];
      }
    }
  };
}

}  // namespace

void conv_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums) {
  conv_s8(s, input, pack_conv_s8(s, weights, nullptr), window_sums != nullptr,
          store_all(s.out_channels, false, accumulators, window_sums));
}

void depthwise_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums) {
  depthwise_s8(s, input, pack_depthwise_s8(s, weights, nullptr), window_sums != nullptr,
               store_all(s.in_channels, true, accumulators, window_sums));
}

}  // namespace openrknn::npu
