// LinearAttention and CausalConvWithState: sequences that are worked through with a state of fixed size. States and
// sums are in double and rounded once.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/linear_attention_plan.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

// An optional operand as float; null when it is absent.
class OptionalFloats {
 public:
  OptionalFloats(const KernelArgs& args, size_t i)
      : present_(args.has_input(i)),
        values_(present_ ? args.inputs[i] : TensorView{}, present_ ? DType::kFloat32 : DType::kUndefined) {}
  const float* data() const { return present_ ? values_.data<float>() : nullptr; }

 private:
  bool present_;
  Promoted values_;
};

Status causal_conv(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1, 2, 3}));
  const auto shape_of = [&](size_t i) { return args.has_input(i) ? &args.inputs[i].shape : nullptr; };
  OPENRKNN_TRY(const CausalConvPlan plan, causal_conv_plan(*shape_of(0), *shape_of(1), shape_of(2), shape_of(3)));
  const DType dtype = args.inputs[0].dtype;
  OPENRKNN_CHECK_OK(require_output(args, 0, dtype, args.inputs[0].shape));
  if (args.has_output(1)) OPENRKNN_CHECK_OK(require_output(args, 1, dtype, plan.state));
  const std::string activation = args.attributes.string_or("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") return kernel_error(fmt::format("activation '{}'", activation));
  const OptionalFloats x(args, 0), weights(args, 1), bias(args, 2), past(args, 3);
  std::vector<float> state(static_cast<size_t>(plan.state.elements()));
  OPENRKNN_CHECK_OK(compute_as<float>(args.outputs[0], [&](float, float* to) -> Status {
    parallel_for(plan.batch * plan.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // What came before, then the signal.
        const int64_t carried = plan.taps - 1;
        std::vector<float> line(static_cast<size_t>(carried + plan.length), 0.0F);
        if (past.data() != nullptr) std::copy_n(past.data() + row * carried, carried, line.begin());
        std::copy_n(x.data() + row * plan.length, plan.length, line.begin() + carried);
        const int64_t channel = row % plan.channels;
        const float* filter = weights.data() + channel * plan.taps;
        for (int64_t i = 0; i < plan.length; ++i) {
          double sum = bias.data() != nullptr ? static_cast<double>(bias.data()[channel]) : 0.0;
          for (int64_t k = 0; k < plan.taps; ++k)
            sum += static_cast<double>(filter[k]) * static_cast<double>(line[static_cast<size_t>(i + k)]);
          to[row * plan.length + i] = static_cast<float>(silu ? sum * math::sigmoid(sum) : sum);
        }
        std::copy_n(line.begin() + plan.length, carried, state.begin() + row * carried);
      }
    });
    return {};
  }));
  if (!args.has_output(1)) return {};
  return compute_as<float>(args.outputs[1], [&](float, float* to) -> Status {
    std::copy(state.begin(), state.end(), to);
    return {};
  });
}

struct LinearOperands {
  const float* query;
  const float* key;
  const float* value;
  const float* past;
  const float* decay;
  const float* beta;
  double scale;
};

