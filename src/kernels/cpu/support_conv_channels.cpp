// Convolutions with output channels as rows and pixels as columns of register tiles.
//
// Weights lie in groups of up to `rows` channels, [group][k][channels of the group], of nearly equal sizes;
// k = (input channel, tap) in ascending order, which is the order of the sums. Vectors hold neighbouring pixels, so
// sums need no turning: residual, bounds and the store come straight from registers. That suits sums of few products
// and many pixels; with few pixels vectors would be empty.
//
// One tap that moves nothing reads the input in place: the first group of a block of pixels leaves them one behind
// another for the other groups, on the way. Otherwise a band of rows is copied with its padding
// (support_conv_planes.hpp).
#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_conv_planes.hpp"
#include "kernels/gemm.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kBlockFloats = 65536;  // pixels of a block that groups share: a quarter of the second cache
constexpr int64_t kBlockTiles = 10;
constexpr int64_t kMostProducts = 4096;  // of a sum: bounds the scratch
constexpr int64_t kFewProducts = 160;    // more of them hide the turning of sums, and bands are cut less evenly by rows

// A group's channels.
struct Rows {
  int64_t first, count;
};

class ChannelConv final : public ConvMethod {
 public:
  ChannelConv(ConvPlan plan, const float* constant)
      : plan_(std::move(plan)),
        flat_(is_pointwise(plan_)),
        planes_(conv_planes(plan_)),
        kernels_(gemm_kernels()),
        m_(plan_.group_out()),
        k_(plan_.group_in() * plan_.taps()),
        groups_(ceil_div(m_, kernels_.rows)),
        tile_(int64_t{kernels_.vectors} * kernels_.width),
        in_pixels_(plan_.in_pixels()),
        out_pixels_(plan_.out_pixels()) {
    if (flat_) {
      tiles_ = std::clamp<int64_t>(kBlockFloats / (k_ * tile_), 1, kBlockTiles);
      bands_ = ceil_div(out_pixels_, tiles_ * tile_);
      for (int64_t l = 0; l < k_; ++l) {
        offsets_.push_back(l * in_pixels_);
        copied_.push_back(l * tile_);
      }
    } else {
      choose_band(planes_, plan_.group_in());
      bands_ = planes_.bands;
      offsets_ = tap_offsets(planes_, plan_.group_in());
    }
    if (constant != nullptr) packed_ = pack(constant);
  }

