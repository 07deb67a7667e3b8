#include "kernels/cpu/support_select.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/cpu/support_promote.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

// Corners, the smaller coordinate first.
struct Box {
  std::array<float, 2> low{};
  std::array<float, 2> high{};
};

Box read_box(const float* x, bool centre) {
  Box box;
  for (size_t k = 0; k < 2; ++k) {
    // Centre boxes are middle and extent, others two opposite corners.
    const float a = centre ? x[k] - x[k + 2] / 2.0F : x[k];
    const float b = centre ? x[k] + x[k + 2] / 2.0F : x[k + 2];
    box.low[k] = std::min(a, b);
    box.high[k] = std::max(a, b);
  }
  return box;
}

float area(const Box& box) { return (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]); }

// Intersection over union is above the threshold.
bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.high[0], b.high[0]) - std::max(a.low[0], b.low[0]);
  const float width = std::min(a.high[1], b.high[1]) - std::max(a.low[1], b.low[1]);
  if (!(height > 0.0F && width > 0.0F)) return false;
  const float shared = height * width;
  const float both = area(a) + area(b) - shared;
  return both > 0.0F && shared / both > threshold;
}

struct Limits {
  int64_t most = 0;
  float overlap = 0.0F;
  std::optional<float> score;
};

Result<Limits> read_limits(std::span<const TensorView> inputs) {
  Limits limits;
  for (size_t i = 2; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    if (inputs[i].elements() != 1) return kernel_error(fmt::format("operand {} is no scalar", i), ErrorCode::kShape);
    if (i == 2) limits.most = to_ints(inputs[i])[0];
    if (i == 3) limits.overlap = static_cast<float>(to_doubles(inputs[i])[0]);
    if (i == 4) limits.score = static_cast<float>(to_doubles(inputs[i])[0]);
  }
  return limits;
}

// The boxes of one class, best first; of equal scores the first.
std::vector<int64_t> candidates(const float* scores, int64_t n, const std::optional<float>& least) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) {
    if (!least || scores[i] > *least) order.push_back(i);
  }
  // A score that is no number comes last, so that the order is total.
  const auto rank = [scores](int64_t i) {
    return scores[i] == scores[i] ? scores[i] : -std::numeric_limits<float>::infinity();
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
  return order;
}

}  // namespace

Result<std::vector<int64_t>> select_boxes(const Attributes& attributes, std::span<const TensorView> inputs) {
  const Shape& boxes = inputs[0].shape;
  const Shape& scores = inputs[1].shape;
  if (boxes.rank() != 3 || boxes[2] != 4 || scores.rank() != 3 || scores[0] != boxes[0] || scores[2] != boxes[1] ||
      inputs[0].dtype != DType::kFloat32 || inputs[1].dtype != DType::kFloat32) {
    return kernel_error(fmt::format("boxes {} with scores {}", boxes.to_string(), scores.to_string()),
                        ErrorCode::kShape);
  }
  OPENRKNN_TRY(const Limits limits, read_limits(inputs));
  const bool centre = attributes.int_or("center_point_box", 0) != 0;
  const int64_t n = boxes[1];
  std::vector<int64_t> selected;
  for (int64_t row = 0; row < scores[0] * scores[1]; ++row) {
    const int64_t sample = row / scores[1];
    const float* corners = inputs[0].as<float>().data() + sample * n * 4;
    std::vector<Box> kept;
    for (const int64_t i : candidates(inputs[1].as<float>().data() + row * n, n, limits.score)) {
      if (static_cast<int64_t>(kept.size()) >= limits.most) break;
      const Box box = read_box(corners + i * 4, centre);
      const bool hidden =
          std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(box, other, limits.overlap); });
      if (hidden) continue;
      kept.push_back(box);
      selected.insert(selected.end(), {sample, row % scores[1], i});
    }
  }
  return selected;
}

