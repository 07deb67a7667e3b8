// Determinants of a batch of square matrices: elimination with the largest pivot, in double.
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"

namespace openrknn::cpu {
namespace {

// Destroys the matrix.
double determinant(std::vector<double>& a, int64_t n) {
  const auto at = [&](int64_t row, int64_t column) -> double& { return a[static_cast<size_t>(row * n + column)]; };
  double product = 1.0;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < n; ++r) pivot = std::fabs(at(r, k)) > std::fabs(at(pivot, k)) ? r : pivot;
    if (at(pivot, k) == 0.0) return 0.0;
    if (pivot != k) {
      product = -product;
      for (int64_t c = k; c < n; ++c) std::swap(at(pivot, c), at(k, c));
    }
    product *= at(k, k);
    for (int64_t r = k + 1; r < n; ++r) {
      const double factor = at(r, k) / at(k, k);
      for (int64_t c = k + 1; c < n; ++c) at(r, c) -= factor * at(k, c);
    }
  }
  return product;
}

Status det(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& x = args.inputs[0];
  const int rank = x.shape.rank();
  if (rank < 2 || x.shape.dim(-1) != x.shape.dim(-2))
    return kernel_error(fmt::format("{} holds no square matrices", x.shape.to_string()), ErrorCode::kShape);
  OPENRKNN_TRY(const Shape shape, Shape::make(x.shape.dims().first(static_cast<size_t>(rank) - 2)));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, shape));
  const int64_t n = x.shape.dim(-1);
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    parallel_for(shape.elements(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = operand.data<T>() + i * n * n;
        std::vector<double> matrix(from, from + n * n);
        to[i] = static_cast<T>(determinant(matrix, n));
      }
    });
    return {};
  });
}

}  // namespace

void register_det(Registry& registry) { registry.add("Det", det); }

}  // namespace openrknn::cpu
