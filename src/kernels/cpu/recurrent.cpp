// LSTM, GRU and RNN in float over kernels/gemm.hpp. Where ONNX's text leaves a choice the result is onnxruntime's:
// `clip` cuts the sums of the gates and not the cell; a sequence of length 0 leaves a state of zeros.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_transposed.hpp"
#include "kernels/recurrent_plan.hpp"

namespace openrknn::cpu {
namespace {

using Floats = std::vector<float>;

// One direction of a layer. Rows of the gates are one per entry of the batch, the gates side by side as in the weights.
class Direction {
 public:
  Direction(const KernelArgs& args, const RecurrentPlan& plan, int index, std::vector<int64_t> lengths)
      : args_(args), plan_(plan), index_(index), lengths_(std::move(lengths)) {
    const auto count = static_cast<size_t>(plan.functions_per_direction());
    functions_ = std::span(plan.functions).subspan(static_cast<size_t>(index) * count, count);
    x_ = args.inputs[kRecurrentX].as<float>().data();
    w_ = part(kRecurrentW, rows() * plan.inputs);
    r_ = part(kRecurrentR, rows() * plan.hidden);
    biases_ = args.has_input(kRecurrentB) ? part(kRecurrentB, 2 * rows()) : nullptr;
    peepholes_ = args.has_input(kRecurrentP) ? part(kRecurrentP, 3 * plan.hidden) : nullptr;
    h_ = initial_state(kRecurrentH);
    c_ = initial_state(kRecurrentC);
    products_.resize(static_cast<size_t>(plan.batch * rows()));
    reset_.resize(static_cast<size_t>(plan.batch * plan.hidden));
  }

  void run() {
    // The products with the inputs do not wait for the state: many steps at once, as far as memory allows.
    constexpr int64_t kMostElements = int64_t{1} << 20;
    const int64_t per_step = std::max<int64_t>(plan_.batch * std::max(rows(), plan_.inputs), 1);
    const int64_t chunk = std::clamp<int64_t>(kMostElements / per_step, 1, std::max<int64_t>(plan_.steps, 1));
    for (int64_t first = 0; first < plan_.steps; first += chunk) {
      const int64_t count = std::min(chunk, plan_.steps - first);
      Floats gates = input_products(first, count);
      for (int64_t i = 0; i < count; ++i) step(first + i, gates.data() + i * plan_.batch * rows());
    }
    write_state(1, h_);
    write_state(2, c_);
  }

 private:
  int64_t rows() const { return plan_.gates * plan_.hidden; }

  const float* part(size_t operand, int64_t elements) const {
    return args_.inputs[operand].as<float>().data() + index_ * elements;
  }

  // Where a state's row for an entry of the batch lies in initial_h, Y_h and the like.
  int64_t state_row(int64_t entry) const {
    return (plan_.batch_first ? entry * plan_.directions + index_ : index_ * plan_.batch + entry) * plan_.hidden;
  }

  Floats initial_state(size_t operand) const {
    Floats state(static_cast<size_t>(plan_.batch * plan_.hidden));
    if (!args_.has_input(operand)) return state;
    const float* from = args_.inputs[operand].as<float>().data();
    for (int64_t b = 0; b < plan_.batch; ++b) {
      if (lengths_[static_cast<size_t>(b)] > 0) std::copy_n(from + state_row(b), plan_.hidden, row(state, b));
    }
    return state;
  }

  void write_state(size_t output, Floats& state) const {
    if (!args_.has_output(output)) return;
    float* to = args_.outputs[output].as<float>().data();
    for (int64_t b = 0; b < plan_.batch; ++b) std::copy_n(row(state, b), plan_.hidden, to + state_row(b));
  }

  float* row(Floats& state, int64_t entry) const { return state.data() + entry * plan_.hidden; }

  bool active(int64_t step, int64_t entry) const { return step < lengths_[static_cast<size_t>(entry)]; }

  // The time of a step of an entry; a reversed direction begins at the end of the entry's own sequence.
  int64_t time_of(int64_t step, int64_t entry) const {
    return plan_.reversed(index_) ? lengths_[static_cast<size_t>(entry)] - 1 - step : step;
  }

