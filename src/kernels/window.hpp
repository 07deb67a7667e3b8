// The sliding window of convolutions and pools along one spatial axis, and its attributes (kernel_shape, strides,
// dilations, pads, auto_pad, ceil_mode), as ONNX defines them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"

namespace openrknn {

struct WindowAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  int64_t span() const { return (kernel - 1) * dilation + 1; }  // of the window, holes included
};

// The axes of a convolution or pool over extents `in` with a window of extents `kernel`; the first axis is the
// outermost. Errors name the attribute. A window that never fits is an error.
Result<std::vector<WindowAxis>> window_axes(const Attributes& attributes, std::span<const int64_t> in,
                                            std::span<const int64_t> kernel);

// The axes of a transposed convolution: `in` of the result is the smaller tensor, `out` the larger one, so that
// out position = in position * stride - pad_begin + tap * dilation. Also reads output_padding and output_shape.
Result<std::vector<WindowAxis>> transposed_window_axes(const Attributes& attributes, std::span<const int64_t> in,
                                                       std::span<const int64_t> kernel);

// Axes in front until there are three, so that one piece of code serves 1-D to 3-D.
std::vector<WindowAxis> three_axes(std::vector<WindowAxis> axes);

}  // namespace openrknn
