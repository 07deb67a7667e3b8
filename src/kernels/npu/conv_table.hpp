// The table of convolution loops for the instruction set that the including file is compiled for.
#pragma once

#include "kernels/compiled_isa.hpp"
#include "kernels/npu/conv_half_loops.hpp"
#include "kernels/npu/conv_half_slab.hpp"
#include "kernels/npu/conv_integer_loops.hpp"
#include "kernels/npu/depthwise_half_loops.hpp"
#include "kernels/npu/depthwise_loops.hpp"
#include "kernels/npu/winograd_loops.hpp"

namespace openrknn::npu {
namespace {

constexpr ConvKernels kTable = {
    .isa = kCompiledIsa,
    .integer_lanes = Ints::kLanes,
    .integer_panels = kWidePanels,
    .integer_bytes = Ints::kBytes,
    .weight_offset = Ints::kWeightOffset,
    .finishes = kFinishes,
    .integer = integer_block,
    .sum_pixels = sum_pixels,
    .sum_line = sum_line,
    .depthwise_s8 = depthwise_s8_row,
#if defined(__AVX512VNNI__)
    .depthwise_bytes = depthwise_bytes_row,
#else
    .depthwise_bytes = nullptr,
#endif
    .half_channels = kHalfChannels,
    .half = half_block,
    .half_stats = half_stats,
    .half_slab = half_slab,
    .depthwise_f16 = depthwise_f16_row,
#if defined(__F16C__)
    .depthwise_halves = depthwise_halves_row,
#else
    .depthwise_halves = nullptr,
#endif
    .row_lanes = kRowLanes,
    .winograd = kWinogradLoops,
};

}  // namespace
}  // namespace openrknn::npu
