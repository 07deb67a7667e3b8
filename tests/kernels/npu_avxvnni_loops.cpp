#if defined(__x86_64__)

#include "kernels/npu/conv_table.hpp"

namespace openrknn::npu::testing {

extern const ConvKernels kAvxVnniLoops;
const ConvKernels kAvxVnniLoops = kTable;

}  // namespace openrknn::npu::testing

#endif
