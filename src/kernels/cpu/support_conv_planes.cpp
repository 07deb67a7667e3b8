#include "kernels/cpu/support_conv_planes.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace openrknn::cpu {

bool is_planar(const ConvPlan& plan) {
  const WindowAxis outer = three_axes(plan.axes)[0];
  return outer.in == 1 && outer.out == 1 && outer.kernel == 1 && outer.pad_begin == 0;
}

ConvPlanes conv_planes(const ConvPlan& plan) {
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  ConvPlanes p;
  p.h = axes[1];
  p.w = axes[2];
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
  return p;
}

void set_band(ConvPlanes& planes, int64_t rows) {
  planes.band = std::clamp<int64_t>(rows, 1, planes.h.out);
  planes.bands = ceil_div(planes.h.out, planes.band);
}

void choose_band(ConvPlanes& planes, int64_t channels) {
  const int64_t row = static_cast<int64_t>(planes.phases.size()) * planes.pitch * channels;
  const int64_t pixels = kBandPixels / planes.w.out;
  const int64_t rows = std::min(kBandFloats / row - planes.extra_rows, pixels);
  set_band(planes, std::max<int64_t>(rows, std::min<int64_t>(4, pixels)));
  set_band(planes, ceil_div(planes.h.out, planes.bands));
}

bool fits_band(const ConvPlan& plan) {
  constexpr int64_t kMostFloats = 1 << 24;
  constexpr int64_t kLeastRow = 64;  // one tap alone is cut into rows of at least so many
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  if (axes[2].out > kBandPixels || axes[1].span() > 255 || axes[2].span() > 255 || plan.taps() > 1024) return false;
  const int64_t rows = 4 + (axes[1].span() - 1) / axes[1].stride;
  const int64_t pitch = axes[2].out + (axes[2].span() - 1) / axes[2].stride;
  return plan.group_in() <= kMostFloats / std::max(rows * pitch * plan.taps(), 2 * kLeastRow);
}

bool is_pointwise(const ConvPlan& plan) {
  return plan.taps() == 1 && std::all_of(plan.axes.begin(), plan.axes.end(), [](const WindowAxis& a) {
           return a.stride == 1 && a.in == a.out && a.pad_begin == 0;
         });
}

int64_t spread_pitch(int64_t n) { return (ceil_div(n, 16) | 1) * 16; }

std::vector<int64_t> tap_offsets(const ConvPlanes& planes, int64_t channels) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(channels) * planes.taps.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (const ConvPlanes::Tap& tap : planes.taps) offsets.push_back(c * channel_pitch(planes) + planes.offset(tap));
  }
  return offsets;
}

void copy_rows(const GemmKernels& kernels, const WindowAxis& h, const WindowAxis& w, const float* plane,
               const PlaneRows& rows, float* to, int64_t to_pitch) {
  const auto zeros = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(to + i * to_pitch, rows.count, 0.0F);
  };
  const int64_t above = rows.y >= 0 ? 0 : std::min(rows.rows, ceil_div(-rows.y, rows.rows_step));
  const int64_t end = rows.y >= h.in ? above : std::clamp(ceil_div(h.in - rows.y, rows.rows_step), above, rows.rows);
  zeros(0, above);
  if (above < end) {
    kernels.lines(plane + (rows.y + above * rows.rows_step) * w.in, rows.rows_step * w.in, end - above, w.in, rows.x,
                  rows.step, rows.count, to + above * to_pitch, to_pitch);
  }
  zeros(end, rows.rows);
}

void ConvPlanes::copy(const GemmKernels& kernels, const float* plane, int64_t first, int64_t rows, float* to) const {
  for (const auto& [row_phase, column_phase] : phases) {
    const PlaneRows part{first * h.stride + row_phase - h.pad_begin,
                         h.stride,
                         rows + extra_rows,
                         column_phase - w.pad_begin,
                         w.stride,
                         pitch};
    copy_rows(kernels, h, w, plane, part, to, pitch);
    to += phase_floats();
  }
}

}  // namespace openrknn::cpu
