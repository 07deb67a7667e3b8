// The tables of kernels, what they hold, and which of them this machine runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm_kernels.hpp"
#include "kernels/isa.hpp"
#include "kernels/math_kernels.hpp"
#include "kernels/npu/conv_blocks.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::testing {

template <typename Table>
struct TableOf {
  std::string isa;
  const Table* table;
};

// The scalar one first.
std::vector<TableOf<GemmKernels>> gemm_tables();
std::vector<TableOf<math::MathKernels>> math_tables();
std::vector<TableOf<npu::RowKernels>> row_tables();
// With the loops of AVX-VNNI in the encoding of AVX-512 VNNI, which more machines run.
std::vector<TableOf<npu::ConvKernels>> conv_tables();

template <typename Table>
std::vector<std::string> names_of(const std::vector<TableOf<Table>>& tables) {
  std::vector<std::string> names;
  for (const auto& each : tables) names.push_back(each.isa);
  return names;
}

}  // namespace openrknn::testing
