#include "kernels/geometry.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bitset>

#include "base/checked.hpp"

namespace openrknn::geometry {
namespace {

Error bad(std::string why, std::string where = "") {
  return Error{ErrorCode::kShape, "unusable operand", std::move(where), std::move(why), "repair the model"};
}

// Axes made non-negative; each may occur once.
Result<std::vector<int>> distinct_axes(const Ints& axes, int rank) {
  std::vector<int> result;
  std::bitset<Shape::kMaxRank> seen;
  for (const int64_t a : axes) {
    OPENRKNN_TRY(const int axis, normalize_axis(a, rank));
    if (seen[static_cast<size_t>(axis)]) return bad(fmt::format("axis {} is named twice", axis), "axes");
    seen.set(static_cast<size_t>(axis));
    result.push_back(axis);
  }
  return result;
}

std::vector<int> all_axes(int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

Result<std::vector<int>> axes_or_all(const std::optional<Ints>& axes, int rank) {
  if (axes) return distinct_axes(*axes, rank);
  return all_axes(rank);
}

int64_t slice_count(int64_t start, int64_t end, int64_t step) {
  if (step > 0) return end > start ? ceil_div(end - start, step) : 0;
  return start > end ? ceil_div(start - end, -step) : 0;
}

}  // namespace

Result<SlicePlan> slice(const Shape& input, const Ints& starts, const Ints& ends, const std::optional<Ints>& axes,
                        const std::optional<Ints>& steps) {
  const Ints default_axes = [&] {
    Ints made;
    for (size_t i = 0; i < starts.size(); ++i) made.push_back(static_cast<int64_t>(i));
    return made;
  }();
  OPENRKNN_TRY(const auto sliced, distinct_axes(axes.value_or(default_axes), input.rank()));
  if (ends.size() != starts.size() || sliced.size() != starts.size() || (steps && steps->size() != starts.size())) {
    return bad(fmt::format("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), sliced.size(),
                           steps ? steps->size() : starts.size()));
  }
  SlicePlan plan;
  plan.shape = input;
  plan.steps.fill(1);
  for (size_t k = 0; k < sliced.size(); ++k) {
    const int axis = sliced[k];
    const int64_t n = input[axis];
    int64_t step = steps ? (*steps)[k] : 1;
    if (step == 0) return bad("a step is 0", "steps");
    if (n == 0) continue;
    step = std::clamp<int64_t>(step, -n, n);  // longer steps take the same elements
    const auto clamped = [n](int64_t p, int64_t lowest, int64_t highest) {
      return std::clamp(p < 0 ? p + n : p, lowest, highest);
    };
    const int64_t start = clamped(starts[k], 0, step > 0 ? n : n - 1);
    const int64_t end = clamped(ends[k], step > 0 ? 0 : -1, step > 0 ? n : n - 1);
    plan.starts[static_cast<size_t>(axis)] = start;
    plan.steps[static_cast<size_t>(axis)] = step;
    plan.shape.set(axis, slice_count(start, end, step));
  }
  return plan;
}

Result<Shape> concat(std::span<const Shape> inputs, int64_t axis) {
  if (inputs.empty()) return bad("no operand");
  OPENRKNN_TRY(const int at, normalize_axis(axis, inputs[0].rank()));
  int64_t total = 0;
  for (const Shape& s : inputs) {
    for (int i = 0; i < std::max(s.rank(), inputs[0].rank()); ++i) {
      if (s.rank() != inputs[0].rank() || (i != at && s[i] != inputs[0][i])) {
        return bad(fmt::format("{} and {} differ outside axis {}", inputs[0].to_string(), s.to_string(), at));
      }
    }
    const auto sum = checked_add(total, s[at]);
    if (!sum) return bad("the extents overflow");
    total = *sum;
  }
  Ints dims = inputs[0].to_vector();
  dims[static_cast<size_t>(at)] = total;
  return Shape::make(dims);
}

Result<Ints> split(const Shape& input, int axis, const std::optional<Ints>& sizes, size_t parts) {
  const int64_t n = input[axis];
  if (sizes) {
    if (sizes->size() != parts) return bad(fmt::format("{} sizes for {} results", sizes->size(), parts), "split");
    int64_t rest = n;
    for (const int64_t s : *sizes) {
      if (s < 0 || s > rest) return bad(fmt::format("sizes {} do not sum to {}", fmt::join(*sizes, ", "), n), "split");
      rest -= s;
    }
    if (rest != 0) return bad(fmt::format("sizes {} do not sum to {}", fmt::join(*sizes, ", "), n), "split");
    return *sizes;
  }
  const auto count = static_cast<int64_t>(parts);
  const int64_t each = ceil_div(n, count);
  Ints made(parts, each);
  made.back() = n - each * (count - 1);
  if (made.back() < 0) return bad(fmt::format("extent {} cannot be cut into {} parts", n, count), "num_outputs");
  return made;
}

Result<PadPlan> pad(const Shape& input, const Ints& pads, const std::optional<Ints>& axes) {
  OPENRKNN_TRY(const auto padded, axes_or_all(axes, input.rank()));
  if (pads.size() != 2 * padded.size()) {
    return bad(fmt::format("{} values for {} axes", pads.size(), padded.size()), "pads");
  }
  PadPlan plan;
  Ints dims = input.to_vector();
  for (size_t k = 0; k < padded.size(); ++k) {
    const auto axis = static_cast<size_t>(padded[k]);
    plan.before[axis] = pads[k];
    plan.after[axis] = pads[k + padded.size()];
    const int64_t removed = std::max<int64_t>(-std::max(plan.before[axis], -dims[axis] - 1), 0) +
                            std::max<int64_t>(-std::max(plan.after[axis], -dims[axis] - 1), 0);
    if (removed > dims[axis]) return bad(fmt::format("more is removed from axis {} than it has", axis), "pads");
    const auto front = checked_add(dims[axis], plan.before[axis]);
    const auto total = front ? checked_add(*front, plan.after[axis]) : std::nullopt;
    if (!total) return bad("the extents overflow", "pads");
    dims[axis] = *total;
  }
  OPENRKNN_TRY(plan.shape, Shape::make(dims));
  return plan;
}

Result<PadMode> pad_mode(std::string_view name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return bad(fmt::format("mode '{}' is none of constant, reflect, edge, wrap", name), "mode");
}

int64_t pad_source(PadMode mode, int64_t i, int64_t before, int64_t n) {
  const int64_t p = i - before;
  if (p >= 0 && p < n) return p;
  if (mode == PadMode::kWrap) return (p % n + n) % n;
  if (mode == PadMode::kReflect && n > 1) {
    const int64_t period = 2 * (n - 1);
    const int64_t q = (p % period + period) % period;
    return q < n ? q : period - q;
  }
  return std::clamp<int64_t>(p, 0, n - 1);
}

Result<std::vector<int>> permutation(int rank, const Ints& perm) {
  if (perm.empty()) {
    std::vector<int> axes = all_axes(rank);
    std::reverse(axes.begin(), axes.end());
    return axes;
  }
  if (static_cast<int>(perm.size()) != rank) return bad(fmt::format("{} axes for rank {}", perm.size(), rank), "perm");
  return distinct_axes(perm, rank);
}

Shape permuted(const Shape& input, const std::vector<int>& perm) {
  Shape result = input;
  for (size_t i = 0; i < perm.size(); ++i) result.set(static_cast<int>(i), input[perm[i]]);
  return result;
}

Result<Shape> tile(const Shape& input, const Ints& repeats) {
  if (static_cast<int>(repeats.size()) != input.rank()) {
    return bad(fmt::format("{} values for rank {}", repeats.size(), input.rank()), "repeats");
  }
  Ints dims;
  for (int i = 0; i < input.rank(); ++i) {
    const int64_t r = repeats[static_cast<size_t>(i)];
    const auto product = r < 0 ? std::nullopt : checked_mul(input[i], r);
    if (!product) return bad(fmt::format("{} for extent {}", r, input[i]), "repeats");
    dims.push_back(*product);
  }
  return Shape::make(dims);
}

Result<Shape> expand(const Shape& input, const Ints& target) {
  OPENRKNN_TRY(const Shape wanted, Shape::make(target));
  return broadcast(input, wanted);
}

Result<Shape> gather(const Shape& data, const Shape& indices, int axis) {
  Ints dims;
  for (int i = 0; i < axis; ++i) dims.push_back(data[i]);
  for (const int64_t d : indices.dims()) dims.push_back(d);
  for (int i = axis + 1; i < data.rank(); ++i) dims.push_back(data[i]);
  return Shape::make(dims);
}

Result<Shape> gather_nd(const Shape& data, const Shape& indices, int64_t batch_dims) {
  const int q = indices.rank();
  if (q < 1 || data.rank() < 1) return bad("data and indices need rank 1 or more", "indices");
  if (batch_dims < 0 || batch_dims >= std::min(q, data.rank())) {
    return bad(fmt::format("batch_dims {} for ranks {} and {}", batch_dims, data.rank(), q), "batch_dims");
  }
  const auto batch = static_cast<int>(batch_dims);
  for (int i = 0; i < batch; ++i) {
    if (data[i] != indices[i]) return bad(fmt::format("batch extents {} and {} differ", data[i], indices[i]));
  }
  const int64_t tuple = indices[q - 1];
  if (tuple < 1 || tuple > data.rank() - batch) {
    return bad(fmt::format("tuples of {} indices into rank {}", tuple, data.rank() - batch), "indices");
  }
  Ints dims;
  for (int i = 0; i < q - 1; ++i) dims.push_back(indices[i]);
  for (int i = batch + static_cast<int>(tuple); i < data.rank(); ++i) dims.push_back(data[i]);
  return Shape::make(dims);
}

Status check_scatter_nd(const Shape& data, const Shape& indices, const Shape& updates) {
  OPENRKNN_TRY(const Shape wanted, gather_nd(data, indices, 0));
  if (!(wanted == updates)) {
    return bad(fmt::format("shape {}, {} expected", updates.to_string(), wanted.to_string()), "updates");
  }
  return {};
}

Status check_elementwise_indices(const Shape& data, const Shape& indices, int axis) {
  if (indices.rank() != data.rank())
    return bad(fmt::format("rank {}, data has {}", indices.rank(), data.rank()), "indices");
  for (int i = 0; i < data.rank(); ++i) {
    if (i != axis && indices[i] > data[i]) {
      return bad(fmt::format("{} is larger than data {}", indices.to_string(), data.to_string()), "indices");
    }
  }
  return {};
}

Status check_cache_update(const Shape& cache, const Shape& update, int axis) {
  if (axis == 0) return bad("the first axis is that of the samples", "axis");
  bool fits = update.rank() == cache.rank();
  for (int i = 0; fits && i < cache.rank(); ++i) fits = i == axis ? update[i] <= cache[i] : update[i] == cache[i];
  if (!fits) return bad(fmt::format("{} for a cache {}", update.to_string(), cache.to_string()), "update");
  return {};
}

Result<Shape> depth_to_space(const Shape& input, int64_t block) {
  if (input.rank() != 4) return bad(fmt::format("rank {}, 4 expected", input.rank()), "input");
  if (block < 1 || block > 65535 || input[1] % (block * block) != 0) {
    return bad(fmt::format("{} channels cannot be spread over blocks of {}", input[1], block), "blocksize");
  }
  return Shape::make(Ints{input[0], input[1] / (block * block), input[2] * block, input[3] * block});
}

Result<Shape> space_to_depth(const Shape& input, int64_t block) {
  if (input.rank() != 4) return bad(fmt::format("rank {}, 4 expected", input.rank()), "input");
  if (block < 1 || block > 65535 || input[2] % block != 0 || input[3] % block != 0) {
    return bad(fmt::format("{} cannot be cut into blocks of {}", input.to_string(), block), "blocksize");
  }
  return Shape::make(Ints{input[0], input[1] * block * block, input[2] / block, input[3] / block});
}

Result<Shape> reshape(const Shape& input, const Ints& target, bool allow_zero) {
  Ints dims = target;
  int open = -1;
  int64_t known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (open >= 0) return bad("more than one -1", "shape");
      open = static_cast<int>(i);
      continue;
    }
    if (dims[i] == 0 && !allow_zero) {
      if (static_cast<int>(i) >= input.rank()) return bad(fmt::format("0 at {} has no extent to copy", i), "shape");
      dims[i] = input[static_cast<int>(i)];
    }
    const auto product = dims[i] < 0 ? std::nullopt : checked_mul(known, dims[i]);
    if (!product) return bad(fmt::format("[{}] is unusable", fmt::join(target, ", ")), "shape");
    known = *product;
  }
  if (open >= 0) {
    if (known == 0 || input.elements() % known != 0) {
      return bad(fmt::format("{} elements do not fill [{}]", input.elements(), fmt::join(target, ", ")), "shape");
    }
    dims[static_cast<size_t>(open)] = input.elements() / known;
  } else if (known != input.elements()) {
    return bad(fmt::format("{} has {} elements, [{}] has {}", input.to_string(), input.elements(),
                           fmt::join(target, ", "), known),
               "shape");
  }
  return Shape::make(dims);
}

