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
