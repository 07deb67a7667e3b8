// Add, Sub, Mul, Div, Max, Min of two tensors, and an activation alone. Everything is per element, so both modes go by
// parts of rows.
#include "kernels/npu/elementwise.hpp"

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
    } else {
      half_pipeline_ = HalfPipeline(program, task);
    }
  }

  Status run(const Context& context) override {
    const View& y = context.view(task_.outputs[0]);
    for_parts(y.cube, kPartValues, [&](const Part& part) { integer_ ? integer(context, part) : half(context, part); });
    return {};
  }

 private:
  void integer(const Context& context, const Part& part) const {
    Buffers<int8_t, int32_t> m;
    const int64_t n = part.ws * part.cs;
    int64_t a_stride = 0, b_stride = 0;
    const int8_t* a = load(context.view(task_.inputs[0]), part, m.a, a_stride);
    const int8_t* b = load(context.view(task_.inputs[1]), part, m.b, b_stride);
    int32_t* v = reserve(m.v, n);
    int32_t* e = reserve(m.e, n);
    npu::operand_block(part.ws, part.cs, a, a_stride, stages_[0], v);
    npu::operand_block(part.ws, part.cs, b, b_stride, stages_[1], e);
    npu::combine_s32(combine_, n, v, e, v);
    integer_pipeline_.activate(part.ws, part.cs, part.c, v);
    store<int8_t>(context.view(task_.outputs[0]), part,
                  [&](int8_t* y, int64_t stride) { integer_pipeline_.output(part.ws, part.cs, v, y, stride); });
  }

  void half(const Context& context, const Part& part) const {
    Buffers<uint16_t, float> m;
    const int64_t n = part.ws * part.cs;
    int64_t a_stride = 0, b_stride = 0;
    const uint16_t* a = load(context.view(task_.inputs[0]), part, m.a, a_stride);
    const uint16_t* b = load(context.view(task_.inputs[1]), part, m.b, b_stride);
    float* v = reserve(m.v, n);
    float* e = reserve(m.e, n);
    npu::widen_block(part.ws, part.cs, a, a_stride, v);
    npu::widen_block(part.ws, part.cs, b, b_stride, e);
    npu::combine_f32(combine_, n, v, e, v);
    half_pipeline_.activate(part.ws, part.cs, part.c, v);
    store<uint16_t>(context.view(task_.outputs[0]), part,
                    [&](uint16_t* y, int64_t stride) { HalfPipeline::output(part.ws, part.cs, v, y, stride); });
  }

  const model::Task& task_;
  bool integer_;
  npu::Combine combine_;
  npu::OperandStage stages_[2];
  IntegerPipeline integer_pipeline_;
  HalfPipeline half_pipeline_;
};

// v = x - zero point (int8) or x (fp16), then the activation and the output stage.
class ActivationRunner final : public Runner {
 public:
  ActivationRunner(const model::Program& program, const model::Task& task)
      : task_(task), integer_(program.tensor(task.outputs[0]).dtype == DType::kInt8) {
    if (integer_) {
      integer_pipeline_ = IntegerPipeline(program, task);
      offset_ = -program.tensor(task.inputs[0]).quant->zero_point();
    } else {
      half_pipeline_ = HalfPipeline(program, task);
    }
  }

  Status run(const Context& context) override {
    const View& x = context.view(task_.inputs[0]);
    const View& y = context.view(task_.outputs[0]);
    for_parts(y.cube, kPartValues, [&](const Part& part) { integer_ ? integer(x, y, part) : half(x, y, part); });
    return {};
  }

 private:
  void integer(const View& x, const View& y, const Part& part) const {
    std::vector<int8_t> storage;
    std::vector<int32_t> values;
    int64_t stride = 0;
    const int8_t* a = load(x, part, storage, stride);
    int32_t* v = reserve(values, part.ws * part.cs);
    npu::operand_block(part.ws, part.cs, a, stride, {offset_, 1, 0}, v);
    integer_pipeline_.activate(part.ws, part.cs, part.c, v);
    store<int8_t>(y, part,
                  [&](int8_t* to, int64_t to_stride) { integer_pipeline_.output(part.ws, part.cs, v, to, to_stride); });
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
