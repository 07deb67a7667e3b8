// Splits a task into steps whose data and weights fit the convolution buffer.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "model/program.hpp"
#include "npu/compile.hpp"
#include "target/target.hpp"

namespace openrknn::npu {

// Output channels that one weight group may have so that a group's weights fit the buffer beside the input window of
// one output pixel; a power of two up to the target's group. 0: not even one kernel fits. conv.kernel_group need not be
// set.
int32_t kernel_group_that_fits(const target::Target& target, const target::Lanes& lanes, const model::Convolution& conv,
                               const model::TensorDesc& input);

// Rows, columns and output channels in blocks, by npu.md 5.1: whole weights where they leave room for data, else weight
// groups; then bands of rows with their halo; then columns. conv.kernel_group must be set. Error: one output pixel's
// window does not fit.
Result<std::vector<model::Tile>> tile_convolution(const target::Target& target, const CompileOptions& options,
                                                  const model::Convolution& conv, const model::TensorDesc& input,
                                                  const model::TensorDesc& output);
// Pools and elementwise tasks stream through the data path: one tile an image unless the registers' fields or the
// options ask for smaller ones.
std::vector<model::Tile> tile_pool(const target::Target& target, const CompileOptions& options, const model::Pool& pool,
                                   const model::TensorDesc& input, const model::TensorDesc& output);
std::vector<model::Tile> tile_elementwise(const target::Target& target, const CompileOptions& options,
                                          const model::TensorDesc& output);

}  // namespace openrknn::npu
