// Attention: two matrix products and a softmax between them, in float32; exponentials and their sums are in double.
// RotaryEmbedding, which turns pairs of elements of queries and keys by their position.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/attention_plan.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/gemm.hpp"
#include "kernels/math.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// An array [batch, heads, length, size], wherever its axes lie.
struct HeadArray {
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t size;
  std::array<int64_t, 4> steps;
};

// As it lies in an operand: heads before positions, or (flat) positions before heads.
HeadArray lying(int64_t batch, int64_t heads, int64_t length, int64_t size, bool flat) {
  const int64_t sample = heads * length * size;
  if (flat) return {batch, heads, length, size, {sample, size, heads * size, 1}};
  return {batch, heads, length, size, {sample, length * size, size, 1}};
}

// Copies an array to where `steps` say.
void copy_heads(const float* from, const HeadArray& a, float* to, const std::array<int64_t, 4>& steps) {
  if (a.batch * a.heads * a.length * a.size == 0) return;
  copy_strided(from, to,
               {{a.batch, a.steps[0], steps[0]},
                {a.heads, a.steps[1], steps[1]},
                {a.length, a.steps[2], steps[2]},
                {a.size, a.steps[3], steps[3]}},
               sizeof(float));
}

// Past and new positions one after another: [batch, heads, total, size].
Result<Tensor> joined(const AttentionPlan& plan, const Shape& shape, const float* past, const float* now) {
  OPENRKNN_TRY(Tensor made, Tensor::make(DType::kFloat32, shape));
  auto* all = static_cast<float*>(made.mutable_data());
  const int64_t size = shape[3];
  const auto target = lying(plan.batch, plan.kv_heads, plan.total, size, false).steps;
  if (past != nullptr) copy_heads(past, lying(plan.batch, plan.kv_heads, plan.past, size, false), all, target);
  copy_heads(now, lying(plan.batch, plan.kv_heads, plan.kv_length, size, plan.flat), all + plan.past * size, target);
  return made;
}

// What is added to the scores of one row, minus infinity where they do not count.
class Bias {
 public:
  Bias(const KernelArgs& args, const AttentionPlan& plan) : plan_(plan) {
    causal_ = args.attributes.int_or("is_causal", 0) != 0;
    if (args.has_input(6)) valid_ = to_ints(args.inputs[6]);
    if (!args.has_input(3)) return;
    const TensorView& mask = args.inputs[3];
    width_ = mask.shape.dim(-1);
    int64_t step = width_;
    for (int axis = 2; axis >= 0; --axis) {
      const int own = axis - (4 - mask.shape.rank());
      const int64_t extent = own >= 0 ? mask.shape[own] : 1;
      steps_[static_cast<size_t>(axis)] = extent == 1 ? 0 : step;
      step *= extent;
    }
    masked_ = true;
    const bool flags = mask.dtype == DType::kBool;
    values_.resize(static_cast<size_t>(mask.elements()));
    const Tensor floats = cast(mask, DType::kFloat32);
    const auto given = floats.as<float>();
    for (size_t i = 0; i < values_.size(); ++i)
      values_[i] = flags ? (given[i] != 0.0F ? 0.0F : kMinusInfinity) : given[i];
  }

  bool any() const { return masked_ || causal_ || !valid_.empty(); }

  void add(int64_t row, float* scores) const {
    const int64_t i = row % plan_.q_length;
    const int64_t head = row / plan_.q_length % plan_.q_heads;
    const int64_t sample = row / (plan_.q_length * plan_.q_heads);
    if (masked_) {
      const float* values = values_.data() + sample * steps_[0] + head * steps_[1] + i * steps_[2];
      for (int64_t j = 0; j < width_; ++j) scores[j] += values[j];
      std::fill(scores + width_, scores + plan_.total, kMinusInfinity);
    }
    int64_t end = plan_.total;
    if (causal_) end = std::min(end, plan_.past + i + 1);
    if (!valid_.empty()) end = std::clamp<int64_t>(valid_[static_cast<size_t>(sample)], 0, end);
    std::fill(scores + end, scores + plan_.total, kMinusInfinity);
  }

 private:
  const AttentionPlan& plan_;
  bool causal_ = false;
  bool masked_ = false;
  std::vector<int64_t> valid_;
  std::vector<float> values_;
  std::array<int64_t, 3> steps_{};
  int64_t width_ = 0;
};

