#include "kernels/npu/winograd.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/kept.hpp"
#include "kernels/npu/weight_sums.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kOut = 4, kIn = 6, kTap = 3;  // extents of a tile's results and pixels, and of the kernel
constexpr int64_t kTiles = 12;                  // of one piece of work: what the products' registers hold
constexpr int64_t kMostTiles = 16;              // of an only piece, so that the weights are read once
constexpr int64_t kMostPanels = 2, kMostLanes = 16;

// Some numbers of a panel at one tap or point, in the panel's order.
constexpr int64_t kChunk = 128;
using Chunk = std::array<int16_t, kChunk>;

// Rows of Winograd's G times 4, -6, -6, 24, 24 and 1 (the output transform makes up for that), of columns a, b, c.
inline void scaled_rows(const Chunk& a, const Chunk& b, const Chunk& c, std::array<Chunk, kIn>& rows) {
  for (size_t i = 0; i < kChunk; ++i) {
    const auto ends = static_cast<int16_t>(a[i] + c[i]), far = static_cast<int16_t>(a[i] + 4 * c[i]);
    const auto twice = static_cast<int16_t>(2 * b[i]);
    rows[0][i] = a[i];
    rows[1][i] = static_cast<int16_t>(ends + b[i]);
    rows[2][i] = static_cast<int16_t>(ends - b[i]);
    rows[3][i] = static_cast<int16_t>(far + twice);
    rows[4][i] = static_cast<int16_t>(far - twice);
    rows[5][i] = c[i];
  }
}

// Whether 64 times any result fits int32: what the last steps of the output transform need.
bool results_fit(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  constexpr int64_t kLimit = int64_t{1} << 25;
  const int64_t filter = kTap * kTap * s.in_channels;
  for (int64_t oc = 0; oc < s.out_channels; ++oc) {
    const int32_t zero = minus_zero == nullptr ? 0 : minus_zero[oc];
    WeightSums sums;
    sums.add(weights + oc * filter, filter, zero);
    if ((sums.positive - sums.negative) * 128 >= kLimit) return false;
  }
  return true;
}

struct Layout {
  int64_t panels, groups, panel_bytes;
};

Layout layout_of(const ConvShape& s, const WinogradKernels& kernels) {
  const int64_t groups = ceil_div(s.in_channels, 2);
  return {ceil_div(s.out_channels, kernels.lanes), groups, kWinogradPoints * groups * kernels.lanes * 4};
}

// A part of a row of tiles: results of 4 rows, `pixels` wide.
struct Run {
  int64_t tiles, y, x, rows, pixels;
};

// Tiles [first, first + count) of a slab, and memory for them.
class Piece {
 public:
  Piece(const ConvShape& s, const WinogradFilters& filters, int64_t first, int64_t count)
      : s_(s),
        filters_(filters),
        kernels_(filters.kernels->winograd),
        layout_(layout_of(s, kernels_)),
        columns_(ceil_div(s.out_w, kOut)),
        first_(first),
        count_(count),
        tile_step_(align_up(s.in_channels, kWinogradPad)) {}

  void transform(const int8_t* input, int16_t* points) const {
    for (int64_t t = 0; t < count_; ++t) {
      const int64_t y = (first_ + t) / columns_ * kOut, x = (first_ + t) % columns_ * kOut;
      // Pixels beyond the slab only meet results beyond it.
      std::array<int64_t, kIn> rows{}, columns{};
      for (int64_t i = 0; i < kIn; ++i) {
        rows[static_cast<size_t>(i)] = std::min(y + i, s_.in_h - 1) * s_.in_w * s_.channels;
        columns[static_cast<size_t>(i)] = std::min(x + i, s_.in_w - 1) * s_.channels;
      }
      kernels_.input(input, rows.data(), columns.data(), s_.in_channels, points + t * tile_step_, count_ * tile_step_);
    }
  }

