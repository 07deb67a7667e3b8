// int8 convolutions: packs weights into panels, brings the slab into the loops' element type, and splits the work.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/npu/conv_dispatch.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kFewPixels = 4;       // up to here packing the weights costs more than it saves
constexpr int64_t kPixelChunk = 96;     // of one piece of work
constexpr int64_t kWeightOffset = 128;  // what makes int8 weights unsigned

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

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
  slab.storage.resize(static_cast<size_t>(s.in_h * s.in_w * slab.pixel_bytes));
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
  if (!bytes) {
    copy_slab<int16_t>(s, input, round_up(s.in_channels, 2), slab);
  } else if (s.channels >= round_up(s.in_channels, 4)) {
    slab.data = reinterpret_cast<const uint8_t*>(input);  // lanes beyond the real ones meet zero weights
    slab.pixel_bytes = s.channels;
  } else {
    copy_slab<int8_t>(s, input, round_up(s.in_channels, 4), slab);
  }
  return slab;
}

// 4 bytes of a panel from the `left` channels that remain. Channels beyond the real ones weigh nothing: byte 0.
uint32_t byte_group(const int8_t* from, int64_t left) {
  uint32_t word = 0;
  if (left >= 4) {
    std::memcpy(&word, from, 4);
    return word ^ 0x80808080U;
  }
  std::memcpy(&word, from, static_cast<size_t>(left));
  return (word ^ 0x80808080U) & (0xFFFFFFFFU >> (8 * (4 - left)));
}

uint32_t pair_group(const int8_t* from, int64_t left) {
  const auto first = static_cast<uint16_t>(from[0]), second = static_cast<uint16_t>(left > 1 ? from[1] : 0);
  return first | static_cast<uint32_t>(second) << 16;
}

// One panel: [tap][group][lane][4 bytes].
template <bool kBytes>
void pack_panel(const ConvShape& s, int64_t lanes, const int8_t* weights, int64_t first_channel, uint8_t* panel) {
  constexpr int64_t kGroup = kBytes ? 4 : 2;
  const int64_t taps = s.kernel_h * s.kernel_w, filter = taps * s.in_channels;
  const int64_t valid = std::min<int64_t>(lanes, s.out_channels - first_channel);
  for (int64_t lane = 0; lane < valid; ++lane) {
    const int8_t* from = weights + (first_channel + lane) * filter;
    uint8_t* to = panel + lane * 4;
    for (int64_t tap = 0; tap < taps; ++tap, from += s.in_channels) {
      for (int64_t c = 0; c < s.in_channels; c += kGroup, to += lanes * 4) {
        const uint32_t word =
            kBytes ? byte_group(from + c, s.in_channels - c) : pair_group(from + c, s.in_channels - c);
        std::memcpy(to, &word, sizeof word);
      }
    }
  }
}

// Sums of x over each window: from sums over each pixel of the slab.
void sum_windows(const ConvShape& s, const int8_t* input, const std::vector<int64_t>& windows,
                 const std::vector<int64_t>& taps, int32_t* sums) {
  std::vector<int32_t> pixels(static_cast<size_t>(s.in_h * s.in_w));
  parallel_for(s.in_h, 1, [&](int64_t first, int64_t last) {
    for (int64_t pixel = first * s.in_w; pixel < last * s.in_w; ++pixel) {
      const int8_t* x = input + pixel * s.channels;
      int32_t sum = 0;
      for (int64_t c = 0; c < s.in_channels; ++c) sum += x[c];
      pixels[static_cast<size_t>(pixel)] = sum;
    }
  });
  for (size_t p = 0; p < windows.size(); ++p) {
    int32_t sum = 0;
    for (const int64_t tap : taps) sum += pixels[static_cast<size_t>(windows[p] + tap)];
    sums[p] = sum;
  }
}

// Few pixels (fully connected layers): every filter is read once as it lies.
void conv_few_pixels(const ConvShape& s, const ConvKernels& kernels, const int8_t* input, const int8_t* weights,
                     const std::vector<int64_t>& windows, const std::vector<int64_t>& taps, int32_t* accumulators) {
  const auto count = static_cast<int64_t>(windows.size());
  const int64_t filter = static_cast<int64_t>(taps.size()) * s.in_channels;
  std::vector<int16_t> gathered;
  gathered.reserve(static_cast<size_t>(count * filter));
  for (const int64_t window : windows) {
    for (const int64_t tap : taps) {
      const int8_t* x = input + (window + tap) * s.channels;
      gathered.insert(gathered.end(), x, x + s.in_channels);
    }
  }
  parallel_for(s.out_channels, 16, [&](int64_t first, int64_t last) {
    for (int64_t oc = first; oc < last; ++oc) {
      for (int64_t p = 0; p < count; ++p) {
        accumulators[p * s.out_channels + oc] =
            kernels.dot(filter, weights + oc * filter, gathered.data() + p * filter);
      }
    }
  });
}

}  // namespace