namespace {

// -1, 0 or 1; NaN is the largest value and equal to itself.
template <typename T>
int compare(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  return static_cast<int>(a != a) - static_cast<int>(b != b);
}

template <typename T>
int compare_rows(const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (const int order = compare(a[i], b[i]); order != 0) return order;
  }
  return 0;
}

template <typename T>
void find_groups(const T* rows, int64_t count, int64_t n, bool sorted, UniqueGroups& groups) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_rows(rows + a * n, rows + b * n, n) < 0; });
  groups.group.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare_rows(rows + order[i - 1] * n, rows + order[i] * n, n) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.group[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  if (sorted) return;
  std::vector<size_t> by_first(groups.first.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  std::sort(by_first.begin(), by_first.end(), [&](size_t a, size_t b) { return groups.first[a] < groups.first[b]; });
  UniqueGroups renumbered = groups;
  std::vector<int64_t> number(by_first.size());
  for (size_t i = 0; i < by_first.size(); ++i) {
    renumbered.first[i] = groups.first[by_first[i]];
    renumbered.counts[i] = groups.counts[by_first[i]];
    number[by_first[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& g : renumbered.group) g = number[static_cast<size_t>(g)];
  groups = std::move(renumbered);
}

Result<std::optional<int>> optional_axis(const Attributes& attributes, int rank) {
  if (!attributes.has("axis")) return std::optional<int>();
  OPENRKNN_TRY(const int axis, normalize_axis(attributes.int_or("axis", 0), rank));
  return std::optional<int>(axis);
}

}  // namespace

Result<UniqueGroups> unique_groups(const Attributes& attributes, const TensorView& x) {
  UniqueGroups groups;
  OPENRKNN_TRY(groups.axis, optional_axis(attributes, x.shape.rank()));
  TensorView view = x;
  if (view.dtype == DType::kBool) view.dtype = DType::kUInt8;  // one byte, 0 or 1
  const bool sorted = attributes.int_or("sorted", 1) != 0;
  const Promoted operand(view, compute_type(view.dtype) == DType::kUndefined ? view.dtype : compute_type(view.dtype));
  const int64_t count = groups.axis ? x.shape[*groups.axis] : x.elements();
  const int64_t n = count > 0 ? x.elements() / count : 0;
  OPENRKNN_CHECK_OK(with_compute_type(compute_type(view.dtype), [&](auto tag) -> Status {
    using T = decltype(tag);
    if (!groups.axis || *groups.axis == 0) {
      find_groups(operand.data<T>(), count, n, sorted, groups);
      return {};
    }
    std::vector<T> rows(static_cast<size_t>(x.elements()));
    const int64_t inner = x.shape.elements(*groups.axis + 1, x.shape.rank());
    const int64_t outer = x.shape.elements(0, *groups.axis);
    if (!rows.empty()) {
      copy_strided(operand.data<T>(), rows.data(), {{count, inner, n}, {outer, inner * count, inner}, {inner, 1, 1}},
                   sizeof(T));
    }
    find_groups(rows.data(), count, n, sorted, groups);
    return {};
  }));
  return groups;
}

Result<KeptPositions> kept_positions(const Attributes& attributes, const Shape& x, const TensorView& condition) {
  KeptPositions kept;
  OPENRKNN_TRY(kept.axis, optional_axis(attributes, x.rank()));
  const int64_t extent = kept.axis ? x[*kept.axis] : x.elements();
  if (condition.dtype != DType::kBool || condition.shape.rank() != 1 || condition.elements() > extent) {
    return kernel_error(fmt::format("a condition {} {} for {} positions", dtype_name(condition.dtype),
                                    condition.shape.to_string(), extent),
                        ErrorCode::kShape);
  }
  const auto flags = to_ints(condition);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) kept.positions.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

Shape selected_shape(const Shape& x, const std::optional<int>& axis, int64_t count) {
  if (!axis) return Shape{count};
  Shape shape = x;
  shape.set(*axis, count);
  return shape;
}

}  // namespace openrknn::cpu
