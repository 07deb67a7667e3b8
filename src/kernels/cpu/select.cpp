// TopK, NonZero, OneHot, Trilu, CumSum, CumProd.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

// One axis of a tensor as `outer` x `extent` x `inner`.
struct AxisView {
  int64_t outer;
  int64_t extent;
  int64_t inner;
};

AxisView axis_view(const Shape& shape, int axis) {
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

// Larger (or smaller) first; NaN counts as the largest; ties by position.
template <typename T>
bool before(T a, T b, bool largest) {
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if (a_nan || b_nan) return a_nan != b_nan && a_nan == largest;
  return largest ? a > b : a < b;
}

template <typename T>
void top_of_row(const T* from, int64_t n, int64_t step, int64_t k, bool largest, std::vector<int64_t>& order) {
  order.resize(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
    if (before(from[a * step], from[b * step], largest)) return true;
    if (before(from[b * step], from[a * step], largest)) return false;
    return a < b;
  });
}

Status top_k(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2, 0));
  const TensorView& in = args.inputs[0];
  if (args.inputs[1].elements() != 1) return kernel_error("K is no scalar", ErrorCode::kShape);
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), in.shape.rank()));
  const int64_t k = to_ints(args.inputs[1])[0];
  if (k < 0 || k > in.shape[axis])
    return kernel_error(fmt::format("K is {} for an axis of {}", k, in.shape[axis]), ErrorCode::kShape);
  Shape shape = in.shape;
  shape.set(axis, k);
  if (args.has_output(0)) OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  if (args.has_output(1)) OPENRKNN_CHECK_OK(require_output(args, 1, DType::kInt64, shape));
  const bool largest = args.attributes.int_or("largest", 1) != 0;
  const DType compute = compute_type(in.dtype);
  if (compute == DType::kUndefined) return kernel_error(fmt::format("TopK of {} values", dtype_name(in.dtype)));
  const Promoted operand(in, compute);
  const size_t size = dtype_size(in.dtype);
  const AxisView view = axis_view(in.shape, axis);
  return with_compute_type(compute, [&](auto tag) -> Status {
    using T = decltype(tag);
    parallel_for(view.outer * view.inner, 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order;
      for (int64_t r = begin; r < end; ++r) {
        const int64_t base = r / view.inner * view.extent * view.inner + r % view.inner;
        const int64_t target = r / view.inner * k * view.inner + r % view.inner;
        top_of_row(operand.data<T>() + base, view.extent, view.inner, k, largest, order);
        for (int64_t i = 0; i < k; ++i) {
          const auto to = static_cast<size_t>(target + i * view.inner);
          const int64_t from = base + order[static_cast<size_t>(i)] * view.inner;
          if (args.has_output(1)) args.outputs[1].as<int64_t>()[to] = order[static_cast<size_t>(i)];
          if (args.has_output(0)) {
            std::memcpy(static_cast<std::byte*>(args.outputs[0].data) + to * size,
                        static_cast<const std::byte*>(in.data) + static_cast<size_t>(from) * size, size);
          }
        }
      }
    });
    return {};
  });
}

Status non_zero(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& in = args.inputs[0];
  const auto values = to_doubles(in);
  const auto count =
      static_cast<int64_t>(std::count_if(values.begin(), values.end(), [](double v) { return v != 0.0; }));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kInt64, Shape{in.shape.rank(), count}));
  const auto out = args.outputs[0].as<int64_t>();
  size_t found = 0;
  for (size_t n = 0; n < values.size(); ++n) {
    if (values[n] == 0.0) continue;
    auto rest = static_cast<int64_t>(n);
    for (int i = in.shape.rank() - 1; i >= 0; --i) {
      out[static_cast<size_t>(i) * static_cast<size_t>(count) + found] = rest % in.shape[i];
      rest /= in.shape[i];
    }
    ++found;
  }
  return {};
}

