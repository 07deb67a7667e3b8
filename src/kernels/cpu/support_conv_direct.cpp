// Convolutions with pixels as rows and output channels as columns of register tiles.
//
// Weights lie in panels of up to 3 vectors of channels, [panel][k][channels of the panel], zeros behind the
// last channel; k = (input channel, tap) in ascending order, which is the order of the sums. The input is copied a band
// of output rows at a time with its padding (support_conv_planes.hpp), so that k is an offset from a pixel: there are
// no patches, and any number of pixels fills its tiles. A tile leaves its sums channel by channel; residual and
// activation are applied on the way to the output, while the band is in the second cache.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_conv_planes.hpp"
#include "kernels/gemm.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kFewPixels = 64;  // fewer do not pay for weights packed at each call

// Panels of 3 vectors, then of 2: a tile of one vector waits for its loads.
class Panels {
 public:
  Panels(const GemmKernels& kernels, int64_t m)
      : width(kernels.width),
        total_(ceil_div(m, width)),
        most_(std::min<int64_t>(total_, kernels.vectors)),
        wide_(total_ > most_ && total_ % most_ == 1 ? total_ / most_ - 1 : total_ / most_),
        rest_(std::max<int64_t>(1, std::min<int64_t>(2, total_ - wide_ * most_))) {}

  const int64_t width;  // channels of a vector

  int64_t count() const { return wide_ + ceil_div(total_ - wide_ * most_, rest_); }
  int64_t channels() const { return most_ * width; }  // of the largest
  int64_t padded() const { return total_ * width; }
  int64_t first(int64_t panel) const {
    return (std::min(panel, wide_) * most_ + std::max<int64_t>(0, panel - wide_) * rest_) * width;
  }
  int vectors(int64_t panel) const { return static_cast<int>(panel < wide_ ? most_ : rest_); }

 private:
  int64_t total_, most_, wide_, rest_;
};

// Rows of `k` weights of each channel to panels.
void pack_weights(const Panels& panels, int64_t groups, int64_t m, int64_t k, const float* w, float* to) {
  constexpr int64_t kStep = 16;  // weights of a channel at a time: a line of the cache
  for (int64_t task = 0; task < groups * panels.count(); ++task) {
    const int64_t panel = task % panels.count();
    const int64_t group = task / panels.count();
    const int64_t n = panels.vectors(panel) * panels.width;
    const int64_t real = std::min(n, m - panels.first(panel));
    const float* from = w + (group * m + panels.first(panel)) * k;
    float* out = to + (group * panels.padded() + panels.first(panel)) * k;
    for (int64_t l = 0; l < k; l += kStep) {
      const int64_t end = std::min(k, l + kStep);
      for (int64_t j = 0; j < real; ++j) {
        for (int64_t i = l; i < end; ++i) out[i * n + j] = from[j * k + i];
      }
      for (int64_t i = l; i < end; ++i) std::fill(out + i * n + real, out + (i + 1) * n, 0.0F);
    }
  }
}

class DirectConv final : public ConvMethod {
 public:
  DirectConv(ConvPlan plan, const float* constant)
      : plan_(std::move(plan)),
        kernels_(gemm_kernels_for(plan_.group_out())),
        planes_(conv_planes(plan_)),
        m_(plan_.group_out()),
        k_(plan_.group_in() * plan_.taps()),
        panels_(kernels_, m_),
        in_pixels_(plan_.in_pixels()),
        out_pixels_(plan_.out_pixels()) {
    if (is_pointwise(plan_)) {
      flatten();
    } else {
      choose_band(planes_, plan_.group_in());
    }
    channel_floats_ = channel_pitch(planes_);
    sums_pitch_ = spread_pitch(planes_.band * planes_.w.out + kernels_.rows);
    offsets_ = tap_offsets(planes_, plan_.group_in());
    if (constant != nullptr) packed_ = pack(constant);
  }

