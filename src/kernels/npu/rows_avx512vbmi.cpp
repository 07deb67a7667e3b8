#if defined(__x86_64__)

#include "kernels/npu/rows_loops.hpp"

namespace openrknn::npu {

const RowKernels kRowKernelsAvx512Vbmi = kLoops;

}  // namespace openrknn::npu

#endif
