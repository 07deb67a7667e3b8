// Depthwise convolutions: each output plane is a sum of shifted input planes (support_conv_planes.hpp).
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_conv_planes.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kBandFloats = 32768;  // scratch of one band of rows: stays in the second cache
constexpr int64_t kSlack = 64;          // the kernel reads and writes whole vectors

int64_t out_floats(const ConvPlanes& p) { return align_up(p.band * p.pitch, kSlack); }
int64_t scratch_floats(const ConvPlanes& p) { return p.floats() + out_floats(p) + 2 * kSlack; }

ConvPlanes banded_planes(const ConvPlan& plan) {
  ConvPlanes p = conv_planes(plan);
  const int64_t rows = kBandFloats / (p.pitch * (static_cast<int64_t>(p.phases.size()) + 1)) - p.extra_rows;
  set_band(p, std::max<int64_t>(rows, 8));
  return p;
}

// Output rows [first, first + rows) of one plane into scratch `out`, p.pitch floats a row.
void run_band(const ConvPlanes& p, const GemmKernels& kernels, const float* plane, const float* weights, float bias,
              int64_t first, int64_t rows, float* scratch, float* out) {
  p.copy(kernels, plane, first, rows, scratch);
  std::vector<const float*> lines(p.taps.size());
  for (size_t t = 0; t < p.taps.size(); ++t) lines[t] = scratch + p.offset(p.taps[t]);
  kernels.taps((rows - 1) * p.pitch + p.w.out, static_cast<int64_t>(p.taps.size()), lines.data(), weights, bias, out);
}

// Square kernels of 3 or 5 with equal steps of 1 or 2 go straight from the input to the output.
bool is_square(const WindowAxis& h, const WindowAxis& w) {
  return h.kernel == w.kernel && (w.kernel == 3 || w.kernel == 5) && h.stride == w.stride && w.stride <= 2 &&
         h.dilation == 1 && w.dilation == 1;
}

constexpr int64_t kSquarePixels = 16384;  // of a band

// Calls body(channel, input plane, first row, rows, offset in the output, scratch) for every band of every plane.
template <typename Body>
void for_bands(const ConvPlan& plan, int64_t out_h, int64_t out_w, int64_t band, int64_t floats, const Body& body) {
  const int64_t bands = ceil_div(out_h, band);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, band * out_w));
  parallel_for(plan.batch * plan.out_channels * bands, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(floats), 0.0F);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t plane = task / bands;
      const int64_t channel = plane % plan.out_channels;
      const int64_t in_plane = plane / plan.out_channels * plan.in_channels + channel / plan.group_out();
      const int64_t first = task % bands * band;
      body(channel, in_plane, first, std::min(band, out_h - first), (plane * out_h + first) * out_w, scratch.data());
    }
  });
}

class DepthwiseConv final : public ConvMethod {
 public:
  explicit DepthwiseConv(ConvPlan plan)
      : plan_(std::move(plan)), planes_(banded_planes(plan_)), kernels_(gemm_kernels()), taps_(plan_.taps()) {}

  Status run(const ConvOperands& operands) const override {
    if (is_square(planes_.h, planes_.w)) {
      run_square(operands);
    } else {
      run_planes(operands);
    }
    return {};
  }

 private:
  static float bias(const ConvOperands& operands, int64_t channel) {
    return operands.bias != nullptr ? operands.bias[channel] : 0.0F;
  }

  void run_square(const ConvOperands& operands) const {
    const WindowAxis& h = planes_.h;
    const WindowAxis& w = planes_.w;
    const ConvFusion& fusion = operands.fusion;
    const bool bounded = fusion.residual == nullptr && fusion.bounds().has_value();
    const ConvFusion::Bounds bounds = bounded ? *fusion.bounds() : ConvFusion::Bounds{};
    const int64_t band = std::min(h.out, std::max<int64_t>(8, kSquarePixels / w.out));
    for_bands(plan_, h.out, w.out, band, w.in,
              [&](int64_t channel, int64_t in_plane, int64_t first, int64_t rows, int64_t offset, float* zeros) {
                kernels_.depth_plane({static_cast<int>(w.kernel), static_cast<int>(w.stride), h.in, w.in, w.out, first,
                                      rows, h.pad_begin, w.pad_begin, operands.x + in_plane * h.in * w.in, zeros,
                                      operands.w + channel * taps_, bias(operands, channel), bounds.low, bounds.high,
                                      operands.y + offset - first * w.out});
                float* y = operands.y + offset;
                if (!bounded) {
                  fusion.apply(channel, offset, rows * w.out, y);
                } else if (fusion.behind != nullptr) {
                  fusion.apply_stages(channel, offset, rows * w.out, y, y);
                }
              });
  }

  void run_planes(const ConvOperands& operands) const {
    const ConvPlanes& p = planes_;
    for_bands(plan_, p.h.out, p.w.out, p.band, scratch_floats(p),
              [&](int64_t channel, int64_t in_plane, int64_t first, int64_t rows, int64_t offset, float* scratch) {
                float* out = scratch + p.floats() + kSlack;
                run_band(p, kernels_, operands.x + in_plane * p.h.in * p.w.in, operands.w + channel * taps_,
                         bias(operands, channel), first, rows, scratch, out);
                float* y = operands.y + offset;
                for (int64_t i = 0; i < rows; ++i) {
                  std::memcpy(y + i * p.w.out, out + i * p.pitch, static_cast<size_t>(p.w.out) * sizeof(float));
                }
                if (operands.fusion.present()) operands.fusion.apply(channel, offset, rows * p.w.out, y);
              });
  }

  const ConvPlan plan_;
  const ConvPlanes planes_;
  const GemmKernels& kernels_;
  const int64_t taps_;
};

}  // namespace

bool is_planar_depthwise(const ConvPlan& plan) {
  if (plan.group_in() != 1 || plan.taps() > 1024) return false;
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  // A row of 8 output rows must fit the scratch in reason; wider ones go the general way.
  return is_planar(plan) && axes[2].out < 65536 && axes[1].span() < 256 && axes[2].span() < 4096;
}

ConvMethodPtr conv_depthwise(ConvPlan plan) { return std::make_unique<DepthwiseConv>(std::move(plan)); }

}  // namespace openrknn::cpu
