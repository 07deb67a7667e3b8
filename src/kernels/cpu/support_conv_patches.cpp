#include "kernels/cpu/support_conv_patches.hpp"

#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {
PatchGeometry patch_geometry(const ConvPlan& plan) {
  PatchGeometry geometry;
  const std::vector<WindowAxis> axes = three_axes(plan.axes);
  for (size_t i = 0; i < 3; ++i) {
    PatchAxis& to = geometry.axes[i];
    to = {axes[i].in, axes[i].out, axes[i].stride, {}};
    for (int64_t t = 0; t < axes[i].kernel; ++t) to.offsets.push_back(t * axes[i].dilation - axes[i].pad_begin);
  }
  return geometry;
}

int64_t PatchGeometry::taps() const {
  int64_t n = 1;
  for (const PatchAxis& axis : axes) n *= static_cast<int64_t>(axis.offsets.size());
  return n;
}

bool PatchGeometry::identity() const {
  return std::all_of(axes.begin(), axes.end(), [](const PatchAxis& a) {
    return a.in == a.out && (a.step == 1 || a.out == 1) && a.offsets.size() == 1 && a.offsets[0] == 0;
  });
}

void PatchSource::row(int64_t k, int64_t first, int64_t count, float* to) const {
  const GemmKernels& kernels = gemm_kernels();
  const auto& [outer, middle, inner] = geometry_->axes;
  const auto n1 = static_cast<int64_t>(middle.offsets.size());
  const auto n2 = static_cast<int64_t>(inner.offsets.size());
  const int64_t taps = geometry_->taps();
  const float* channel = channels_ + k / taps * geometry_->in_pixels();
  const int64_t offset0 = outer.offsets[static_cast<size_t>(k % taps / (n1 * n2))];
  const int64_t offset1 = middle.offsets[static_cast<size_t>(k % (n1 * n2) / n2)];
  const int64_t offset2 = inner.offsets[static_cast<size_t>(k % n2)];
  int64_t x = first % inner.out;
  int64_t y = first / inner.out % middle.out;
  int64_t z = first / (inner.out * middle.out);
  while (count > 0) {
    const int64_t piece = std::min(count, inner.out - x);
    const int64_t iz = z * outer.step + offset0;
    const int64_t iy = y * middle.step + offset1;
    if (iz < 0 || iz >= outer.in || iy < 0 || iy >= middle.in) {
      std::fill(to, to + piece, 0.0F);
    } else {
      kernels.line(channel + (iz * middle.in + iy) * inner.in, inner.in, x * inner.step + offset2, inner.step, piece,
                   to);
    }
    to += piece;
    count -= piece;
    x = 0;
    if (++y == middle.out) {
      y = 0;
      ++z;
    }
  }
}

}  // namespace openrknn::cpu