  // W * x + the biases that are not inside a gate, for `count` steps from `first`.
  Floats input_products(int64_t first, int64_t count) const {
    Floats x(static_cast<size_t>(count * plan_.batch * plan_.inputs));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t b = 0; b < plan_.batch; ++b) {
        if (!active(first + i, b)) continue;
        const int64_t t = time_of(first + i, b);
        const int64_t from = plan_.batch_first ? b * plan_.steps + t : t * plan_.batch + b;
        std::copy_n(x_ + from * plan_.inputs, plan_.inputs, x.data() + (i * plan_.batch + b) * plan_.inputs);
      }
    }
    Floats gates(static_cast<size_t>(count * plan_.batch * rows()));
    multiply_transposed(count * plan_.batch, rows(), plan_.inputs, x.data(), w_, gates.data());
    if (biases_ == nullptr) return gates;
    // The hidden gate of a GRU keeps its recurrent bias for later when the reset gate acts on both.
    const int64_t joined = keeps_hidden_bias() ? 2 * plan_.hidden : rows();
    for (int64_t m = 0; m < count * plan_.batch; ++m) {
      float* to = gates.data() + m * rows();
      for (int64_t j = 0; j < rows(); ++j) to[j] += j < joined ? biases_[j] + biases_[rows() + j] : biases_[j];
    }
    return gates;
  }

  bool keeps_hidden_bias() const { return plan_.cell == RecurrentCell::kGru && plan_.linear_before_reset; }

  // sums[j] = f(clip(sums[j] + more[j]))
  void gate(size_t function, float* sums, const float* more) const {
    for (int64_t j = 0; j < plan_.hidden; ++j) {
      const float sum = more == nullptr ? sums[j] : sums[j] + more[j];
      sums[j] = sum > plan_.clip ? plan_.clip : sum < -plan_.clip ? -plan_.clip : sum;
    }
    functions_[function].apply(sums, plan_.hidden);
  }

  void step(int64_t step, float* gates) {
    multiply_transposed(plan_.batch,
                        plan_.cell == RecurrentCell::kGru && !plan_.linear_before_reset ? 2 * plan_.hidden : rows(),
                        plan_.hidden, h_.data(), r_, products_.data());
    if (plan_.cell == RecurrentCell::kGru) {
      gru(step, gates);
    } else {
      for (int64_t b = 0; b < plan_.batch; ++b) {
        if (!active(step, b)) continue;
        float* sums = gates + b * rows();
        const float* products = products_.data() + b * rows();
        plan_.cell == RecurrentCell::kLstm ? lstm(b, sums, products) : rnn(b, sums, products);
      }
    }
    write_sequence(step);
  }

  void rnn(int64_t entry, float* sums, const float* products) {
    gate(0, sums, products);
    std::copy_n(sums, plan_.hidden, row(h_, entry));
  }

  // i, o, f, c side by side.
  void lstm(int64_t entry, float* sums, const float* products) {
    const int64_t n = plan_.hidden;
    float* h = row(h_, entry);
    float* c = row(c_, entry);
    float* input = sums;
    float* output = sums + n;
    float* forget = sums + 2 * n;
    float* cell = sums + 3 * n;
    if (peepholes_ != nullptr) {
      for (int64_t j = 0; j < n; ++j) {
        input[j] += peepholes_[j] * c[j];
        forget[j] += peepholes_[2 * n + j] * c[j];
      }
    }
    gate(0, input, products);
    gate(1, cell, products + 3 * n);
    if (plan_.input_forget) {
      for (int64_t j = 0; j < n; ++j) forget[j] = 1.0F - input[j];
    } else {
      gate(0, forget, products + 2 * n);
    }
    for (int64_t j = 0; j < n; ++j) c[j] = forget[j] * c[j] + input[j] * cell[j];
    if (peepholes_ != nullptr) {
      for (int64_t j = 0; j < n; ++j) output[j] += peepholes_[n + j] * c[j];
    }
    gate(0, output, products + n);
    std::copy_n(c, n, h);
    functions_[2].apply(h, n);
    for (int64_t j = 0; j < n; ++j) h[j] *= output[j];
  }

