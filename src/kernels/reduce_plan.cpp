#include "kernels/reduce_plan.hpp"

#include <fmt/core.h>

namespace openrknn {
namespace {

Shape reduced_shape(const Shape& x, const std::array<bool, Shape::kMaxRank>& reduced, bool keep) {
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dims.push_back(x[i]);
    } else if (keep) {
      dims.push_back(1);
    }
  }
  return *Shape::make(dims);  // no larger than x, which is valid
}

}  // namespace

Result<ReducePlan> reduce_plan(const Attributes& attributes, const Shape& x,
                               const std::optional<std::vector<int64_t>>& axes) {
  ReducePlan plan;
  const bool none = !axes || axes->empty();
  if (none && attributes.int_or("noop_with_empty_axes", 0) != 0) {
    plan.identity = true;
    plan.output = x;
    return plan;
  }
  if (none) {
    for (int i = 0; i < x.rank(); ++i) plan.reduced[static_cast<size_t>(i)] = true;
  } else {
    for (const int64_t axis : *axes) {
      OPENRKNN_TRY(const int at, normalize_axis(axis, x.rank()));
      plan.reduced[static_cast<size_t>(at)] = true;
    }
  }
  plan.output = reduced_shape(x, plan.reduced, attributes.int_or("keepdims", 1) != 0);
  return plan;
}

Result<Shape> arg_reduce_shape(const Attributes& attributes, const Shape& x, int& axis) {
  OPENRKNN_TRY(axis, normalize_axis(attributes.int_or("axis", 0), x.rank()));
  if (x[axis] == 0) {
    return Error{ErrorCode::kShape, "the position of an extreme cannot be found", "",
                 fmt::format("axis {} of {} is empty", axis, x.to_string()), "repair the model"};
  }
  std::array<bool, Shape::kMaxRank> reduced{};
  reduced[static_cast<size_t>(axis)] = true;
  return reduced_shape(x, reduced, attributes.int_or("keepdims", 1) != 0);
}

}  // namespace openrknn