  Status run(const ConvOperands& operands) const override {
    std::vector<float> own;
    if (packed_.empty()) own = pack(operands.w);
    const Call call{operands, packed_.empty() ? own.data() : packed_.data(),
                    operands.fusion.bounds().value_or(ConvFusion::Bounds{}), operands.fusion.bounds().has_value()};
    const int64_t bands = plan_.batch * plan_.groups * bands_;
    const int64_t threads = thread_count();
    // Parts of a band copy its input once more: only when there are few bands.
    const int64_t parts = threads == 1 || bands >= 2 * threads ? 1 : std::min(groups_, ceil_div(2 * threads, bands));
    parallel_for(bands * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts;
        const int64_t band = task / parts;
        const Rows groups{part * groups_ / parts, (part + 1) * groups_ / parts - part * groups_ / parts};
        if (flat_) {
          run_block(call, band / bands_, band % bands_, groups);
        } else {
          run_band(call, band / bands_, band % bands_, groups);
        }
      }
    });
    return {};
  }

 private:
  struct Call {
    const ConvOperands& operands;
    const float* weights;
    ConvFusion::Bounds bounds;
    bool bounded;  // the activation is done by bounds
  };

  Rows rows(int64_t group) const {
    const int64_t first = group * m_ / groups_;
    return {first, (group + 1) * m_ / groups_ - first};
  }

  std::vector<float> pack(const float* w) const {
    std::vector<float> packed(static_cast<size_t>(plan_.out_channels * k_));
    float* to = packed.data();
    for (int64_t task = 0; task < plan_.groups * groups_; ++task) {
      const Rows r = rows(task % groups_);
      const float* from = w + (task / groups_ * m_ + r.first) * k_;
      for (int64_t l = 0; l < k_; ++l) {
        for (int64_t i = 0; i < r.count; ++i) *to++ = from[i * k_ + l];
      }
    }
    return packed;
  }

  // What the tiles of a group have in common; `pixel` is the first of a block or band.
  ChannelTile tile_of(const Call& call, int64_t problem, const Rows& r, int64_t pixel) const {
    static constexpr float kZeros[8] = {};
    const int64_t channel = problem % plan_.groups * m_ + r.first;
    const int64_t at = (problem * m_ + r.first) * out_pixels_ + pixel;
    ChannelTile tile{};
    tile.channels = static_cast<int>(r.count);
    tile.k = k_;
    tile.offsets = offsets_.data();
    tile.w = call.weights + channel * k_;
    tile.bias = call.operands.bias != nullptr ? call.operands.bias + channel : kZeros;
    tile.residual = call.operands.fusion.residual != nullptr ? call.operands.fusion.residual + at : nullptr;
    tile.low = call.bounds.low;
    tile.high = call.bounds.high;
    tile.y = call.operands.y + at;
    tile.ldy = out_pixels_;
    return tile;
  }

  // What bounds do not do, while the results of the group are in the first cache.
  void finish(const Call& call, int64_t problem, const Rows& r, int64_t pixel, int64_t count) const {
    const ConvFusion& fusion = call.operands.fusion;
    const int64_t channel = problem % plan_.groups * m_ + r.first;
    const int64_t offset = (problem * m_ + r.first) * out_pixels_ + pixel;
    float* y = call.operands.y + offset;
    if (!call.bounded) {
      ConvFusion rest = fusion;  // the residual is added
      rest.residual = nullptr;
      for (int64_t i = 0; i < r.count; ++i) {
        const int64_t at = i * out_pixels_;
        rest.apply_activation(channel + i, offset + at, count, y + at, y + at);
      }
    }
    if (fusion.joins_channels() && count == out_pixels_) {
      fusion.apply_stages(channel, offset, r.count * count, y, y);
    } else if (fusion.behind != nullptr) {
      for (int64_t i = 0; i < r.count; ++i) {
        const int64_t at = i * out_pixels_;
        fusion.apply_stages(channel + i, offset + at, count, y + at, y + at);
      }
    }
  }

  float* scratch(int64_t floats) const {
    thread_local std::vector<float> buffer;
    if (static_cast<int64_t>(buffer.size()) < floats + 16) buffer.resize(static_cast<size_t>(floats + 16));
    return buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64 / sizeof(float);
  }

  void run_block(const Call& call, int64_t problem, int64_t block, const Rows& groups) const {
    float* copies = scratch(tiles_ * tile_ * k_);
    const int64_t first = block * tiles_ * tile_;
    const int64_t count = std::min(tiles_ * tile_, out_pixels_ - first);
    for (int64_t g = groups.first; g < groups.first + groups.count; ++g) {
      const Rows r = rows(g);
      ChannelTile tile = tile_of(call, problem, r, first);
      tile.in_place = g == groups.first;
      if (!tile.in_place) tile.offsets = copied_.data();
      const float* x = call.operands.x + problem * plan_.group_in() * in_pixels_ + first;
      float* copy = copies;
      for (int64_t left = count; left > 0; left -= tile.n, copy += tile_ * k_) {
        tile.n = next_tile(left);
        tile.x = tile.in_place ? x + (count - left) : copy;
        tile.copy = groups.count > 1 ? copy : nullptr;
        kernels_.channel_tile(tile);
        advance(tile, tile.n);
      }
      finish(call, problem, r, first, count);
    }
  }

  void run_band(const Call& call, int64_t problem, int64_t band, const Rows& groups) const {
    const int64_t pitch = channel_pitch(planes_);
    float* input = scratch(plan_.group_in() * pitch + tile_);
    const int64_t first = band * planes_.band;
    const int64_t count = std::min(planes_.band, planes_.h.out - first);
    const float* x = call.operands.x + problem * plan_.group_in() * in_pixels_;
    for (int64_t c = 0; c < plan_.group_in(); ++c) {
      planes_.copy(kernels_, x + c * in_pixels_, first, count, input + c * pitch);
    }
    for (int64_t g = groups.first; g < groups.first + groups.count; ++g) {
      const Rows r = rows(g);
      ChannelTile tile = tile_of(call, problem, r, first * planes_.w.out);
      for (int64_t row = 0; row < count; ++row) {
        tile.x = input + row * planes_.pitch;
        for (int64_t left = planes_.w.out; left > 0; left -= tile.n) {
          tile.n = next_tile(left);
          kernels_.channel_tile(tile);
          tile.x += tile.n;
          advance(tile, tile.n);
        }
      }
      finish(call, problem, r, first * planes_.w.out, count * planes_.w.out);
    }
  }

  // Tiles of nearly equal widths: narrow ones wait for the latency of their sums.
  int64_t next_tile(int64_t pixels) const {
    const int64_t vectors = ceil_div(pixels, kernels_.width);
    return std::min(pixels, ceil_div(vectors, ceil_div(vectors, kernels_.vectors)) * kernels_.width);
  }

  static void advance(ChannelTile& tile, int64_t pixels) {
    tile.y += pixels;
    if (tile.residual != nullptr) tile.residual += pixels;
  }

  const ConvPlan plan_;
  const bool flat_;
  ConvPlanes planes_;
  const GemmKernels& kernels_;
  const int64_t m_, k_, groups_;
  const int64_t tile_;  // pixels
  const int64_t in_pixels_, out_pixels_;
  int64_t tiles_ = 1;  // of a block
  int64_t bands_ = 1;  // or blocks
  std::vector<int64_t> offsets_, copied_;
  std::vector<float> packed_;  // constant weights
};

}  // namespace

bool is_by_channels(const ConvPlan& plan) {
  const int64_t k = plan.group_in() * plan.taps();
  if (!is_planar(plan) || k > kMostProducts) return false;
  const bool flat = is_pointwise(plan);
  if (!flat && (k > kFewProducts || !fits_band(plan))) return false;
  // Vectors may be an eighth emptier than those of channels: sums that need no turning make up for it.
  const int64_t n = flat ? plan.out_pixels() : plan.axes.back().out;
  const int64_t m = plan.group_out();
  const int64_t pixel_lanes = align_up(n, gemm_kernels().width);
  const int64_t channel_lanes = align_up(m, gemm_kernels_for(m).width);
  return n * channel_lanes * 8 >= m * pixel_lanes * 7;
}

ConvMethodPtr conv_by_channels(ConvPlan plan, const float* constant) {
  return std::make_unique<ChannelConv>(std::move(plan), constant);
}

}  // namespace openrknn::cpu
