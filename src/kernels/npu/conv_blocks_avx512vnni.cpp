#if defined(__x86_64__)

#include "kernels/npu/conv_table.hpp"

namespace openrknn::npu {

const ConvKernels kConvKernelsAvx512Vnni = kTable;

}  // namespace openrknn::npu

#endif
