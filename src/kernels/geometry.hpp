// Shapes and index rules of the operators that move elements. Shape inference and kernels share them, so a kernel can
// check that the output it was given is the one its operands ask for before it touches memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/shape.hpp"

namespace openrknn::geometry {

using Ints = std::vector<int64_t>;
using Extents = std::array<int64_t, Shape::kMaxRank>;

struct SlicePlan {
  Shape shape;       // of the result
  Extents starts{};  // first element taken, per input axis
  Extents steps{};   // never 0
};
// ONNX Slice: negative positions count from the end, positions are clamped; steps may be negative.
Result<SlicePlan> slice(const Shape& input, const Ints& starts, const Ints& ends, const std::optional<Ints>& axes,
                        const std::optional<Ints>& steps);

Result<Shape> concat(std::span<const Shape> inputs, int64_t axis);

// Extents of the parts along `axis`: as `sizes` says, else equal parts of which the last may be smaller.
Result<Ints> split(const Shape& input, int axis, const std::optional<Ints>& sizes, size_t parts);

struct PadPlan {
  Shape shape;       // of the result
  Extents before{};  // elements added (negative: removed) in front, per axis
  Extents after{};
};
Result<PadPlan> pad(const Shape& input, const Ints& pads, const std::optional<Ints>& axes);

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };
Result<PadMode> pad_mode(std::string_view name);
// Where output position `i` of a padded axis of extent `n` (n >= 1) takes its element from; `before` elements are
// added.
int64_t pad_source(PadMode mode, int64_t i, int64_t before, int64_t n);

// The permutation of Transpose: `perm`, or the reversed axes when it is empty.
Result<std::vector<int>> permutation(int rank, const Ints& perm);
Shape permuted(const Shape& input, const std::vector<int>& perm);

Result<Shape> tile(const Shape& input, const Ints& repeats);
Result<Shape> expand(const Shape& input, const Ints& target);

Result<Shape> gather(const Shape& data, const Shape& indices, int axis);
Result<Shape> gather_nd(const Shape& data, const Shape& indices, int64_t batch_dims);
// indices and updates of ScatterND / ScatterElements fit data.
Status check_scatter_nd(const Shape& data, const Shape& indices, const Shape& updates);
Status check_elementwise_indices(const Shape& data, const Shape& indices, int axis);

// An update of a cache differs from it in the extent of one axis, not the first, and is not longer there.
Status check_cache_update(const Shape& cache, const Shape& update, int axis);

Result<Shape> depth_to_space(const Shape& input, int64_t block);
Result<Shape> space_to_depth(const Shape& input, int64_t block);

Result<Shape> reshape(const Shape& input, const Ints& target, bool allow_zero);
Result<Shape> flatten(const Shape& input, int64_t axis);
Result<Shape> squeeze(const Shape& input, const std::optional<Ints>& axes);
Result<Shape> unsqueeze(const Shape& input, const Ints& axes);

}  // namespace openrknn::geometry
