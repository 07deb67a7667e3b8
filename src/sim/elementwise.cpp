// Add, Sub, Mul, Div, Max, Min of two tensors, and an activation alone. Everything is per element, so both modes go by
// parts of rows.
#include "kernels/npu/elementwise.hpp"

#include <algorithm>
#include <array>

#include "sim/parts.hpp"
#include "sim/pipeline.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

constexpr int64_t kPartValues = 1 << 14;

npu::Combine combine_of(const std::string& op) {
  if (op == "Sub") return npu::Combine::kSub;
  if (op == "Mul") return npu::Combine::kMul;
  if (op == "Div") return npu::Combine::kDiv;
  if (op == "Max") return npu::Combine::kMax;
  if (op == "Min") return npu::Combine::kMin;
  return npu::Combine::kAdd;
}

// True where a result depends on its operands' values alone, not on its channel.
bool same_for_all_channels(const model::Activation& a) {
  return a.kind != model::ActivationKind::kPRelu || a.slope_count == 1;
}

constexpr int64_t kRow = npu::Requantizer::kMostChannels;
constexpr int64_t kRowsAtOnce = 32;
constexpr int64_t kBytes = 256;
constexpr int64_t kManyElements = 4096;  // from here on the table of all pairs pays
using AllBytes = std::array<int8_t, kBytes>;
AllBytes all_bytes() {
  AllBytes all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int8_t>(static_cast<uint8_t>(i));
  return all;
}

template <typename T, typename V>
struct Buffers {
  std::vector<T> a, b;
  std::vector<V> v, e;
};

// Operands to the accumulator's domain, the operator, the activation, the output stage.
class ElementwiseRunner final : public Runner {
 public:
  ElementwiseRunner(const model::Program& program, const model::Task& task)
      : task_(task), integer_(program.tensor(task.outputs[0]).dtype == DType::kInt8), combine_(combine_of(task.op)) {
    if (integer_) {
      integer_pipeline_ = IntegerPipeline(program, task);
      stages_[0] = stage_of(task.operands[0]);
      stages_[1] = stage_of(task.operands[1]);
      // A product has no scale to be brought to: (a - za)(b - zb), exact.
      if (combine_ == npu::Combine::kMul) {
        for (auto& stage : stages_) stage = {stage.offset, 1, 0};
      }
      describe();
    } else {
      half_pipeline_ = HalfPipeline(program, task);
    }
  }

  Status run(const Context& context) override {
    Views views{context.view(task_.outputs[0]), context.view(task_.inputs[0]), context.view(task_.inputs[1])};
    const bool by_value = same_for_all_channels(task_.activation);
    if (!context.strict()) join_pixels(views, by_value);
    // Results of all pairs of bytes, where there are many elements to look up.
    const model::Cube& k = views[0].cube;
    const bool one_pass = requantizer_.usable() && !context.strict();
    if (integer_ && !one_pass && results_.empty() && k.n * k.h * k.w * k.c >= kManyElements && by_value)
      compute_pairs();
    for_parts(k, kPartValues, [&](const Part& part) { integer_ ? integer(views, part, one_pass) : half(views, part); });
    return {};
  }

 private:
  using Views = std::array<View, 3>;  // result and operands

  void integer(const Views& views, const Part& part, bool one_pass) const {
    Buffers<int8_t, int32_t> m;
    const int64_t n = part.ws * part.cs;
    int64_t a_stride = 0, b_stride = 0;
    const int8_t* a = load(views[1], part, m.a, a_stride);
    const int8_t* b = load(views[2], part, m.b, b_stride);
    if (one_pass) {
      return store<int8_t>(views[0], part, [&](int8_t* y, int64_t stride) {
        in_one_pass(part.ws, part.cs, {a, a_stride, b, b_stride, y, stride});
      });
    }
    if (!results_.empty()) {
      return store<int8_t>(views[0], part, [&](int8_t* y, int64_t stride) {
        for (int64_t p = 0; p < part.ws; ++p) look_up(part.cs, a + p * a_stride, b + p * b_stride, y + p * stride);
      });
    }
    int32_t* v = reserve(m.v, n);
    int32_t* e = reserve(m.e, n);
    npu::operand_block(part.ws, part.cs, a, a_stride, stages_[0], v);
    npu::operand_block(part.ws, part.cs, b, b_stride, stages_[1], e);
    npu::combine_s32(combine_, n, v, e, v);
    store<int8_t>(views[0], part,
                  [&](int8_t* y, int64_t stride) { integer_pipeline_.finish(part.ws, part.cs, part.c, v, y, stride); });
  }

