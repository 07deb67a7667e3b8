#if defined(__x86_64__)

#include "kernels/npu/conv_half_loops.hpp"
#include "kernels/npu/conv_half_slab.hpp"
#include "kernels/npu/conv_integer_loops.hpp"
#include "kernels/npu/winograd_loops.hpp"

namespace openrknn::npu {

const ConvKernels kConvKernelsAvx2 = {Ints::kLanes, kWidePanels,      Ints::kBytes,      integer_block, sum_pixels,
                                      sum_line,     depthwise_s8_row, nullptr,           nullptr,       kHalfChannels,
                                      half_block,   half_slab,        depthwise_f16_row, kWinogradLoops};

}  // namespace openrknn::npu

#endif
