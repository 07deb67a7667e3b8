#if defined(__x86_64__)

#include "kernels/npu/conv_table.hpp"

namespace openrknn::npu {

const ConvKernels kConvKernelsAvx2 = kTable;

}  // namespace openrknn::npu

#endif