  // Sums as convolutions add a residual, the first operand as the accumulator; products as accumulators.
  void describe() {
    const bool product = combine_ == npu::Combine::kMul;
    npu::Requantizer::Stages stages;
    if ((!product && combine_ != npu::Combine::kAdd) || !integer_pipeline_.describe(stages)) return;
    const npu::OperandStage& first = stages_[0];
    const auto is_zero_point = [](const npu::OperandStage& s) { return s.offset >= -128 && s.offset <= 128; };
    if (product && !(is_zero_point(stages_[0]) && is_zero_point(stages_[1]))) return;
    const int64_t reach = product ? int64_t{256} * 256 : 128;
    const std::vector<int64_t> least(kRow, -reach), largest(kRow, reach);
    biases_.assign(kRow, product ? 0 : first.offset);
    multipliers_.assign(kRow, first.multiplier);
    stages.channels = kRow;
    stages.channel = {biases_.data(), nullptr, multipliers_.data(), first.shift, first.shift, false};
    stages.least = least.data();
    stages.largest = largest.data();
    if (!product) stages.residual = &stages_[1];
    requantizer_ = npu::Requantizer(stages);
  }

  struct Values {
    const int8_t* a;
    int64_t a_stride;
    const int8_t* b;
    int64_t b_stride;
    int8_t* y;
    int64_t y_stride;
  };

  void in_one_pass(int64_t pixels, int64_t channels, const Values& x) const {
    if (x.a_stride == channels && x.b_stride == channels && x.y_stride == channels) {
      const int64_t values = pixels * channels, whole = values / kRow * kRow, rest = values - whole;
      in_rows(whole / kRow, kRow, {x.a, kRow, x.b, kRow, x.y, kRow});
      return in_rows(1, rest, {x.a + whole, rest, x.b + whole, rest, x.y + whole, rest});
    }
    for (int64_t c = 0; c < channels; c += kRow) {
      in_rows(pixels, std::min(kRow, channels - c), {x.a + c, x.a_stride, x.b + c, x.b_stride, x.y + c, x.y_stride});
    }
  }

  // Rows of at most kRow values.
  void in_rows(int64_t rows, int64_t n, const Values& x) const {
    if (n == 0) return;
    int32_t v[kRowsAtOnce * kRow];
    const bool product = combine_ == npu::Combine::kMul;
    for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, rows - first);
      const int8_t* a = x.a + first * x.a_stride;
      const int8_t* b = x.b + first * x.b_stride;
      const bool together = x.a_stride == n && x.b_stride == n;
      const int64_t runs = together ? 1 : count, length = together ? count * n : n;
      for (int64_t r = 0; r < runs; ++r) {
        const int8_t* from = a + r * x.a_stride;
        int32_t* to = v + r * n;
        if (product) {
          npu::multiply_s8(length, from, stages_[0].offset, b + r * x.b_stride, stages_[1].offset, to);
        } else {
          npu::widen_s8(length, from, to);
        }
      }
      requantizer_.run(count, 0, n, v, product ? nullptr : b, x.b_stride, x.y + first * x.y_stride, x.y_stride);
    }
  }

  void look_up(int64_t n, const int8_t* a, const int8_t* b, int8_t* y) const {
    const int8_t* results = results_.data();
    for (int64_t i = 0; i < n; ++i)
      y[i] = results[size_t{static_cast<uint8_t>(a[i])} * kBytes + static_cast<uint8_t>(b[i])];
  }

  void compute_pairs() {
    const AllBytes all = all_bytes();
    std::array<int32_t, kBytes> a{}, b{}, v{};
    npu::operand_block(1, kBytes, all.data(), kBytes, stages_[0], a.data());
    npu::operand_block(1, kBytes, all.data(), kBytes, stages_[1], b.data());
    results_.resize(kBytes * kBytes);
    for (size_t i = 0; i < all.size(); ++i) {
      v.fill(a[i]);
      npu::combine_s32(combine_, kBytes, v.data(), b.data(), v.data());
      integer_pipeline_.finish(1, kBytes, 0, v.data(), results_.data() + i * kBytes, kBytes);
    }
  }

  void half(const Views& views, const Part& part) const {
    Buffers<uint16_t, float> m;
    const int64_t n = part.ws * part.cs;
    int64_t a_stride = 0, b_stride = 0;
    const uint16_t* a = load(views[1], part, m.a, a_stride);
    const uint16_t* b = load(views[2], part, m.b, b_stride);
    float* v = reserve(m.v, n);
    float* e = reserve(m.e, n);
    npu::widen_block(part.ws, part.cs, a, a_stride, v);
    npu::widen_block(part.ws, part.cs, b, b_stride, e);
    npu::combine_f32(combine_, n, v, e, v);
    half_pipeline_.activate(part.ws, part.cs, part.c, v);
    store<uint16_t>(views[0], part,
                    [&](uint16_t* y, int64_t stride) { HalfPipeline::output(part.ws, part.cs, v, y, stride); });
  }

  const model::Task& task_;
  bool integer_;
  npu::Combine combine_;
  npu::OperandStage stages_[2];
  IntegerPipeline integer_pipeline_;
  HalfPipeline half_pipeline_;
  std::vector<int32_t> biases_, multipliers_;  // of a row
  npu::Requantizer requantizer_;               // fast mode, where usable
  std::vector<int8_t> results_;                // [first operand][second operand]; empty: not computed
};

