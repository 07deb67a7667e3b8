// Reductions in any set of axes. Floats are summed in double in a fixed order and rounded once; integers are exact
// (sums and products wrap as the type does).
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_lines.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/math.hpp"
#include "kernels/reduce_plan.hpp"

namespace openrknn::cpu {
namespace {

enum class Kind { kMean, kSum, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

double value(float x) { return static_cast<double>(x); }

float extreme(const float* x, int64_t n, bool most) {
  float best = most ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) return x[i];  // NaN wins
    best = (most ? x[i] > best : x[i] < best) ? x[i] : best;
  }
  return best;
}

double log_sum_exp(const float* x, int64_t n) {
  const double most = extreme(x, n, true);
  if (!(most - most == 0.0)) return most;  // infinite or NaN, or nothing to add
  return most + math::log(lane_sum(n, [=](int64_t i) { return math::exp(value(x[i]) - most); }));
}

template <Kind K>
float reduce_floats(const float* x, int64_t n) {
  const auto sum = [=] { return gemm_kernels().sum(n, x); };
  const auto squares = [=] { return lane_sum(n, [x](int64_t i) { return value(x[i]) * value(x[i]); }); };
  switch (K) {
    case Kind::kMean:
      return static_cast<float>(sum() / static_cast<double>(n));
    case Kind::kSum:
      return static_cast<float>(sum());
    case Kind::kMax:
      return extreme(x, n, true);
    case Kind::kMin:
      return extreme(x, n, false);
    case Kind::kProd: {
      double product = 1.0;
      for (int64_t i = 0; i < n; ++i) product *= value(x[i]);
      return static_cast<float>(product);
    }
    case Kind::kL1:
      return static_cast<float>(lane_sum(n, [x](int64_t i) { return std::fabs(value(x[i])); }));
    case Kind::kL2:
      return static_cast<float>(std::sqrt(squares()));
    case Kind::kSumSquare:
      return static_cast<float>(squares());
    case Kind::kLogSum:
      return static_cast<float>(math::log(sum()));
    case Kind::kLogSumExp:
      return static_cast<float>(log_sum_exp(x, n));
  }
  return 0.0F;
}

template <Kind K, typename T>
T reduce_integers(const T* x, int64_t n) {
  T best = n > 0 ? x[0] : K == Kind::kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  uint64_t sum = 0;
  uint64_t product = 1;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<uint64_t>(x[i]);
    sum += K == Kind::kSumSquare ? v * v : K == Kind::kL1 && x[i] < 0 ? uint64_t{0} - v : v;
    product *= v;
    best = (K == Kind::kMax ? x[i] > best : x[i] < best) ? x[i] : best;
  }
  if (K == Kind::kMax || K == Kind::kMin) return best;
  if (K == Kind::kProd) return static_cast<T>(product);
  if (K == Kind::kMean) return n > 0 ? static_cast<T>(static_cast<int64_t>(sum) / n) : T{0};
  return static_cast<T>(sum);
}

// The runs of axes that are reduced or kept, extents multiplied.
struct Run {
  int64_t extent;
  bool reduced;
};

std::vector<Run> merge_runs(const Shape& x, const ReducePlan& plan) {
  std::vector<Run> runs;
  for (int i = 0; i < x.rank(); ++i) {
    const bool reduced = plan.reduced[static_cast<size_t>(i)];
    if (x[i] == 1) continue;
    if (!runs.empty() && runs.back().reduced == reduced) {
      runs.back().extent *= x[i];
    } else {
      runs.push_back({x[i], reduced});
    }
  }
  return runs;
}

// Moves the reduced axes to the end, so that there are plain lines to reduce.
template <typename T>
std::vector<T> gather_lines(const std::vector<Run>& runs, const T* x, int64_t outputs, int64_t n) {
  std::vector<int64_t> kept_offsets(static_cast<size_t>(outputs), 0);
  std::vector<int64_t> reduced_offsets(static_cast<size_t>(n), 0);
  int64_t stride = 1;
  int64_t kept_block = 1;
  int64_t reduced_block = 1;
  for (size_t r = runs.size(); r-- > 0;) {
    std::vector<int64_t>& offsets = runs[r].reduced ? reduced_offsets : kept_offsets;
    int64_t& block = runs[r].reduced ? reduced_block : kept_block;
    for (size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] += static_cast<int64_t>(i) / block % runs[r].extent * stride;
    }
    block *= runs[r].extent;
    stride *= runs[r].extent;
  }
  std::vector<T> lines;
  lines.reserve(static_cast<size_t>(outputs * n));
  for (const int64_t kept : kept_offsets) {
    for (const int64_t reduced : reduced_offsets) lines.push_back(x[kept + reduced]);
  }
  return lines;
}