// The sequence of one head of keys, with the heads of queries that share it. `state` is [key_size][value_size].
void run_head(const LinearAttentionPlan& plan, const LinearOperands& o, int64_t sample, int64_t head,
              std::vector<double>& state, float* to) {
  const int64_t shared = plan.q_heads / plan.kv_heads;
  const auto columns = static_cast<size_t>(plan.value_size);
  std::vector<double> change(columns);
  std::vector<double> sum(columns);
  for (int64_t t = 0; t < plan.length; ++t) {
    const int64_t step = sample * plan.length + t;
    const float* key = o.key + (step * plan.kv_heads + head) * plan.key_size;
    const float* value = o.value + (step * plan.kv_heads + head) * plan.value_size;
    for (int64_t d = 0; plan.gated && d < plan.key_size; ++d) {
      const float* decay = o.decay + (step * plan.kv_heads + head) * plan.decay_size;
      const double factor = math::exp(static_cast<double>(decay[plan.decay_size == 1 ? 0 : d]));
      for (size_t j = 0; j < columns; ++j) state[static_cast<size_t>(d) * columns + j] *= factor;
    }
    for (size_t j = 0; j < columns; ++j) change[j] = static_cast<double>(value[j]);
    if (plan.delta) {
      const double rate = static_cast<double>(o.beta[step * plan.beta_heads + (plan.beta_heads == 1 ? 0 : head)]);
      for (int64_t d = 0; d < plan.key_size; ++d) {
        for (size_t j = 0; j < columns; ++j)
          change[j] -= state[static_cast<size_t>(d) * columns + j] * static_cast<double>(key[d]);
      }
      for (double& c : change) c *= rate;
    }
    for (int64_t d = 0; d < plan.key_size; ++d) {
      for (size_t j = 0; j < columns; ++j)
        state[static_cast<size_t>(d) * columns + j] += static_cast<double>(key[d]) * change[j];
    }
    for (int64_t h = head * shared; h < (head + 1) * shared; ++h) {
      const float* query = o.query + (step * plan.q_heads + h) * plan.key_size;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int64_t d = 0; d < plan.key_size; ++d) {
        for (size_t j = 0; j < columns; ++j)
          sum[j] += static_cast<double>(query[d]) * state[static_cast<size_t>(d) * columns + j];
      }
      float* result = to + (step * plan.q_heads + h) * plan.value_size;
      for (size_t j = 0; j < columns; ++j) result[j] = static_cast<float>(sum[j] * o.scale);
    }
  }
}

Status linear_attention(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1, 2, 4, 5}));
  if (args.has_input(3)) OPENRKNN_CHECK_OK(require_reals(args, {3}));
  const auto shape_of = [&](size_t i) { return args.has_input(i) ? &args.inputs[i].shape : nullptr; };
  OPENRKNN_TRY(const LinearAttentionPlan plan,
               linear_attention_plan(args.attributes,
                                     {shape_of(0), shape_of(1), shape_of(2), shape_of(3), shape_of(4), shape_of(5)}));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, plan.output));
  const DType state_dtype = args.inputs[args.has_input(3) ? 3 : 0].dtype;
  if (args.has_output(1)) OPENRKNN_CHECK_OK(require_output(args, 1, state_dtype, plan.state));
  const OptionalFloats query(args, 0), key(args, 1), value(args, 2), past(args, 3), decay(args, 4), beta(args, 5);
  const float given = args.attributes.float_or("scale", 0.0F);
  const double by_size = 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(plan.key_size, 1)));
  const LinearOperands operands{query.data(),
                                key.data(),
                                value.data(),
                                past.data(),
                                decay.data(),
                                beta.data(),
                                given != 0.0F ? static_cast<double>(given) : by_size};
  std::vector<float> states(static_cast<size_t>(plan.state.elements()), 0.0F);
  if (past.data() != nullptr) std::copy_n(past.data(), states.size(), states.begin());
  OPENRKNN_CHECK_OK(compute_as<float>(args.outputs[0], [&](float, float* to) -> Status {
    const int64_t size = plan.key_size * plan.value_size;
    parallel_for(plan.batch * plan.kv_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = states.begin() + i * size;
        std::vector<double> state(at, at + size);
        run_head(plan, operands, i / plan.kv_heads, i % plan.kv_heads, state, to);
        std::transform(state.begin(), state.end(), at, [](double v) { return static_cast<float>(v); });
      }
    });
    return {};
  }));
  if (!args.has_output(1)) return {};
  return compute_as<float>(args.outputs[1], [&](float, float* to) -> Status {
    std::copy(states.begin(), states.end(), to);
    return {};
  });
}

}  // namespace

void register_linear_attention(Registry& registry) {
  registry.add("LinearAttention", linear_attention);
  registry.add("CausalConvWithState", causal_conv);
}

}  // namespace openrknn::cpu