// v = x - zero point (int8) or x (fp16), then the activation and the output stage.
class ActivationRunner final : public Runner {
 public:
  ActivationRunner(const model::Program& program, const model::Task& task)
      : task_(task), integer_(program.tensor(task.outputs[0]).dtype == DType::kInt8) {
    if (integer_) {
      integer_pipeline_ = IntegerPipeline(program, task);
      offset_ = -program.tensor(task.inputs[0]).quant->zero_point();
      by_value_ = same_for_all_channels(task.activation);
      if (by_value_) compute(1, kBytes, 0, all_bytes().data(), kBytes, results_.data(), kBytes);
    } else {
      half_pipeline_ = HalfPipeline(program, task);
    }
  }

  Status run(const Context& context) override {
    std::array<View, 2> views{context.view(task_.outputs[0]), context.view(task_.inputs[0])};
    if (!context.strict()) join_pixels(views, same_for_all_channels(task_.activation));
    const auto& [y, x] = views;
    for_parts(y.cube, kPartValues,
              [&, &x = x, &y = y](const Part& part) { integer_ ? integer(x, y, part) : half(x, y, part); });
    return {};
  }

 private:
  void compute(int64_t pixels, int64_t channels, int64_t channel, const int8_t* x, int64_t x_stride, int8_t* y,
               int64_t y_stride) const {
    std::vector<int32_t> v(static_cast<size_t>(pixels * channels));
    npu::operand_block(pixels, channels, x, x_stride, {offset_, 1, 0}, v.data());
    integer_pipeline_.finish(pixels, channels, channel, v.data(), y, y_stride);
  }

  void integer(const View& x, const View& y, const Part& part) const {
    std::vector<int8_t> storage;
    int64_t stride = 0;
    const int8_t* a = load(x, part, storage, stride);
    store<int8_t>(y, part, [&](int8_t* to, int64_t to_stride) {
      if (!by_value_) return compute(part.ws, part.cs, part.c, a, stride, to, to_stride);
      const bool together = stride == part.cs && to_stride == part.cs;
      const int64_t rows = together ? 1 : part.ws, n = together ? part.ws * part.cs : part.cs;
      for (int64_t p = 0; p < rows; ++p) npu::look_up_s8(n, a + p * stride, results_.data(), to + p * to_stride);
    });
  }

  void half(const View& x, const View& y, const Part& part) const {
    std::vector<uint16_t> storage;
    std::vector<float> values;
    int64_t stride = 0;
    const uint16_t* a = load(x, part, storage, stride);
    float* v = reserve(values, part.ws * part.cs);
    npu::widen_block(part.ws, part.cs, a, stride, v);
    half_pipeline_.activate(part.ws, part.cs, part.c, v);
    store<uint16_t>(y, part,
                    [&](uint16_t* to, int64_t to_stride) { HalfPipeline::output(part.ws, part.cs, v, to, to_stride); });
  }

  const model::Task& task_;
  bool integer_;
  bool by_value_ = false;
  AllBytes results_{};  // by_value_: of every byte
  int32_t offset_ = 0;
  IntegerPipeline integer_pipeline_;
  HalfPipeline half_pipeline_;
};

}  // namespace

RunnerPtr make_elementwise(const model::Program& program, const model::Task& task) {
  return std::make_unique<ElementwiseRunner>(program, task);
}
RunnerPtr make_activation(const model::Program& program, const model::Task& task) {
  return std::make_unique<ActivationRunner>(program, task);
}

}  // namespace openrknn::sim