// A row without any position that counts has no probabilities: zeros.
void softmax_row(float* x, int64_t n) {
  thread_local std::vector<double> e;
  e.resize(static_cast<size_t>(n));
  const float most = n > 0 ? *std::max_element(x, x + n) : 0.0F;
  if (most == kMinusInfinity) {
    std::fill_n(x, n, 0.0F);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    e[static_cast<size_t>(i)] = x[i] == kMinusInfinity ? 0.0 : math::exp(static_cast<double>(x[i]) - most);
  const double sum = lane_sum(n, [](int64_t i) { return e[static_cast<size_t>(i)]; });
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(e[static_cast<size_t>(i)] / sum);
}

template <typename F>
void for_rows(const AttentionPlan& plan, Tensor& tensor, const F& body) {
  auto* scores = static_cast<float*>(tensor.mutable_data());
  const int64_t rows = plan.batch * plan.q_heads * plan.q_length;
  parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, plan.total)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r, scores + r * plan.total);
  });
}

// Scaled products of every query with every key.
Result<Tensor> raw_scores(const KernelArgs& args, const AttentionPlan& plan, const float* q, const float* keys) {
  std::vector<float> queries(static_cast<size_t>(plan.batch * plan.q_heads * plan.q_length * plan.size));
  copy_heads(q, lying(plan.batch, plan.q_heads, plan.q_length, plan.size, plan.flat), queries.data(),
             lying(plan.batch, plan.q_heads, plan.q_length, plan.size, false).steps);
  const double by_size = 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(plan.size, 1)));
  const auto scale = args.attributes.float_or("scale", static_cast<float>(by_size));
  for (float& v : queries) v *= scale;
  // Keys with positions last: the right matrix of the product.
  std::vector<float> turned(static_cast<size_t>(plan.present_key.elements()));
  const int64_t head = plan.total * plan.size;
  copy_heads(keys, lying(plan.batch, plan.kv_heads, plan.total, plan.size, false), turned.data(),
             {plan.kv_heads * head, head, 1, plan.total});
  OPENRKNN_TRY(Tensor scores, Tensor::make(DType::kFloat32, plan.scores));
  auto* to = static_cast<float*>(scores.mutable_data());
  const int64_t shared = plan.q_heads / plan.kv_heads;
  gemm(plan.batch * plan.q_heads, plan.q_length, plan.total, plan.size, [&](int64_t p) {
    GemmProblem problem;
    problem.a = queries.data() + p * plan.q_length * plan.size;
    problem.lda = plan.size;
    problem.b_rows = turned.data() + p / shared * head;
    problem.ldb = plan.total;
    problem.c = to + p * plan.q_length * plan.total;
    problem.ldc = plan.total;
    return problem;
  });
  return scores;
}

// Means of the values, weighted by the probabilities.
void weigh_values(const AttentionPlan& plan, const Tensor& weights, const Tensor& values, float* to) {
  const HeadArray out = lying(plan.batch, plan.q_heads, plan.q_length, plan.v_size, plan.flat);
  const int64_t shared = plan.q_heads / plan.kv_heads;
  const auto* left = static_cast<const float*>(weights.data());
  const auto* right = static_cast<const float*>(values.data());
  gemm(plan.batch * plan.q_heads, plan.q_length, plan.v_size, plan.total, [&](int64_t p) {
    GemmProblem problem;
    problem.a = left + p * plan.q_length * plan.total;
    problem.lda = plan.total;
    problem.b_rows = right + p / shared * plan.total * plan.v_size;
    problem.ldb = plan.v_size;
    problem.c = to + p / plan.q_heads * out.steps[0] + p % plan.q_heads * out.steps[1];
    problem.ldc = out.steps[2];
    return problem;
  });
}

Status write_floats(const KernelArgs& args, size_t i, DType dtype, const Tensor& values) {
  if (!args.has_output(i)) return {};
  OPENRKNN_CHECK_OK(require_output(args, i, dtype, values.shape()));
  return compute_as<float>(args.outputs[i], [&](float, float* to) -> Status {
    std::copy_n(static_cast<const float*>(values.data()), values.elements(), to);
    return {};
  });
}

Result<AttentionPlan> read_plan(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1, 4}));
  OPENRKNN_CHECK_OK(require_reals(args, {2, 5}));
  const auto shape_of = [&](size_t i) { return args.has_input(i) ? &args.inputs[i].shape : nullptr; };
  OPENRKNN_TRY(const AttentionPlan plan,
               attention_plan(args.attributes, {shape_of(0), shape_of(1), shape_of(2), shape_of(3), shape_of(4),
                                                shape_of(5), shape_of(6)}));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, plan.output));
  if (args.has_input(3)) {
    const DType mask = args.inputs[3].dtype;
    if (mask != DType::kBool && real_type(mask) == DType::kUndefined)
      return kernel_error(fmt::format("the mask is {}, bool or a float type expected", dtype_name(mask)));
  }
  return plan;
}

