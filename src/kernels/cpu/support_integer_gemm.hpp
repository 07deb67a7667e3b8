// Exact products of matrices of small integers, by the float gemm.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemm.hpp"

namespace openrknn::cpu {

// C[m][n] = A[m][k] * B[k][n] for operands that hold integers of magnitude up to 255 as floats; sums wrap in 32 bits,
// as ONNX allows. c, ldc and bias of the problems are not used: the results follow each other in `sums`.
void integer_gemm(int64_t problems, int64_t m, int64_t n, int64_t k, const std::function<GemmProblem(int64_t)>& problem,
                  int32_t* sums);

}  // namespace openrknn::cpu
