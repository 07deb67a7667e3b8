// Products with a transposed right matrix.
#pragma once

#include <cstdint>

namespace openrknn::cpu {

// y [m][n] = a [m][k] * b^T, b stored as [n][k]. The bits are those of gemm with b turned.
void multiply_transposed(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* y);

}  // namespace openrknn::cpu
