#include "kernels/cpu/support_integer_gemm.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace openrknn::cpu {
namespace {

// A float holds every integer up to 2^24: so many products of two magnitudes of 255 add up without rounding.
constexpr int64_t kExactTerms = (int64_t{1} << 24) / (255 * 255);

class RowsFrom : public RowSource {
 public:
  RowsFrom(const RowSource* rows, int64_t first) : rows_(rows), first_(first) {}
  void row(int64_t k, int64_t first, int64_t count, float* to) const override {
    rows_->row(first_ + k, first, count, to);
  }

 private:
  const RowSource* rows_;
  int64_t first_;
};

}  // namespace

void integer_gemm(int64_t problems, int64_t m, int64_t n, int64_t k, const std::function<GemmProblem(int64_t)>& problem,
                  int32_t* sums) {
  const int64_t elements = problems * m * n;
  std::fill(sums, sums + elements, 0);
  std::vector<float> part(static_cast<size_t>(elements));
  for (int64_t first = 0; first < k; first += kExactTerms) {
    std::vector<RowsFrom> rows;
    for (int64_t p = 0; p < problems; ++p) rows.emplace_back(problem(p).b, first);
    gemm(problems, m, n, std::min(kExactTerms, k - first), [&](int64_t p) {
      GemmProblem piece = problem(p);
      piece.a += first;
      if (piece.b_rows != nullptr) {
        piece.b_rows += first * piece.ldb;
      } else {
        piece.b = &rows[static_cast<size_t>(p)];
      }
      piece.c = part.data() + p * m * n;
      piece.ldc = n;
      piece.bias = nullptr;
      return piece;
    });
    parallel_for(elements, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto term = static_cast<int32_t>(part[static_cast<size_t>(i)]);
        sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(term));
      }
    });
  }
}

}  // namespace openrknn::cpu
