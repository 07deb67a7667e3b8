#include "kernels/npu/conv_table.hpp"

namespace openrknn::npu {

const ConvKernels kConvKernelsScalar = kTable;

}  // namespace openrknn::npu
