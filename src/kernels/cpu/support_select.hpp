// Selections whose size depends on data. Shape inference runs them to know the shape, the kernel to fill the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/attributes.hpp"
#include "core/tensor.hpp"

namespace openrknn::cpu {

// The operands of NonMaxSuppression: boxes, scores, and three scalars that may be absent. The boxes that stay, as
// triples (sample, class, box), the best of a class first.
Result<std::vector<int64_t>> select_boxes(const Attributes& attributes, std::span<const TensorView> inputs);

// Distinct elements, or distinct slices along `axis`: a group for each, in ascending order or that of appearance.
struct UniqueGroups {
  std::optional<int> axis;
  std::vector<int64_t> first;   // per group: its first member
  std::vector<int64_t> group;   // per element or slice
  std::vector<int64_t> counts;  // per group
};
Result<UniqueGroups> unique_groups(const Attributes& attributes, const TensorView& x);

// Compress: the positions along `axis` (of the flattened tensor when it is absent) that the condition keeps.
struct KeptPositions {
  std::optional<int> axis;
  std::vector<int64_t> positions;
};
Result<KeptPositions> kept_positions(const Attributes& attributes, const Shape& x, const TensorView& condition);

// The shape of x when `count` elements, or slices along the axis, stay.
Shape selected_shape(const Shape& x, const std::optional<int>& axis, int64_t count);

}  // namespace openrknn::cpu
