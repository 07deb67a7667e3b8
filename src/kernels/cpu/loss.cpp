// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, forward only. Sums are in double and rounded once.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/support_lines.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

// Scores [N, C, ...] with one class a position [N, ...].
struct Problem {
  Lines lines;  // the classes of every position
  std::vector<int64_t> targets;
  std::vector<double> weights;  // per class
  std::optional<int64_t> ignored;
  std::string reduction;
};

Result<Problem> read_problem(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 2}));
  const Shape& x = args.inputs[0].shape;
  if (x.rank() < 2) return kernel_error(fmt::format("scores {}", x.to_string()), ErrorCode::kShape);
  std::vector<int64_t> dims = x.to_vector();
  dims.erase(dims.begin() + 1);
  OPENRKNN_TRY(const Shape positions, Shape::make(dims));
  if (!(args.inputs[1].shape == positions) || !is_integer(args.inputs[1].dtype))
    return kernel_error(fmt::format("targets {} for {}", args.inputs[1].shape.to_string(), x.to_string()),
                        ErrorCode::kShape);
  Problem p;
  p.lines = {x[0], x[1], x.elements(2, x.rank())};
  p.targets = to_ints(args.inputs[1]);
  p.weights.assign(static_cast<size_t>(x[1]), 1.0);
  if (args.has_input(2)) {
    if (!(args.inputs[2].shape == Shape{x[1]})) return kernel_error("unfit weights", ErrorCode::kShape);
    p.weights = to_doubles(args.inputs[2]);
  }
  if (args.attributes.has("ignore_index")) p.ignored = args.attributes.int_or("ignore_index", 0);
  for (const int64_t t : p.targets) {
    if (t != p.ignored && (t < 0 || t >= x[1]))
      return kernel_error(fmt::format("target {} of {} classes", t, x[1]), ErrorCode::kInvalidArgument);
  }
  p.reduction = args.attributes.string_or("reduction", "mean");
  if (p.reduction != "none" && p.reduction != "sum" && p.reduction != "mean")
    return kernel_error(fmt::format("reduction '{}' is not none, sum or mean", p.reduction));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, p.reduction == "none" ? positions : Shape{}));
  return p;
}

// The loss of every position, or their sum or weighted mean, from logarithms of probabilities.
template <typename T>
void reduce_loss(const Problem& p, const T* logs, T* to) {
  double loss = 0.0;
  double weights = 0.0;
  for (size_t i = 0; i < p.targets.size(); ++i) {
    const int64_t target = p.targets[i];
    const bool counts = target != p.ignored;
    const auto position = static_cast<int64_t>(i);
    const double weight = counts ? p.weights[static_cast<size_t>(target)] : 0.0;
    const int64_t at = (position / p.lines.inner * p.lines.n + target) * p.lines.inner + position % p.lines.inner;
    const double own = counts ? -static_cast<double>(logs[at]) * weight : 0.0;
    if (p.reduction == "none") to[i] = static_cast<T>(own);
    loss += own;
    weights += weight;
  }
  if (p.reduction == "sum") to[0] = static_cast<T>(loss);
  if (p.reduction == "mean") to[0] = static_cast<T>(loss / weights);
}

Status negative_log_likelihood(const KernelArgs& args) {
  OPENRKNN_TRY(const Problem p, read_problem(args));
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(args.inputs[0], dtype_of<T>());
    reduce_loss(p, operand.data<T>(), to);
    return {};
  });
}

template <typename T>
void log_softmax(const T* x, T* y, int64_t n) {
  const T most = *std::max_element(x, x + n);
  const double sum =
      lane_sum(n, [x, most](int64_t i) { return math::exp(static_cast<double>(x[i]) - static_cast<double>(most)); });
  const double log_sum = math::log(sum);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<T>(static_cast<double>(x[i]) - static_cast<double>(most) - log_sum);
}

Status softmax_cross_entropy(const KernelArgs& args) {
  OPENRKNN_TRY(const Problem p, read_problem(args));
  const TensorView& x = args.inputs[0];
  if (args.has_output(1)) OPENRKNN_CHECK_OK(require_output(args, 1, x.dtype, x.shape));
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    std::vector<T> logs(static_cast<size_t>(x.elements()));
    if (!logs.empty()) {
      map_lines(p.lines, p.lines.n, operand.data<T>(), logs.data(),
                [&](const T* from, T* line) { log_softmax(from, line, p.lines.n); });
    }
    reduce_loss(p, logs.data(), to);
    if (!args.has_output(1)) return {};
    return compute_as<T>(args.outputs[1], [&](T, T* all) -> Status {
      std::copy(logs.begin(), logs.end(), all);
      return {};
    });
  });
}

}  // namespace

void register_loss(Registry& registry) {
  registry.add("NegativeLogLikelihoodLoss", negative_log_likelihood);
  registry.add("SoftmaxCrossEntropyLoss", softmax_cross_entropy);
}

}  // namespace openrknn::cpu
