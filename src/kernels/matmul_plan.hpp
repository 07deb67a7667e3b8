// The extents of MatMul and Gemm, shared by shape inference and the kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"

namespace openrknn {

// MatMul as a batch of products [m][k] * [k][n].
struct MatMulPlan {
  int64_t m = 1, n = 1, k = 1;
  std::vector<int64_t> a_batch;  // per product: which matrix of a, of b; none when the output is empty
  std::vector<int64_t> b_batch;
  Shape output;
};

// numpy.matmul: vectors become matrices for the product, axes in front broadcast.
Result<MatMulPlan> matmul_plan(const Shape& a, const Shape& b);

struct GemmPlan {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

// `c` may be null; it must broadcast to [m, n].
Result<GemmPlan> gemm_plan(const Attributes& attributes, const Shape& a, const Shape& b, const Shape* c);

}  // namespace openrknn