Result<Shape> flatten(const Shape& input, int64_t axis) {
  if (axis < -input.rank() || axis > input.rank()) {
    return bad(fmt::format("axis {} for rank {}", axis, input.rank()), "axis");
  }
  const auto at = static_cast<int>(axis < 0 ? axis + input.rank() : axis);
  return Shape::make(Ints{input.elements(0, at), input.elements(at, input.rank())});
}

Result<Shape> squeeze(const Shape& input, const std::optional<Ints>& axes) {
  std::bitset<Shape::kMaxRank> gone;
  if (axes) {
    OPENRKNN_TRY(const auto named, distinct_axes(*axes, input.rank()));
    for (const int a : named) {
      if (input[a] != 1) return bad(fmt::format("axis {} of {} is not 1", a, input.to_string()), "axes");
      gone.set(static_cast<size_t>(a));
    }
  }
  Ints dims;
  for (int i = 0; i < input.rank(); ++i) {
    const bool remove = axes ? gone[static_cast<size_t>(i)] : input[i] == 1;
    if (!remove) dims.push_back(input[i]);
  }
  return Shape::make(dims);
}

Result<Shape> unsqueeze(const Shape& input, const Ints& axes) {
  const int rank = input.rank() + static_cast<int>(axes.size());
  if (axes.size() > Shape::kMaxRank || rank > Shape::kMaxRank) {
    return bad(fmt::format("rank {} with {} more axes", input.rank(), axes.size()), "axes");
  }
  OPENRKNN_TRY(const auto named, distinct_axes(axes, rank));
  Ints dims(static_cast<size_t>(rank), -1);
  for (const int a : named) dims[static_cast<size_t>(a)] = 1;
  int from = 0;
  for (int64_t& d : dims) {
    if (d < 0) d = input[from++];
  }
  return Shape::make(dims);
}

}  // namespace openrknn::geometry