  // Results of the panels from `panel` on.
  void multiply(const int16_t* points, int64_t panel, const AccumulatorSink<int32_t>& sink) const {
    alignas(64) int32_t sums[kWinogradPoints * kMostTiles * kMostPanels * kMostLanes];
    alignas(64) int32_t results[kOut * kMostTiles * kOut * kMostPanels * kMostLanes];
    WinogradBlock block{};
    block.input = points;
    block.plane = count_ * tile_step_;
    block.tile_step = tile_step_;
    block.tiles = count_;
    block.groups = layout_.groups;
    block.weights = reinterpret_cast<const uint8_t*>(filters_.packed.data()) + panel * layout_.panel_bytes;
    block.panels = std::min(kMostPanels, layout_.panels - panel);
    block.panel_bytes = layout_.panel_bytes;
    block.sums = sums;
    const int64_t tile_sums = block.panels * kernels_.lanes;
    block.sum_plane = count_ * tile_sums;
    kernels_.products(block);
    const int64_t channel = panel * kernels_.lanes, channels = std::min(tile_sums, s_.out_channels - channel);
    for (int64_t t = 0; t < count_;) {
      const Run run = run_from(t);
      const int64_t row_step = run.tiles * kOut * channels;
      for (int64_t i = 0; i < run.tiles; ++i)
        kernels_.output(sums + (t + i) * tile_sums, block.sum_plane, channels, results + i * kOut * channels, row_step,
                        channels);
      for (int64_t row = 0; row < run.rows; ++row)
        sink({(run.y + row) * s_.out_w + run.x, run.pixels, channel, channels, results + row * row_step, nullptr});
      t += run.tiles;
    }
  }

 private:
  Run run_from(int64_t t) const {
    const int64_t tile = first_ + t;
    Run run{};
    run.tiles = std::min(count_ - t, columns_ - tile % columns_);
    run.y = tile / columns_ * kOut;
    run.x = tile % columns_ * kOut;
    run.rows = std::min(kOut, s_.out_h - run.y);
    run.pixels = std::min(run.tiles * kOut, s_.out_w - run.x);
    return run;
  }

  const ConvShape& s_;
  const WinogradFilters& filters_;
  const WinogradKernels& kernels_;
  Layout layout_;
  int64_t columns_, first_, count_, tile_step_;
};

}  // namespace

// Products of int16, with which the points are multiplied, come at half the rate of those of bytes; the transforms are
// additions, which full-width processors do not do faster. NEON takes four instructions for what sdot does in one.
bool bytes_are_cheap() { return isa() == Isa::kNeonDot || (conv_kernels().integer_bytes && full_width_vectors()); }

const char* winograd_refusal(const ConvShape& s, int64_t out_h, int64_t out_w, bool cheap_bytes) {
  if (cheap_bytes) return "the processor multiplies bytes too fast for the transforms to pay";
  if (s.kernel_h != kTap || s.kernel_w != kTap) return "the kernel is not 3x3";
  if (s.stride_h != 1 || s.stride_w != 1) return "the stride is not 1";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "the kernel is dilated";
  // Transforms cost by input and by output channels, products by both together.
  if (s.in_channels < 48 || s.out_channels < 32) return "few channels: the transforms cost more than they save";
  const int64_t tiles = ceil_div(out_h, kOut) * ceil_div(out_w, kOut);
  if (tiles < kTiles) return "few tiles: the transformed weights, four times as many, are read for each piece";
  if (out_h * out_w * 3 < tiles * kOut * kOut * 2) return "a third of the tiles lies beyond the result";
  return nullptr;
}

namespace {

// Packs the filters of one panel, a chunk of pairs of channels at a time.
class PanelPacker {
 public:
  PanelPacker(const ConvShape& s, const Layout& layout, int64_t lanes, const int8_t* weights, const int32_t* minus_zero)
      : s_(s),
        layout_(layout),
        lanes_(lanes),
        pairs_(kChunk / (2 * lanes)),
        weights_(weights),
        minus_zero_(minus_zero) {}

