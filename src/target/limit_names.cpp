#include "target/loader.hpp"

namespace openrknn::target {
namespace {

// Every ".max" and ".min" is inclusive. Lengths are elements, "rank" is dimensions, "extent" one of C, H, W.
constexpr std::string_view kLimitNames[] = {
    "npu.rank.max",
    "elementwise.extent.max",
    "conv.kernel.max",
    "conv.stride.max",
    "conv.pad.max",
    "conv.dilation.max",
    "conv.width.max",         // only where the dilated kernel is higher than 1
    "conv.kernels.max",       // output channels of one task
    "conv.kernel_bytes.max",  // weights of one output channel
    "depthwise.kernel.max",
    "depthwise.stride.max",
    "depthwise.pad.max",
    "depthwise.dilation.max",
    "deconv.kernel.max",
    "deconv.stride.max",
    "deconv.stride.power_of_two",  // 1: only strides 1, 2, 4, 8
    "deconv.pad.max",
    "deconv.dilated.kernel.max",  // the largest kernel that may have a dilation other than 1
    "pool.kernel.max",
    "pool.stride.max",
    "pool.pad.max",
    "pool.extent.max",
    "pool.average.native",  // 0: AveragePool runs as a convolution
    "global_pool.extent.max",
    "matmul.k.max",
    "recurrent.extent.max",      // steps, inputs and hidden values of LSTM and GRU
    "recurrent.batch.multiple",  // of a batch above 1
    "resize.factor.min",
    "resize.factor.max",
    "softmax.extent.max",
    "pad.reflect.extent.max",
    "pad.reflect.width.max",
    "gather.indices.rank.max",
    "transpose.p",  // the two constants of the table in transpose.cpp
    "transpose.q",
    "transpose.restricted",  // 1: only five permutations, of long vectors
    "transpose.table",       // permutations that the table knows; its other conditions are cited by this name
    // First layer with 1, 3 or 4 input channels: width * dilated kernel height <= window * N, where
    // N = banks - max(ceil(dilated taps / bank_taps), banks.min) must be at least 1; "exclusive" makes it <.
    "input.width.max",
    "input.window.int8",
    "input.window.float16",
    "input.window.exclusive",
    "input.banks",
    "input.conv.bank_taps",
    "input.conv.banks.min",
    "input.depthwise.bank_taps",
    "input.depthwise.banks.min",
    // One task; larger tensors are tiled.
    "task.width.max",
    "task.rows.max",    // input rows
    "task.extent.max",  // output W, H and C
    "chain.tasks.max",
};

}  // namespace

std::span<const std::string_view> limit_names() { return kLimitNames; }

}  // namespace openrknn::target
