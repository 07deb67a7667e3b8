// What the convolution drivers share: the loops in force and the geometry of windows.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu/conv_blocks.hpp"

namespace openrknn::npu {

const ConvKernels& conv_kernels();
// For tests: false leaves AVX-512 VNNI unused where the processor has it.
void allow_vnni(bool allowed);

// Pixels of the slab from its start to the window of every output pixel, and from a window to every tap.
std::vector<int64_t> window_pixels(const ConvShape& shape);
std::vector<int64_t> tap_pixels(const ConvShape& shape);
std::vector<int64_t> scaled(const std::vector<int64_t>& offsets, int64_t factor);

}  // namespace openrknn::npu
