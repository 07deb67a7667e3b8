#include "kernels/npu/rows_loops.hpp"

namespace openrknn::npu {

const RowKernels kRowKernelsScalar = kLoops;

}  // namespace openrknn::npu
