// What the convolution drivers share: the loops in force and the geometry of windows.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu/conv_blocks.hpp"

namespace openrknn::npu {

const ConvKernels& conv_kernels();
// For tests: these loops whatever isa() says; nullptr: as it says.
void force_conv_kernels(const ConvKernels* kernels);

// Pixels of the slab from its start to the window of every output pixel, and from a window to every tap.
std::vector<int64_t> window_pixels(const ConvShape& shape);
std::vector<int64_t> tap_pixels(const ConvShape& shape);
std::vector<int64_t> scaled(const std::vector<int64_t>& offsets, int64_t factor);

}  // namespace openrknn::npu