template <typename T, typename Body>
void reduce_runs(const std::vector<Run>& runs, const T* x, T* y, int64_t outputs, int64_t n, const Body& body) {
  const auto apply = [&](const T* line, T* to) { *to = body(line, n); };
  // [kept][reduced][kept] and its parts are lines already.
  const size_t first = !runs.empty() && !runs[0].reduced ? 1 : 0;
  const bool plain = runs.size() <= first + 2 && (runs.size() <= first || runs[first].reduced);
  if (plain) {
    Lines lines;
    lines.outer = first == 1 ? runs[0].extent : 1;
    lines.n = runs.size() > first ? runs[first].extent : 1;
    lines.inner = runs.size() > first + 1 ? runs[first + 1].extent : 1;
    map_lines(lines, 1, x, y, apply);
    return;
  }
  const std::vector<T> gathered = gather_lines(runs, x, outputs, n);
  map_lines(Lines{outputs, n, 1}, 1, gathered.data(), y, apply);
}

template <typename T, typename Body>
Status reduce_as(const TensorView& from, const MutableTensorView& to, const ReducePlan& plan, const Body& body) {
  const Shape& shape = from.shape;
  const T* x = from.as<T>().data();
  T* y = to.as<T>().data();
  const int64_t outputs = plan.output.elements();
  if (outputs == 0) return {};
  if (shape.elements() == 0) {  // sums over nothing
    for (int64_t i = 0; i < outputs; ++i) y[i] = body(x, 0);
    return {};
  }
  reduce_runs(merge_runs(shape, plan), x, y, outputs, shape.elements() / outputs, body);
  return {};
}

template <Kind K>
Status reduce(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(ReducePlan plan, reduce_plan(args.attributes, x.shape, ints_operand(args, 1)));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  if (plan.identity) {
    if (dtype_size(x.dtype) == 0) return kernel_error(fmt::format("type {}", dtype_name(x.dtype)));
    if (x.bytes() > 0) std::memcpy(args.outputs[0].data, x.data, x.bytes());
    return {};
  }
  constexpr bool kExtreme = K == Kind::kMax || K == Kind::kMin;
  constexpr bool kReal = K == Kind::kL2 || K == Kind::kLogSum || K == Kind::kLogSumExp;
  const MutableTensorView& y = args.outputs[0];
  if (x.dtype == DType::kBool && kExtreme) return reduce_as<uint8_t>(x, y, plan, reduce_integers<K, uint8_t>);
  const DType own = compute_type(x.dtype);
  if (own == DType::kUndefined) return kernel_error(fmt::format("reduction of {}", dtype_name(x.dtype)));
  const DType compute = kReal || is_float(own) ? DType::kFloat32 : own;
  const Promoted wide(x, compute);
  return compute_into(y, compute, [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float>) {
      return reduce_as<T>(wide.view(), {compute, y.shape, to}, plan, reduce_floats<K>);
    } else if constexpr (std::is_integral_v<T> && !kReal) {
      // Nothing to take the largest or smallest of: the limit of the operand's type, not of the one in use.
      if (kExtreme && x.elements() == 0 && x.dtype != compute) return kernel_error("an extreme of nothing");
      return reduce_as<T>(wide.view(), {compute, y.shape, to}, plan, reduce_integers<K, T>);
    } else {
      return kernel_error(fmt::format("reduction of {}", dtype_name(x.dtype)));
    }
  });
}

template <typename T>
void find_extremes(const Lines& lines, const T* x, int64_t* y, bool most, bool last) {
  map_lines(lines, 1, x, y, [&](const T* line, int64_t* to) {
    int64_t at = 0;
    for (int64_t i = 1; i < lines.n; ++i) {
      const bool better = most ? line[i] > line[at] : line[i] < line[at];
      if (better || (last && line[i] == line[at])) at = i;
    }
    *to = at;
  });
}

Status arg_reduce(const KernelArgs& args, bool most) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  int axis = 0;
  OPENRKNN_TRY(const Shape shape, arg_reduce_shape(args.attributes, x.shape, axis));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kInt64, shape));
  if (x.elements() == 0) return {};
  const bool last = args.attributes.int_or("select_last_index", 0) != 0;
  const Lines lines{x.shape.elements(0, axis), x.shape[axis], x.shape.elements(axis + 1, x.shape.rank())};
  int64_t* y = args.outputs[0].as<int64_t>().data();
  const Promoted wide(x, compute_type(x.dtype));
  return with_compute_type(wide.view().dtype, [&](auto tag) -> Status {
    find_extremes(lines, wide.data<decltype(tag)>(), y, most, last);
    return {};
  });
}

Status arg_max(const KernelArgs& args) { return arg_reduce(args, true); }
Status arg_min(const KernelArgs& args) { return arg_reduce(args, false); }

}  // namespace

void register_reduce(Registry& registry) {
  registry.add("ReduceMean", reduce<Kind::kMean>);
  registry.add("ReduceSum", reduce<Kind::kSum>);
  registry.add("ReduceMax", reduce<Kind::kMax>);
  registry.add("ReduceMin", reduce<Kind::kMin>);
  registry.add("ReduceProd", reduce<Kind::kProd>);
  registry.add("ReduceL1", reduce<Kind::kL1>);
  registry.add("ReduceL2", reduce<Kind::kL2>);
  registry.add("ReduceSumSquare", reduce<Kind::kSumSquare>);
  registry.add("ReduceLogSum", reduce<Kind::kLogSum>);
  registry.add("ReduceLogSumExp", reduce<Kind::kLogSumExp>);
  registry.add("ArgMax", arg_max);
  registry.add("ArgMin", arg_min);
}

}  // namespace openrknn::cpu
