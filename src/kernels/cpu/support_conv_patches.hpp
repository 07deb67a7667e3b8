// Patches of an input as rows of a matrix: row k = (channel, tap), column = output pixel.
#pragma once

#include <array>
#include <vector>

#include "kernels/conv_plan.hpp"
#include "kernels/gemm.hpp"

namespace openrknn::cpu {

struct PatchAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t step = 1;                    // input positions from one output position to the next
  std::vector<int64_t> offsets = {0};  // input position of each tap for output position 0; may lie outside
};

struct PatchGeometry {
  std::array<PatchAxis, 3> axes;

  int64_t taps() const;
  int64_t in_pixels() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
  bool identity() const;  // row k is channel k itself
};

// The patches of a convolution that is not transposed.
PatchGeometry patch_geometry(const ConvPlan& plan);

class PatchSource : public RowSource {
 public:
  PatchSource(const PatchGeometry& geometry, const float* channels) : geometry_(&geometry), channels_(channels) {}
  void row(int64_t k, int64_t first, int64_t count, float* to) const override;

 private:
  const PatchGeometry* geometry_;
  const float* channels_;
};

}  // namespace openrknn::cpu