Status one_hot(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_movable(args, 2));
  const TensorView& indices = args.inputs[0];
  const TensorView& off_on = args.inputs[2];
  if (args.inputs[1].elements() != 1 || off_on.elements() != 2)
    return kernel_error("unfit depth or values", ErrorCode::kShape);
  const int64_t depth = to_ints(args.inputs[1])[0];
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), indices.shape.rank() + 1));
  std::vector<int64_t> dims = indices.shape.to_vector();
  dims.insert(dims.begin() + axis, depth);
  OPENRKNN_TRY(const Shape shape, Shape::make(dims));
  OPENRKNN_CHECK_OK(require_output(args, 0, off_on.dtype, shape));
  const size_t size = dtype_size(off_on.dtype);
  fill_elements(args.outputs[0].data, shape.elements(), off_on.data, size);
  const auto at = to_ints(indices);
  const int64_t inner = shape.elements(axis + 1, shape.rank());
  for (size_t n = 0; n < at.size(); ++n) {
    if (at[n] < -depth || at[n] >= depth) continue;  // ONNX: all off
    const int64_t hot = at[n] < 0 ? at[n] + depth : at[n];
    const auto i = static_cast<int64_t>(n);
    const auto to = static_cast<size_t>((i / inner * depth + hot) * inner + i % inner);
    std::memcpy(static_cast<std::byte*>(args.outputs[0].data) + to * size,
                static_cast<const std::byte*>(off_on.data) + size, size);
  }
  return {};
}

Status trilu(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, in.shape));
  if (in.shape.rank() < 2) return kernel_error("a matrix is needed", ErrorCode::kShape);
  const auto shift = ints_operand(args, 1);
  if (shift && shift->size() != 1) return kernel_error("k is no scalar", ErrorCode::kShape);
  const int64_t rows = in.shape.dim(-2);
  const int64_t columns = in.shape.dim(-1);
  const int64_t k = std::clamp<int64_t>(shift ? (*shift)[0] : 0, -rows - 1, columns + 1);
  const bool upper = args.attributes.int_or("upper", 1) != 0;
  const auto size = static_cast<int64_t>(dtype_size(in.dtype));
  const auto* from = static_cast<const std::byte*>(in.data);
  auto* to = static_cast<std::byte*>(args.outputs[0].data);
  if (in.elements() == 0) return {};
  std::memset(to, 0, args.outputs[0].bytes());
  for (int64_t r = 0; r < in.elements() / columns; ++r) {
    const int64_t diagonal = std::clamp<int64_t>(r % rows + k + (upper ? 0 : 1), 0, columns);
    const int64_t first = upper ? diagonal : 0;
    const int64_t last = upper ? columns : diagonal;
    const int64_t offset = (r * columns + first) * size;
    std::memcpy(to + offset, from + offset, static_cast<size_t>((last - first) * size));
  }
  return {};
}

// Sums and products wrap as the type does.
template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}
template <typename T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}

// Running sums or products along an axis, in the order of the axis.
template <bool kProduct>
Status accumulate(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const TensorView& in = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, in.shape));
  if (args.inputs[1].elements() != 1) return kernel_error("the axis is no scalar", ErrorCode::kShape);
  OPENRKNN_TRY(const int axis, normalize_axis(to_ints(args.inputs[1])[0], in.shape.rank()));
  const bool exclusive = args.attributes.int_or("exclusive", 0) != 0;
  const bool reverse = args.attributes.int_or("reverse", 0) != 0;
  const DType compute = compute_type(in.dtype);
  if (compute == DType::kUndefined) return kernel_error(fmt::format("{} values", dtype_name(in.dtype)));
  const Promoted operand(in, compute);
  const AxisView view = axis_view(in.shape, axis);
  return compute_into(args.outputs[0], compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const T* from = operand.data<T>();
    for (int64_t r = 0; r < view.outer * view.inner; ++r) {
      const int64_t base = r / view.inner * view.extent * view.inner + r % view.inner;
      T running{kProduct ? 1 : 0};
      for (int64_t i = 0; i < view.extent; ++i) {
        const int64_t at = base + (reverse ? view.extent - 1 - i : i) * view.inner;
        if (exclusive) to[at] = running;
        running = kProduct ? times(running, from[at]) : plus(running, from[at]);
        if (!exclusive) to[at] = running;
      }
    }
    return {};
  });
}

}  // namespace

void register_select(Registry& registry) {
  registry.add("TopK", top_k);
  registry.add("NonZero", non_zero);
  registry.add("OneHot", one_hot);
  registry.add("Trilu", trilu);
  registry.add("CumSum", accumulate<false>);
  registry.add("CumProd", accumulate<true>);
}

}  // namespace openrknn::cpu
