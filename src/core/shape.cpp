#include "core/shape.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "base/checked.hpp"

namespace openrknn {

Shape::Shape(std::initializer_list<int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  assert(dims.size() <= kMaxRank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Result<Shape> Shape::make(std::span<const int64_t> dims) {
  const auto fail = [&](std::string why) {
    return Error{ErrorCode::kShape, "unusable shape", fmt::format("[{}]", fmt::join(dims, ", ")), std::move(why), ""};
  };
  if (dims.size() > kMaxRank)
    return fail(fmt::format("it has {} dimensions, at most {} are supported", dims.size(), kMaxRank));
  Shape shape;
  shape.rank_ = static_cast<int>(dims.size());
  int64_t bytes = 16;  // the widest element, with room
  bool empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return fail(fmt::format("dimension {} is negative", i));
    empty = empty || dims[i] == 0;
    shape.dims_[i] = dims[i];
  }
  for (const int64_t d : dims) {
    const auto product = checked_mul(bytes, std::max<int64_t>(d, 1));
    if (!product) return fail("the number of elements overflows 64 bits");
    bytes = *product;
  }
  return shape;
}

int64_t Shape::elements() const { return elements(0, rank_); }

int64_t Shape::elements(int begin, int end) const {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= dims_[static_cast<size_t>(i)];
  return product;
}

std::array<int64_t, Shape::kMaxRank> Shape::strides() const {
  std::array<int64_t, kMaxRank> strides{};
  int64_t step = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= dims_[static_cast<size_t>(i)];
  }
  return strides;
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims(), ", ")); }

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(dims().begin(), dims().end(), other.dims().begin());
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) {
      return Error{ErrorCode::kShape, "shapes do not broadcast", a.to_string() + " and " + b.to_string(),
                   fmt::format("extents {} and {} differ and neither is 1", da, db), ""};
    }
    dims[static_cast<size_t>(i)] = da == 1 ? db : da;
  }
  return Shape::make(dims);
}

Result<int> normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return Error{ErrorCode::kShape, "axis outside the tensor", "", fmt::format("axis {} for rank {}", axis, rank),
                 fmt::format("axes run from {} to {}", -rank, rank - 1)};
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace openrknn
