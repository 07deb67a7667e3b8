#include "kernels/tables_in_use.hpp"

#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/math_kernels.hpp"
#include "kernels/npu/conv_dispatch.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn {

std::array<TableInUse, 4> tables_in_use() {
  return {{{"convolutions", npu::conv_kernels().isa},
           {"rows", npu::row_kernels().isa},
           {"fp32", gemm_kernels().isa},
           {"math", math::math_kernels().isa}}};
}

}  // namespace openrknn
