// Normalisations without a mean of their own or over axes of choice: RMSNormalization, LpNormalization,
// MeanVarianceNormalization. Sums are in double and rounded once.
#include <cmath>
#include <vector>

#include "kernels/broadcast.hpp"
#include "kernels/cpu/support_lines.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

template <typename T>
double sum_of_squares(const T* x, int64_t n) {
  return lane_sum(n, [x](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

// x / sqrt(mean of squares + epsilon) over the axes from `axis` on, times a scale that broadcasts to them. The result
// has the scale's type.
Status rms_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  const TensorView& x = args.inputs[0];
  const TensorView& scale = args.inputs[1];
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  OPENRKNN_CHECK_OK(require_reals(args, {1}));
  OPENRKNN_CHECK_OK(require_output(args, 0, scale.dtype, x.shape));
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), x.shape.rank()));
  OPENRKNN_TRY(const Shape normalized, Shape::make(x.shape.dims().subspan(static_cast<size_t>(axis))));
  OPENRKNN_TRY(const Shape joint, broadcast(normalized, scale.shape));
  if (!(joint == normalized)) {
    return kernel_error(fmt::format("a scale {} for elements {}", scale.shape.to_string(), normalized.to_string()),
                        ErrorCode::kShape);
  }
  const double epsilon = args.attributes.float_or("epsilon", 1e-5F);
  const int64_t n = normalized.elements();
  if (x.elements() == 0) return {};
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    const Promoted factor(scale, dtype_of<T>());
    std::vector<T> factors(static_cast<size_t>(n));
    const T one{1};
    broadcast_binary(normalized, &one, Shape{}, factor.data<T>(), scale.shape, factors.data(),
                     [](T, T value) { return value; });
    map_lines(Lines{x.elements() / n, n, 1}, n, operand.data<T>(), to, [&](const T* line, T* result) {
      const double inverse = 1.0 / std::sqrt(sum_of_squares(line, n) / static_cast<double>(n) + epsilon);
      for (int64_t i = 0; i < n; ++i) {
        const double normal = static_cast<double>(line[i]) * inverse;
        result[i] = static_cast<T>(normal * static_cast<double>(factors[static_cast<size_t>(i)]));
      }
    });
    return {};
  });
}

// x / norm along one axis; a line of zeros stays zero.
Status lp_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, x.shape));
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), x.shape.rank()));
  const int64_t p = args.attributes.int_or("p", 2);
  if (p != 1 && p != 2) return kernel_error(fmt::format("p is {}, 1 or 2 expected", p));
  if (x.elements() == 0) return {};
  const Lines lines{x.shape.elements(0, axis), x.shape[axis], x.shape.elements(axis + 1, x.shape.rank())};
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    map_lines(lines, lines.n, operand.data<T>(), to, [&](const T* line, T* result) {
      const double norm =
          p == 2 ? std::sqrt(sum_of_squares(line, lines.n))
                 : lane_sum(lines.n, [line](int64_t i) { return std::fabs(static_cast<double>(line[i])); });
      for (int64_t i = 0; i < lines.n; ++i) {
        result[i] = norm == 0.0 ? T{0} : static_cast<T>(static_cast<double>(line[i]) / norm);
      }
    });
    return {};
  });
}

// Loops that copy a tensor with the chosen axes moved to its end; from and to exchanged, they copy it back.
std::vector<StridedLoop> chosen_last(const Shape& shape, const std::vector<bool>& chosen) {
  std::vector<int> order;
  for (const bool pass : {false, true}) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (chosen[static_cast<size_t>(i)] == pass) order.push_back(i);
    }
  }
  const auto strides = shape.strides();
  std::vector<StridedLoop> loops(order.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    loops[i] = {shape[order[i]], strides[static_cast<size_t>(order[i])], step};
    step *= shape[order[i]];
  }
  return loops;
}

template <typename T>
void standardize(T* x, int64_t n) {
  constexpr double kEpsilon = 1e-9;  // ONNX's, added to the deviation
  const double mean = lane_sum(n, [x](int64_t i) { return static_cast<double>(x[i]); }) / static_cast<double>(n);
  const double squares = lane_sum(n, [x, mean](int64_t i) {
    const double d = static_cast<double>(x[i]) - mean;
    return d * d;
  });
  const double inverse = 1.0 / (std::sqrt(squares / static_cast<double>(n)) + kEpsilon);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * inverse);
}

Status mean_variance_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, x.shape));
  std::vector<bool> chosen(static_cast<size_t>(x.shape.rank()), false);
  int64_t n = 1;
  for (const int64_t given : args.attributes.ints_or("axes", {0, 2, 3})) {
    OPENRKNN_TRY(const int axis, normalize_axis(given, x.shape.rank()));
    if (!chosen[static_cast<size_t>(axis)]) n *= x.shape[axis];
    chosen[static_cast<size_t>(axis)] = true;
  }
  if (x.elements() == 0) return {};
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    std::vector<T> lines(static_cast<size_t>(x.elements()));
    auto loops = chosen_last(x.shape, chosen);
    copy_strided(operand.data<T>(), lines.data(), loops, sizeof(T));
    parallel_for(x.elements() / n, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) standardize(lines.data() + i * n, n);
    });
    for (StridedLoop& loop : loops) std::swap(loop.from, loop.to);
    copy_strided(lines.data(), to, loops, sizeof(T));
    return {};
  });
}

}  // namespace

void register_norm_lines(Registry& registry) {
  registry.add("RMSNormalization", rms_normalization);
  registry.add("LpNormalization", lp_normalization);
  registry.add("MeanVarianceNormalization", mean_variance_normalization);
}

}  // namespace openrknn::cpu
