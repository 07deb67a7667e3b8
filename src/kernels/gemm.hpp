// Matrix products in fp32: C[m][n] = bias[m] + A[m][k] * B[k][n]. Every element is one chain of fused multiply-adds
// over k in ascending order, so its bits depend on neither the instruction set, nor the blocking, nor the threads.
#pragma once

#include <cstdint>
#include <functional>

namespace openrknn {

// Rows of B, which need not exist in memory (the patches of a convolution).
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Writes B[k][first .. first + count) to `to`.
  virtual void row(int64_t k, int64_t first, int64_t count, float* to) const = 0;
};

struct GemmProblem {
  const float* a = nullptr;  // row-major, rows lda apart
  int64_t lda = 0;
  const RowSource* b = nullptr;
  // B itself when it lies in memory with contiguous rows ldb apart; then `b` may be null.
  const float* b_rows = nullptr;
  int64_t ldb = 0;
  float* c = nullptr;  // row-major, rows ldc apart
  int64_t ldc = 0;
  const float* bias = nullptr;  // one per row of C; null: zeros
};

// Called for finished pieces of rows: elements [first, first + count) of row m of problem `p` lie at `row`.
using GemmEpilogue = std::function<void(int64_t p, int64_t m, int64_t first, int64_t count, float* row)>;

// `problems` products of the same extents; problem(i) describes the i-th. Parallel over problems and blocks.
void gemm(int64_t problems, int64_t m, int64_t n, int64_t k, const std::function<GemmProblem(int64_t)>& problem,
          const GemmEpilogue& epilogue = {});

// The table of the instruction set in use.
struct GemmKernels;
const GemmKernels& gemm_kernels();
// The one for `n` values side by side: that of shorter vectors where it leaves fewer of them empty.
const GemmKernels& gemm_kernels_for(int64_t n);

}  // namespace openrknn
