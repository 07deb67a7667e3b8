#include "kernels/matmul_plan.hpp"

#include <fmt/core.h>

#include <string>

namespace openrknn {
namespace {

Error misfit(std::string why) {
  return {ErrorCode::kShape, "the matrices do not fit", "", std::move(why), "repair the model"};
}

// Which matrix of an operand with axes `own` in front belongs to each of the products over axes `all`.
std::vector<int64_t> batch_indices(const Shape& own, const Shape& all) {
  std::vector<int64_t> indices(static_cast<size_t>(all.elements()), 0);
  const int shift = all.rank() - own.rank();
  for (int64_t p = 0; p < all.elements(); ++p) {
    int64_t rest = p;
    int64_t step = 1;
    int64_t at = 0;
    for (int i = all.rank() - 1; i >= shift; --i) {
      const int64_t position = rest % all[i];
      rest /= all[i];
      const int64_t extent = own[i - shift];
      if (extent != 1) at += position * step;
      step *= extent;
    }
    indices[static_cast<size_t>(p)] = at;
  }
  return indices;
}

}  // namespace

Result<MatMulPlan> matmul_plan(const Shape& a, const Shape& b) {
  if (a.rank() < 1 || b.rank() < 1) return misfit(fmt::format("{} times {}", a.to_string(), b.to_string()));
  MatMulPlan plan;
  plan.m = a.rank() == 1 ? 1 : a.dim(-2);
  plan.k = a.dim(-1);
  plan.n = b.rank() == 1 ? 1 : b.dim(-1);
  const int64_t depth = b.rank() == 1 ? b[0] : b.dim(-2);
  if (depth != plan.k) {
    return misfit(fmt::format("{} times {}: {} columns meet {} rows", a.to_string(), b.to_string(), plan.k, depth));
  }
  OPENRKNN_TRY(const Shape a_front, Shape::make(a.dims().first(static_cast<size_t>(a.rank() > 2 ? a.rank() - 2 : 0))));
  OPENRKNN_TRY(const Shape b_front, Shape::make(b.dims().first(static_cast<size_t>(b.rank() > 2 ? b.rank() - 2 : 0))));
  OPENRKNN_TRY(const Shape front, broadcast(a_front, b_front));
  std::vector<int64_t> dims = front.to_vector();
  if (a.rank() > 1) dims.push_back(plan.m);
  if (b.rank() > 1) dims.push_back(plan.n);
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  if (plan.output.elements() == 0) return plan;  // no products, however many empty matrices there are
  constexpr int64_t kMostProducts = int64_t{1} << 28;
  if (front.elements() > kMostProducts) {
    return Error{ErrorCode::kResource, "too many matrices", "",
                 fmt::format("{} times {}: {} products, at most {}", a.to_string(), b.to_string(), front.elements(),
                             kMostProducts),
                 "give smaller shapes"};
  }
  plan.a_batch = batch_indices(a_front, front);
  plan.b_batch = batch_indices(b_front, front);
  return plan;
}

Result<GemmPlan> gemm_plan(const Attributes& attributes, const Shape& a, const Shape& b, const Shape* c) {
  if (a.rank() != 2 || b.rank() != 2) {
    return misfit(fmt::format("{} times {}: both must be matrices", a.to_string(), b.to_string()));
  }
  GemmPlan plan;
  plan.transpose_a = attributes.int_or("transA", 0) != 0;
  plan.transpose_b = attributes.int_or("transB", 0) != 0;
  plan.m = a[plan.transpose_a ? 1 : 0];
  plan.k = a[plan.transpose_a ? 0 : 1];
  plan.n = b[plan.transpose_b ? 0 : 1];
  const int64_t depth = b[plan.transpose_b ? 1 : 0];
  if (depth != plan.k) {
    return misfit(fmt::format("{}{} times {}{}: {} columns meet {} rows", a.to_string(),
                              plan.transpose_a ? " transposed" : "", b.to_string(),
                              plan.transpose_b ? " transposed" : "", plan.k, depth));
  }
  if (c == nullptr) return plan;
  const Shape target{plan.m, plan.n};
  const auto together = broadcast(*c, target);
  if (!together.ok() || !(*together == target)) {
    return misfit(fmt::format("{} does not broadcast to {}", c->to_string(), target.to_string()));
  }
  return plan;
}

}  // namespace openrknn
