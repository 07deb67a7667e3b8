// The extents of Conv and ConvTranspose, shared by shape inference and the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"
#include "kernels/window.hpp"

namespace openrknn {

struct ConvPlan {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t in_channels = 0;       // of the whole input
  int64_t out_channels = 0;      // of the whole output
  std::vector<WindowAxis> axes;  // one to three, outermost first
  Shape output;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t taps() const;        // positions of the window
  int64_t in_pixels() const;   // spatial positions of one input channel
  int64_t out_pixels() const;  // of one output channel
};

// x [N, C, spatial...], w [M, C / group, kernel...].
Result<ConvPlan> conv_plan(const Attributes& attributes, const Shape& x, const Shape& w);
// x [N, C, spatial...], w [C, M / group, kernel...].
Result<ConvPlan> transposed_conv_plan(const Attributes& attributes, const Shape& x, const Shape& w);

}  // namespace openrknn