  void run(int64_t panel, int16_t* packed) {
    const int64_t numbers = layout_.groups * lanes_ * 2;  // at one point
    for (int64_t pair = 0; pair < layout_.groups; pair += pairs_) {
      read(panel * lanes_, pair);
      std::array<std::array<Chunk, kIn>, kTap> down;  // by column of the kernel
      for (size_t x = 0; x < kTap; ++x) scaled_rows(taps_[x], taps_[kTap + x], taps_[2 * kTap + x], down[x]);
      const auto bytes = static_cast<size_t>(std::min(pairs_, layout_.groups - pair) * lanes_) * 4;
      for (size_t i = 0; i < kIn; ++i) {
        std::array<Chunk, kIn> points;
        scaled_rows(down[0][i], down[1][i], down[2][i], points);
        for (size_t j = 0; j < kIn; ++j)
          std::memcpy(packed + static_cast<int64_t>(i * kIn + j) * numbers + pair * lanes_ * 2, points[j].data(),
                      bytes);
      }
    }
  }

 private:
  // The weights of the lanes at channels 2 * pair and on. What is not there stays 0.
  void read(int64_t first_lane, int64_t pair) {
    const int64_t lanes = std::min(lanes_, s_.out_channels - first_lane);
    const int64_t channels = std::min(2 * pairs_, s_.in_channels - 2 * pair);
    if (lanes < lanes_ || channels < 2 * pairs_) taps_ = {};
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int32_t zero = minus_zero_ == nullptr ? 0 : minus_zero_[first_lane + lane];
      const int8_t* from = weights_ + (first_lane + lane) * kTap * kTap * s_.in_channels + 2 * pair;
      for (Chunk& tap : taps_) {
        int16_t* to = tap.data() + 2 * lane;
        for (int64_t c = 0; c + 1 < channels; c += 2, to += 2 * lanes_) {
          const int16_t both[2] = {static_cast<int16_t>(from[c] + zero), static_cast<int16_t>(from[c + 1] + zero)};
          std::memcpy(to, both, sizeof both);
        }
        if (channels % 2 == 1) *to = static_cast<int16_t>(from[channels - 1] + zero);
        from += s_.in_channels;
      }
    }
  }

  const ConvShape& s_;
  const Layout& layout_;
  int64_t lanes_, pairs_;
  const int8_t* weights_;
  const int32_t* minus_zero_;
  std::array<Chunk, kTap * kTap> taps_{};
};

}  // namespace

WinogradFilters pack_winograd_s8(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  WinogradFilters filters;
  if (!results_fit(s, weights, minus_zero)) return filters;
  filters.kernels = &conv_kernels();
  const int64_t lanes = filters.kernels->winograd.lanes;
  const Layout layout = layout_of(s, filters.kernels->winograd);
  filters.packed.resize(static_cast<size_t>(ceil_div(layout.panels * layout.panel_bytes, int64_t{sizeof(CacheLine)})));
  auto* packed = reinterpret_cast<int16_t*>(filters.packed.data());
  parallel_for(layout.panels, 1, [&](int64_t begin, int64_t end) {
    PanelPacker packer(s, layout, lanes, weights, minus_zero);
    for (int64_t panel = begin; panel < end; ++panel) packer.run(panel, packed + panel * layout.panel_bytes / 2);
  });
  return filters;
}

void winograd_s8(const ConvShape& s, const int8_t* input, const WinogradFilters& filters,
                 const AccumulatorSink<int32_t>& sink) {
  const int64_t tiles = ceil_div(s.out_h, kOut) * ceil_div(s.out_w, kOut);
  const int64_t pieces = tiles <= kMostTiles ? 1 : ceil_div(tiles, kTiles);
  const int64_t panels = layout_of(s, filters.kernels->winograd).panels, runs = ceil_div(panels, kMostPanels);
  // Few pieces are shared out by channels too; every thread then transforms its input itself.
  const int64_t each = ceil_div(tiles, pieces);
  const int64_t shares = pieces >= 2 * thread_count() ? 1 : std::min<int64_t>(runs, thread_count());
  parallel_for(pieces * shares, 1, [&](int64_t begin, int64_t end) {
    Kept<int16_t> kept(static_cast<size_t>(kWinogradPoints * each * align_up(s.in_channels, kWinogradPad)));
    int16_t* points = kept.data();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / shares * each, share = i % shares;
      if (first >= tiles) continue;
      const Piece piece(s, filters, first, std::min(each, tiles - first));
      piece.transform(input, points);
      for (int64_t run = share * runs / shares; run < (share + 1) * runs / shares; ++run)
        piece.multiply(points, run * kMostPanels, sink);
    }
  });
}

}  // namespace openrknn::npu