  // z, r, h side by side.
  void gru(int64_t step, float* gates) {
    const int64_t n = plan_.hidden;
    const int64_t width = plan_.linear_before_reset ? rows() : 2 * n;  // of a row of the products
    for (int64_t b = 0; b < plan_.batch; ++b) {
      if (!active(step, b)) continue;
      float* sums = gates + b * rows();
      const float* products = products_.data() + b * width;
      gate(0, sums, products);
      gate(0, sums + n, products + n);
      const float* reset = sums + n;
      if (plan_.linear_before_reset) {
        for (int64_t j = 0; j < n; ++j) {
          const float bias = biases_ == nullptr ? 0.0F : biases_[rows() + 2 * n + j];
          sums[2 * n + j] += reset[j] * (products[2 * n + j] + bias);
        }
      } else {
        for (int64_t j = 0; j < n; ++j) reset_[static_cast<size_t>(b * n + j)] = reset[j] * row(h_, b)[j];
      }
    }
    if (!plan_.linear_before_reset)
      multiply_transposed(plan_.batch, n, n, reset_.data(), r_ + 2 * n * n, products_.data());
    for (int64_t b = 0; b < plan_.batch; ++b) {
      if (!active(step, b)) continue;
      const float* update = gates + b * rows();
      float* hidden = gates + b * rows() + 2 * n;
      float* h = row(h_, b);
      gate(1, hidden, plan_.linear_before_reset ? nullptr : products_.data() + b * n);
      for (int64_t j = 0; j < n; ++j) h[j] = (1.0F - update[j]) * hidden[j] + update[j] * h[j];
    }
  }

  // Y at the step's time; behind the end of an entry's sequence it stays 0.
  void write_sequence(int64_t step) {
    if (!args_.has_output(0)) return;
    float* y = args_.outputs[0].as<float>().data();
    for (int64_t b = 0; b < plan_.batch; ++b) {
      if (!active(step, b)) continue;
      const int64_t t = time_of(step, b);
      const int64_t to = plan_.batch_first ? (b * plan_.steps + t) * plan_.directions + index_
                                           : (t * plan_.directions + index_) * plan_.batch + b;
      std::copy_n(row(h_, b), plan_.hidden, y + to * plan_.hidden);
    }
  }

  const KernelArgs& args_;
  const RecurrentPlan& plan_;
  int index_;
  std::vector<int64_t> lengths_;
  std::span<const RecurrentFunction> functions_;
  const float* x_ = nullptr;
  const float* w_ = nullptr;
  const float* r_ = nullptr;
  const float* biases_ = nullptr;     // of the inputs, then of the state; may be null
  const float* peepholes_ = nullptr;  // i, o, f; may be null
  Floats h_, c_;                      // [batch][hidden]
  Floats products_;                   // of the state with its weights
  Floats reset_;
};

Result<std::vector<int64_t>> sequence_lengths(const KernelArgs& args, const RecurrentPlan& plan) {
  const auto given = ints_operand(args, kRecurrentLengths);
  if (!given) return std::vector<int64_t>(static_cast<size_t>(plan.batch), plan.steps);
  for (const int64_t length : *given) {
    if (length < 0 || length > plan.steps)
      return kernel_error(fmt::format("a sequence of {} steps in an input of {}", length, plan.steps),
                          ErrorCode::kShape);
  }
  return *given;
}

template <RecurrentCell kCell>
Status recurrent(const KernelArgs& args) {
  constexpr std::string_view kName = kCell == RecurrentCell::kLstm  ? "LSTM"
                                     : kCell == RecurrentCell::kGru ? "GRU"
                                                                    : "RNN";
  OPENRKNN_CHECK_OK(require(args, 3, 0));
  RecurrentShapes shapes{};
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!args.has_input(i)) continue;
    shapes[i] = &args.inputs[i].shape;
    if (i != kRecurrentLengths && args.inputs[i].dtype != DType::kFloat32)
      return kernel_error(fmt::format("operand {} is {}, expected float32", i, dtype_name(args.inputs[i].dtype)));
  }
  OPENRKNN_TRY(const RecurrentPlan plan, recurrent_plan(kName, args.attributes, shapes));
  for (size_t i = 0; i < 3; ++i) {
    if (args.has_output(i))
      OPENRKNN_CHECK_OK(require_output(args, i, DType::kFloat32, i == 0 ? plan.sequence : plan.state));
  }
  // Without a result that takes memory the extents are bound by nothing.
  int64_t results = 0;
  for (const MutableTensorView& out : args.outputs) results += out.present() ? out.elements() : 0;
  if (results == 0) return {};
  OPENRKNN_TRY(const auto lengths, sequence_lengths(args, plan));
  if (args.has_output(0) && args.outputs[0].bytes() > 0) std::memset(args.outputs[0].data, 0, args.outputs[0].bytes());
  for (int d = 0; d < plan.directions; ++d) Direction(args, plan, d, lengths).run();
  return {};
}

}  // namespace

void register_recurrent(Registry& registry) {
  registry.add("LSTM", recurrent<RecurrentCell::kLstm>);
  registry.add("GRU", recurrent<RecurrentCell::kGru>);
  registry.add("RNN", recurrent<RecurrentCell::kRnn>);
}

}  // namespace openrknn::cpu