Status attention(const KernelArgs& args) {
  OPENRKNN_TRY(const AttentionPlan plan, read_plan(args));
  std::vector<Promoted> floats;
  for (const size_t i : {0, 1, 2, 4, 5}) {
    floats.emplace_back(args.has_input(i) ? args.inputs[i] : TensorView{},
                        args.has_input(i) ? DType::kFloat32 : DType::kUndefined);
  }
  const bool has_past = args.has_input(4);
  OPENRKNN_TRY(const Tensor keys,
               joined(plan, plan.present_key, has_past ? floats[3].data<float>() : nullptr, floats[1].data<float>()));
  OPENRKNN_TRY(const Tensor values,
               joined(plan, plan.present_value, has_past ? floats[4].data<float>() : nullptr, floats[2].data<float>()));
  OPENRKNN_CHECK_OK(write_floats(args, 1, args.inputs[1].dtype, keys));
  OPENRKNN_CHECK_OK(write_floats(args, 2, args.inputs[2].dtype, values));
  OPENRKNN_TRY(Tensor scores, raw_scores(args, plan, floats[0].data<float>(), keys.as<float>().data()));
  const DType dtype = args.inputs[0].dtype;
  const int64_t wanted = args.attributes.int_or("qk_matmul_output_mode", 0);
  if (wanted == 0) OPENRKNN_CHECK_OK(write_floats(args, 3, dtype, scores));
  const float cap = args.attributes.float_or("softcap", 0.0F);
  if (cap > 0.0F) {
    for_rows(plan, scores, [&](int64_t, float* row) {
      for (int64_t j = 0; j < plan.total; ++j) row[j] = cap * math::tanh_f(row[j] / cap);
    });
  }
  if (wanted == 1) OPENRKNN_CHECK_OK(write_floats(args, 3, dtype, scores));
  const Bias bias(args, plan);
  if (bias.any()) for_rows(plan, scores, [&](int64_t r, float* row) { bias.add(r, row); });
  if (wanted == 2) OPENRKNN_CHECK_OK(write_floats(args, 3, dtype, scores));
  for_rows(plan, scores, [&](int64_t, float* row) { softmax_row(row, plan.total); });
  if (wanted == 3) OPENRKNN_CHECK_OK(write_floats(args, 3, dtype, scores));
  return compute_as<float>(args.outputs[0], [&](float, float* to) -> Status {
    weigh_values(plan, scores, values, to);
    return {};
  });
}

// The row of the caches for every position of every sample.
Result<std::vector<int64_t>> cache_rows(const KernelArgs& args, const RotaryPlan& plan) {
  std::vector<int64_t> rows(static_cast<size_t>(plan.batch * plan.length));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  if (!args.has_input(3)) return rows;
  rows = to_ints(args.inputs[3]);
  for (const int64_t row : rows) {
    if (row < 0 || row >= args.inputs[1].shape[0])
      return kernel_error(fmt::format("position {} of {} in the caches", row, args.inputs[1].shape[0]));
  }
  return rows;
}

Status rotary_embedding(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1, 2}));
  const TensorView& x = args.inputs[0];
  const Shape* positions = args.has_input(3) ? &args.inputs[3].shape : nullptr;
  OPENRKNN_TRY(const RotaryPlan plan,
               rotary_plan(args.attributes, x.shape, args.inputs[1].shape, args.inputs[2].shape, positions));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, x.shape));
  OPENRKNN_TRY(const auto rows, cache_rows(args, plan));
  if (x.elements() == 0) return {};
  const bool interleaved = args.attributes.int_or("interleaved", 0) != 0;
  const HeadArray array = lying(plan.batch, plan.heads, plan.length, plan.size, plan.flat);
  const int64_t half = plan.rotated / 2;
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    const Promoted cosines(args.inputs[1], dtype_of<T>());
    const Promoted sines(args.inputs[2], dtype_of<T>());
    std::copy_n(operand.data<T>(), x.elements(), to);
    for (int64_t i = 0; i < plan.batch * plan.heads * plan.length; ++i) {
      const int64_t at = i % plan.length;
      const int64_t sample = i / (plan.length * plan.heads);
      T* head = to + sample * array.steps[0] + i / plan.length % plan.heads * array.steps[1] + at * array.steps[2];
      const int64_t row = rows[static_cast<size_t>(sample * plan.length + at)] * half;
      for (int64_t k = 0; k < half; ++k) {
        T& a = head[interleaved ? 2 * k : k];
        T& b = head[interleaved ? 2 * k + 1 : half + k];
        const auto c = static_cast<double>(cosines.data<T>()[row + k]);
        const auto s = static_cast<double>(sines.data<T>()[row + k]);
        const auto real = static_cast<double>(a);
        const auto imaginary = static_cast<double>(b);
        a = static_cast<T>(c * real - s * imaginary);
        b = static_cast<T>(s * real + c * imaginary);
      }
    }
    return {};
  });
}

}  // namespace

void register_attention(Registry& registry) {
  registry.add("Attention", attention);
  registry.add("RotaryEmbedding", rotary_embedding);
}

}  // namespace openrknn::cpu
