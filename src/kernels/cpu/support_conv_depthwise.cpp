// Depthwise convolutions: each output plane is a sum of shifted input planes. The input is copied once with its padding
// and parted by stride phase, so that every tap reads contiguous floats and the kernel knows neither borders nor
// strides.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kBandFloats = 32768;  // scratch of one band of rows: stays in the second cache
constexpr int64_t kSlack = 64;          // the kernel reads and writes whole vectors

struct Planes {
  WindowAxis h, w;
  int64_t pitch;       // floats from one row of a phase plane to the next
  int64_t extra_rows;  // rows of a phase plane beyond the output's
  int64_t band;        // output rows at a time
  int64_t bands;
  std::vector<std::pair<int64_t, int64_t>> phases;  // those that some tap reads
  struct Tap {
    size_t phase;
    int64_t row, column;
  };
  std::vector<Tap> taps;  // in kernel order

  int64_t phase_floats() const { return (band + extra_rows) * pitch; }
  int64_t out_floats() const { return align_up(band * pitch, kSlack); }
  int64_t scratch_floats() const {
    return static_cast<int64_t>(phases.size()) * phase_floats() + out_floats() + 2 * kSlack;
  }
};

Planes make_planes(const ConvPlan& plan) {
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  Planes p{axes[1], axes[2], 0, 0, 0, 0, {}, {}};
  p.pitch = p.w.out + (p.w.span() - 1) / p.w.stride;
  p.extra_rows = (p.h.span() - 1) / p.h.stride;
  for (int64_t i = 0; i < p.h.kernel; ++i) {
    for (int64_t j = 0; j < p.w.kernel; ++j) {
      const int64_t y = i * p.h.dilation;
      const int64_t x = j * p.w.dilation;
      const std::pair<int64_t, int64_t> phase{y % p.h.stride, x % p.w.stride};
      const auto at = std::find(p.phases.begin(), p.phases.end(), phase);
      p.taps.push_back({static_cast<size_t>(at - p.phases.begin()), y / p.h.stride, x / p.w.stride});
      if (at == p.phases.end()) p.phases.push_back(phase);
    }
  }
  const int64_t rows = kBandFloats / (p.pitch * (static_cast<int64_t>(p.phases.size()) + 1)) - p.extra_rows;
  p.band = std::clamp<int64_t>(rows, std::min<int64_t>(8, p.h.out), p.h.out);
  p.bands = ceil_div(p.h.out, p.band);
  return p;
}

// Output rows [first, first + rows) of one plane into scratch `out`, p.pitch floats a row.
void run_band(const Planes& p, const GemmKernels& kernels, const float* plane, const float* weights, float bias,
              int64_t first, int64_t rows, float* scratch, std::vector<const float*>& lines, float* out) {
  for (size_t f = 0; f < p.phases.size(); ++f) {
    float* to = scratch + static_cast<int64_t>(f) * p.phase_floats();
    for (int64_t i = 0; i < rows + p.extra_rows; ++i) {
      const int64_t y = (first + i) * p.h.stride + p.phases[f].first - p.h.pad_begin;
      const bool real = y >= 0 && y < p.h.in;
      kernels.line(real ? plane + y * p.w.in : nullptr, real ? p.w.in : 0, p.phases[f].second - p.w.pad_begin,
                   p.w.stride, p.pitch, to + i * p.pitch);
    }
  }
  for (size_t t = 0; t < p.taps.size(); ++t) {
    const Planes::Tap& tap = p.taps[t];
    lines[t] = scratch + static_cast<int64_t>(tap.phase) * p.phase_floats() + tap.row * p.pitch + tap.column;
  }
  kernels.taps((rows - 1) * p.pitch + p.w.out, static_cast<int64_t>(p.taps.size()), lines.data(), weights, bias, out);
}

}  // namespace

bool is_planar_depthwise(const ConvPlan& plan) {
  if (plan.group_in() != 1 || plan.taps() > 1024) return false;
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  const WindowAxis& outer = axes[0];
  const bool planar = outer.in == 1 && outer.out == 1 && outer.kernel == 1 && outer.pad_begin == 0;
  // A row of 8 output rows must fit the scratch in reason; wider ones go the general way.
  return planar && axes[2].out < 65536 && axes[1].span() < 256 && axes[2].span() < 4096;
}

void conv_depthwise(const ConvPlan& plan, const ConvOperands& operands) {
  const Planes p = make_planes(plan);
  const GemmKernels& kernels = gemm_kernels();
  const int64_t planes = plan.batch * plan.out_channels;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.band * p.w.out));
  parallel_for(planes * p.bands, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(p.scratch_floats()), 0.0F);
    std::vector<const float*> lines(p.taps.size());
    float* out = scratch.data() + static_cast<int64_t>(p.phases.size()) * p.phase_floats() + kSlack;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t plane = task / p.bands;
      const int64_t channel = plane % plan.out_channels;
      const int64_t in_plane = plane / plan.out_channels * plan.in_channels + channel / plan.group_out();
      const int64_t first = task % p.bands * p.band;
      const int64_t rows = std::min(p.band, p.h.out - first);
      const float bias = operands.bias != nullptr ? operands.bias[channel] : 0.0F;
      run_band(p, kernels, operands.x + in_plane * p.h.in * p.w.in, operands.w + channel * plan.taps(), bias, first,
               rows, scratch.data(), lines, out);
      const int64_t offset = (plane * p.h.out + first) * p.w.out;
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(operands.y + offset + i * p.w.out, out + i * p.pitch, static_cast<size_t>(p.w.out) * sizeof(float));
      }
      if (operands.fusion.present()) {
        operands.fusion.apply(channel, offset, rows * p.w.out, operands.y + offset);
      }
    }
  });
}

}  // namespace openrknn::cpu