void conv_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums) {
  const ConvKernels& kernels = conv_kernels();
  const std::vector<int64_t> windows = window_pixels(s), taps = tap_pixels(s);
  const auto pixels = static_cast<int64_t>(windows.size());
  if (pixels <= kFewPixels) {
    if (window_sums != nullptr) sum_windows(s, input, windows, taps, window_sums);
    conv_few_pixels(s, kernels, input, weights, windows, taps, accumulators);
    return;
  }
  // Unsigned weights add 128 times the window's sum.
  std::vector<int32_t> subtrahend;
  if (window_sums != nullptr || kernels.integer_bytes) {
    subtrahend.resize(static_cast<size_t>(pixels));
    sum_windows(s, input, windows, taps, subtrahend.data());
    if (window_sums != nullptr) std::copy(subtrahend.begin(), subtrahend.end(), window_sums);
    for (int32_t& sum : subtrahend) sum *= kWeightOffset;
  }

  const Slab slab = prepare_slab(s, input, kernels.integer_bytes);
  const int64_t groups = round_up(s.in_channels, kernels.integer_bytes ? 4 : 2) / (kernels.integer_bytes ? 4 : 2);
  const int64_t panels = round_up(s.out_channels, kernels.integer_lanes) / kernels.integer_lanes;
  const int64_t panel_bytes = static_cast<int64_t>(taps.size()) * groups * kernels.integer_lanes * 4;
  std::vector<uint8_t> packed(static_cast<size_t>(panels * panel_bytes));
  parallel_for(panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto pack = kernels.integer_bytes ? pack_panel<true> : pack_panel<false>;
      pack(s, kernels.integer_lanes, weights, i * kernels.integer_lanes, packed.data() + i * panel_bytes);
    }
  });

  const std::vector<int64_t> window_bytes = scaled(windows, slab.pixel_bytes),
                             tap_bytes = scaled(taps, slab.pixel_bytes);
  const int64_t chunks = round_up(pixels, kPixelChunk) / kPixelChunk;
  const int64_t runs = round_up(panels, kernels.integer_panels) / kernels.integer_panels;
  parallel_for(runs * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / chunks * kernels.integer_panels, pixel = i % chunks * kPixelChunk;
      const int64_t channel = panel * kernels.integer_lanes;
      IntegerBlock block{};
      block.input = slab.data;
      block.pixel_offset = window_bytes.data() + pixel;
      block.pixels = std::min(kPixelChunk, pixels - pixel);
      block.tap_offset = tap_bytes.data();
      block.taps = static_cast<int64_t>(taps.size());
      block.groups = groups;
      block.weights = packed.data() + panel * panel_bytes;
      block.out_channels =
          std::min<int64_t>(int64_t{kernels.integer_panels} * kernels.integer_lanes, s.out_channels - channel);
      block.output = accumulators + pixel * s.out_channels + channel;
      block.out_stride = s.out_channels;
      block.subtrahend = kernels.integer_bytes ? subtrahend.data() + pixel : nullptr;
      kernels.integer(block);
    }
  });
}

void depthwise_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums) {
  const ConvKernels& kernels = conv_kernels();
  const std::vector<int64_t> taps = scaled(tap_pixels(s), s.channels);
  const std::vector<int32_t> wide(weights, weights + static_cast<int64_t>(taps.size()) * s.in_channels);
  const DepthwiseRow row{s.out_w, s.stride_w * s.channels, taps.data(), static_cast<int64_t>(taps.size()),
                         s.in_channels};
  parallel_for(s.out_h, 1, [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y) {
      const int64_t at = y * s.out_w * s.in_channels;
      kernels.depthwise_s8(row, input + y * s.stride_h * s.in_w * s.channels, wide.data(), accumulators + at,
                           window_sums == nullptr ? nullptr : window_sums + at);
    }
  });
}

}  // namespace openrknn::npu
