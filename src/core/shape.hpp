// The extents of a tensor: up to 8 dimensions, rank 0 for a scalar.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace openrknn {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // For shapes written in code; at most kMaxRank dims, each >= 0 (asserted). Shapes from files use make().
  Shape(std::initializer_list<int64_t> dims);
  // Error when the rank is above 8, a dim is negative, or the product of the dims (times 16 bytes) overflows int64.
  static Result<Shape> make(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  // The extent of `axis`, negative axes counting from the end.
  int64_t dim(int axis) const { return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  void set(int axis, int64_t extent) { dims_[static_cast<size_t>(axis)] = extent; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::vector<int64_t> to_vector() const { return {dims().begin(), dims().end()}; }
  // Product of the dims; 1 for rank 0.
  int64_t elements() const;
  // Product of the dims in [begin, end).
  int64_t elements(int begin, int end) const;
  // Row-major strides in elements.
  std::array<int64_t, kMaxRank> strides() const;
  // "[1, 3, 224, 224]"
  std::string to_string() const;
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// The shape of a op b under ONNX (numpy) broadcasting; an error names both shapes and the axis.
Result<Shape> broadcast(const Shape& a, const Shape& b);
// A possibly negative axis made non-negative; an error names the axis and the rank.
Result<int> normalize_axis(int64_t axis, int rank);

}  // namespace openrknn
