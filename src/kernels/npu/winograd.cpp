#include "kernels/npu/winograd.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/kept.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kOut = 4, kIn = 6, kTap = 3;  // extents of a tile's results and pixels, and of the kernel
constexpr int64_t kTiles = 12;                  // of one piece of work: what the products' registers hold
constexpr int64_t kMostTiles = 16;              // of an only piece, so that the weights are read once
constexpr int64_t kMostPanels = 2, kMostLanes = 16;

// Rows of Winograd's G times 4, -6, -6, 24, 24 and 1 (the output transform makes up for that), of n numbers at once.
struct ScaledRows {
  std::array<int16_t*, kIn> to;
  void of(const int16_t* a, const int16_t* b, const int16_t* c, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const int32_t ends = a[i] + c[i], far = a[i] + 4 * c[i], twice = 2 * b[i];
      to[0][i] = a[i];
      to[1][i] = static_cast<int16_t>(ends + b[i]);
      to[2][i] = static_cast<int16_t>(ends - b[i]);
      to[3][i] = static_cast<int16_t>(far + twice);
      to[4][i] = static_cast<int16_t>(far - twice);
      to[5][i] = c[i];
    }
  }
};

// Whether 64 times any result fits int32: what the last steps of the output transform need.
bool results_fit(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  constexpr int64_t kLimit = int64_t{1} << 25;
  const int64_t filter = kTap * kTap * s.in_channels;
  for (int64_t oc = 0; oc < s.out_channels; ++oc) {
    const int32_t zero = minus_zero == nullptr ? 0 : minus_zero[oc];
    int64_t sum = 0;
    for (int64_t i = 0; i < filter; ++i) sum += std::abs(weights[oc * filter + i] + zero);
    if (sum * 128 >= kLimit) return false;
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

WinogradFilters pack_winograd_s8(const ConvShape& s, const int8_t* weights, const int32_t* minus_zero) {
  WinogradFilters filters;
  if (!results_fit(s, weights, minus_zero)) return filters;
  filters.kernels = &conv_kernels();
  const WinogradKernels& kernels = filters.kernels->winograd;
  const Layout layout = layout_of(s, kernels);
  filters.packed.resize(static_cast<size_t>(ceil_div(layout.panels * layout.panel_bytes, int64_t{sizeof(CacheLine)})));
  auto* packed = reinterpret_cast<int16_t*>(filters.packed.data());
  const int64_t n = layout.groups * kernels.lanes * 2;  // numbers of a panel at one tap or point, in the panel's order
  parallel_for(layout.panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> taps(static_cast<size_t>(kTap * kTap * n)), down(static_cast<size_t>(kIn * kTap * n));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kernels.lanes;
      const int64_t valid = std::min<int64_t>(kernels.lanes, s.out_channels - first);
      if (valid < kernels.lanes) std::fill(taps.begin(), taps.end(), int16_t{0});
      for (int64_t lane = 0; lane < valid; ++lane) {
        const int32_t zero = minus_zero == nullptr ? 0 : minus_zero[first + lane];
        const int8_t* from = weights + (first + lane) * kTap * kTap * s.in_channels;
        for (int64_t tap = 0; tap < kTap * kTap; ++tap, from += s.in_channels) {
          int16_t* to = taps.data() + tap * n + lane * 2;
          for (int64_t c = 0; c < s.in_channels; ++c)
            to[c / 2 * kernels.lanes * 2 + c % 2] = static_cast<int16_t>(from[c] + zero);
        }
      }
      for (int64_t x = 0; x < kTap; ++x) {
        ScaledRows rows{};
        for (int64_t i = 0; i < kIn; ++i) rows.to[static_cast<size_t>(i)] = down.data() + (i * kTap + x) * n;
        const int16_t* column = taps.data() + x * n;
        rows.of(column, column + kTap * n, column + 2 * kTap * n, n);
      }
      for (int64_t i = 0; i < kIn; ++i) {
        ScaledRows points{};
        for (int64_t j = 0; j < kIn; ++j)
          points.to[static_cast<size_t>(j)] = packed + panel * layout.panel_bytes / 2 + (i * kIn + j) * n;
        const int16_t* row = down.data() + i * kTap * n;
        points.of(row, row + n, row + 2 * n, n);
      }
    }
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
