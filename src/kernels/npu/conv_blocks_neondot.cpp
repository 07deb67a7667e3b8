#if defined(__aarch64__)

#include "kernels/npu/conv_table.hpp"

namespace openrknn::npu {

const ConvKernels kConvKernelsNeonDot = kTable;

}  // namespace openrknn::npu

#endif
