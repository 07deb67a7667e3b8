#include "kernels/cpu/support_transposed.hpp"

#include <vector>

#include "kernels/gemm.hpp"

namespace openrknn::cpu {
namespace {

// Row k of B is column k of a stored matrix.
class TransposedRows : public RowSource {
 public:
  TransposedRows(const float* data, int64_t stride) : data_(data), stride_(stride) {}
  void row(int64_t k, int64_t first, int64_t count, float* to) const override {
    const float* from = data_ + first * stride_ + k;
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride_];
  }

 private:
  const float* data_;
  int64_t stride_;
};

}  // namespace

// With few rows of a, b takes the place of the left matrix, so that its rows, the many, are read once in order. The
// sums are the same.
void multiply_transposed(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* y) {
  constexpr int64_t kFewRows = 16;
  GemmProblem problem;
  problem.lda = k;
  if (m > kFewRows) {
    const TransposedRows rows(b, k);
    problem.a = a;
    problem.b = &rows;
    problem.c = y;
    problem.ldc = n;
    gemm(1, m, n, k, [&](int64_t) { return problem; });
    return;
  }
  const TransposedRows rows(a, k);
  std::vector<float> columns(static_cast<size_t>(m * n));
  problem.a = b;
  problem.b = &rows;
  problem.c = columns.data();
  problem.ldc = m;
  gemm(1, n, m, k, [&](int64_t) { return problem; });
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = columns[static_cast<size_t>(j * m + i)];
  }
}

}  // namespace openrknn::cpu
