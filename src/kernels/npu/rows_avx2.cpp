#if defined(__x86_64__)

#include "kernels/npu/rows_loops.hpp"

namespace openrknn::npu {

const RowKernels kRowKernelsAvx2 = kLoops;

}  // namespace openrknn::npu

#endif