  Status run(const ConvOperands& operands) const override {
    std::vector<float> own;
    if (packed_.empty()) own = pack(operands.w);
    const float* weights = packed_.empty() ? own.data() : packed_.data();
    const int64_t problems = plan_.batch * plan_.groups;
    const int64_t bands = problems * planes_.bands;
    const int64_t threads = thread_count();
    // Parts of a band copy its input once more: only when there are few bands.
    const int64_t parts =
        threads == 1 || bands >= 2 * threads ? 1 : std::min(panels_.count(), ceil_div(2 * threads, bands));
    parallel_for(bands * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts;
        const int64_t band = task / parts;
        run_band(operands, weights, {band / planes_.bands, band % planes_.bands * planes_.band},
                 part * panels_.count() / parts, (part + 1) * panels_.count() / parts);
      }
    });
    return {};
  }

 private:
  struct Band {
    int64_t problem;
    int64_t first;  // output row
  };

  // One tap that moves nothing: pixels are cut into rows as suits the tiles, each a band of its own.
  void flatten() {
    const int64_t pixels = out_pixels_;
    const int64_t most = std::clamp<int64_t>(kBandFloats / plan_.group_in(), 64, kBandPixels);
    const int64_t width = align_up(ceil_div(pixels, ceil_div(pixels, most)), kernels_.rows);
    planes_.w = WindowAxis();
    planes_.w.out = planes_.w.in = planes_.pitch = std::min(pixels, width);
    planes_.h = WindowAxis();
    planes_.h.out = planes_.h.in = ceil_div(pixels, planes_.w.out);
    set_band(planes_, 1);
    flat_ = true;
  }

  std::vector<float> pack(const float* w) const {
    std::vector<float> packed(static_cast<size_t>(plan_.groups * panels_.padded() * k_));
    pack_weights(panels_, plan_.groups, m_, k_, w, packed.data());
    return packed;
  }

  void copy_band(const float* input, const Band& band, int64_t rows, float* to) const {
    const float* x = input + band.problem * plan_.group_in() * in_pixels_;
    for (int64_t c = 0; c < plan_.group_in(); ++c, x += in_pixels_, to += channel_floats_) {
      if (flat_) {
        const int64_t at = band.first * planes_.w.out;
        std::memcpy(to, x + at, static_cast<size_t>(std::min(planes_.w.out, in_pixels_ - at)) * sizeof(float));
      } else {
        planes_.copy(kernels_, x, band.first, rows, to);
      }
    }
  }

  // Panels [begin, end).
  void run_band(const ConvOperands& operands, const float* weights, const Band& band, int64_t begin,
                int64_t end) const {
    thread_local std::vector<float> scratch;
    const int64_t input_floats = plan_.group_in() * channel_floats_;
    const int64_t floats = input_floats + panels_.channels() * (sums_pitch_ + 1) + 32;
    if (static_cast<int64_t>(scratch.size()) < floats) scratch.resize(static_cast<size_t>(floats));
    float* input = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64 / sizeof(float);
    float* sums = input + input_floats;
    float* bias = sums + panels_.channels() * sums_pitch_;
    const int64_t rows = std::min(planes_.band, planes_.h.out - band.first);
    copy_band(operands.x, band, rows, input);
    const int64_t group = band.problem % plan_.groups;
    const int64_t start = band.first * planes_.w.out;
    const int64_t pixels = std::min(rows * planes_.w.out, out_pixels_ - start);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t channel = panels_.first(panel);
      const int64_t real = std::min(panels_.vectors(panel) * panels_.width, m_ - channel);
      std::fill_n(bias, panels_.channels(), 0.0F);
      if (operands.bias != nullptr) std::copy_n(operands.bias + group * m_ + channel, real, bias);
      const float* w = weights + (group * panels_.padded() + channel) * k_;
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t count = std::min(planes_.w.out, pixels - row * planes_.w.out);
        multiply(panels_.vectors(panel), count, input + row * planes_.pitch, w, bias, sums + row * planes_.w.out);
      }
      finish(operands.fusion, {band.problem, channel, real, start, pixels}, sums, operands.y);
    }
  }

  struct Part {
    int64_t problem, channel, channels;
    int64_t first, count;  // pixels
  };

  // From sums, channel by channel, to the output.
  void finish(const ConvFusion& fusion, const Part& part, const float* sums, float* y) const {
    const int64_t channel = part.problem % plan_.groups * m_ + part.channel;
    const int64_t offset = (part.problem * m_ + part.channel) * out_pixels_ + part.first;
    const bool joins = fusion.joins_channels() && part.count == out_pixels_;
    for (int64_t j = 0; j < part.channels; ++j) {
      const float* from = sums + j * sums_pitch_;
      const int64_t at = offset + j * out_pixels_;
      if (joins) {
        fusion.apply_activation(channel + j, at, part.count, from, y + at);
      } else {
        fusion.apply(channel + j, at, part.count, from, y + at);
      }
    }
    if (joins) fusion.apply_stages(channel, offset, part.channels * part.count, y + offset, y + offset);
  }

  // A row of pixels in tiles of nearly equal heights, from left to right: what a tile writes too much, the next one
  // overwrites.
  void multiply(int vectors, int64_t pixels, const float* x, const float* w, const float* bias, float* sums) const {
    for (int64_t tiles = ceil_div(pixels, kernels_.rows); tiles > 0; --tiles) {
      const int64_t take = ceil_div(pixels, tiles);
      kernels_.pixel_tile(static_cast<int>(take), vectors, k_, x, offsets_.data(), w, bias, sums, sums_pitch_);
      x += take;
      sums += take;
      pixels -= take;
    }
  }

  const ConvPlan plan_;
  const GemmKernels& kernels_;
  ConvPlanes planes_;
  const int64_t m_, k_;
  const Panels panels_;
  const int64_t in_pixels_, out_pixels_;
  bool flat_ = false;
  int64_t channel_floats_ = 0;  // copied input, from one channel to the next
  int64_t sums_pitch_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<float> packed_;  // constant weights
};

}  // namespace

bool is_direct(const ConvPlan& plan, bool constant) {
  if (!is_planar(plan)) return false;
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  const int64_t pixels = plan.out_pixels();
  const int64_t m = plan.group_out();
  // Vectors would be empty; patches of several taps cost more than that.
  if (m * (plan.taps() == 1 ? 10 : 14) < align_up(m, gemm_kernels_for(m).width) * 7) return false;
  if (!constant && pixels < kFewPixels) return false;
  const bool wide = plan.taps() == 1 ? pixels >= 4 : axes[2].out >= 4;
  return wide && fits_band(plan);
}

ConvMethodPtr conv_direct(ConvPlan plan, const float* constant) {
  return std::make_unique<DirectConv>(std::move(plan), constant);
}

}  // namespace openrknn::cpu
