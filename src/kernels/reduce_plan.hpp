// Axes of reductions, shared by shape inference and the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"

namespace openrknn {

struct ReducePlan {
  std::array<bool, Shape::kMaxRank> reduced{};
  Shape output;
  bool identity = false;  // nothing is reduced
};

// `axes`: the operand, nullopt when absent. No axes means all of them, or none with noop_with_empty_axes.
Result<ReducePlan> reduce_plan(const Attributes& attributes, const Shape& x,
                               const std::optional<std::vector<int64_t>>& axes);

// ArgMax, ArgMin: the result's shape; `axis` receives the axis.
Result<Shape> arg_reduce_shape(const Attributes& attributes, const Shape& x, int& axis);

}  // namespace openrknn
