#include "sim/pipeline.hpp"

#include <cmath>

namespace openrknn::sim {
namespace {

using model::ActivationKind;

template <typename T>
const T* blob_as(const model::Program& program, int id) {
  return id == model::kNone ? nullptr : reinterpret_cast<const T*>(program.blob(id).data());
}

npu::TableForm form_of(model::TableForm form) {
  switch (form) {
    case model::TableForm::kGate:
      return npu::TableForm::kGate;
    case model::TableForm::kPlus:
      return npu::TableForm::kPlus;
    default:
      return npu::TableForm::kValue;
  }
}

}  // namespace

npu::OperandStage stage_of(const model::Operand& o) { return {o.offset, o.multiplier, o.shift}; }

IntegerPipeline::IntegerPipeline(const model::Program& program, const model::Task& task)
    : activation_(task.activation),
      output_{task.requant->multiplier, task.requant->shift, task.requant->zero_point,
              program.profile.zero_point_before_rounding},
      slopes_(blob_as<int16_t>(program, task.activation.slopes)) {
  const model::Activation& a = activation_;
  if (a.kind == ActivationKind::kTable)
    table_ = npu::TableOutput(blob_as<int16_t>(program, a.table), a.index_scale, a.index_shift, output_);
}

void IntegerPipeline::finish(int64_t pixels, int64_t channels, int64_t channel, int32_t* v, int8_t* y,
                             int64_t y_stride) const {
  const model::Activation& a = activation_;
  switch (a.kind) {
    case ActivationKind::kTable:
      return table_.run(pixels, channels, v, y, y_stride);
    case ActivationKind::kClamp:
      npu::clamp_s32(pixels * channels, a.min, a.max, v);
      break;
    case ActivationKind::kPRelu:
      npu::prelu_s32(pixels, channels, a.slope_count == 1 ? slopes_ : slopes_ + channel,
                     a.slope_count == 1 ? 1 : channels, a.slope_shift, v);
      break;
    case ActivationKind::kLinear:
    case ActivationKind::kFunction:  // fp16 only (model::validate)
      break;
  }
  npu::output_block(pixels, channels, v, output_, y, y_stride);
}

bool IntegerPipeline::describe(npu::Requantizer::Stages& stages) const {
  const model::Activation& a = activation_;
  if (a.kind == ActivationKind::kPRelu || a.kind == ActivationKind::kFunction) return false;
  stages.clamps = a.kind == ActivationKind::kClamp;
  stages.low = a.min;
  stages.high = a.max;
  if (a.kind == ActivationKind::kTable) stages.table = &table_;
  stages.output = output_;
  return true;
}

HalfPipeline::HalfPipeline(const model::Program& program, const model::Task& task)
    : activation_(task.activation),
      slopes_(blob_as<float>(program, task.activation.slopes)),
      table_(blob_as<int16_t>(program, task.activation.table)) {
  if (activation_.kind != ActivationKind::kFunction) return;
  function_ = activation_from_name(activation_.function).value_or(ActivationSpec{});
  function_.alpha = activation_.alpha;
  function_.beta = activation_.beta;
}

void HalfPipeline::activate(int64_t pixels, int64_t channels, int64_t channel, float* v) const {
  const model::Activation& a = activation_;
  const int64_t n = pixels * channels;
  switch (a.kind) {
    case ActivationKind::kLinear:
      return;
    case ActivationKind::kClamp:
      return npu::clamp_f32(n, a.fmin, a.fmax, v);
    case ActivationKind::kPRelu:
      if (a.slope_count == 1) return npu::prelu_f32(pixels, channels, slopes_, 1, v);
      return npu::prelu_f32(pixels, channels, slopes_ + channel, channels, v);
    case ActivationKind::kTable:
      return npu::table_f32(n, table_, a.findex_scale, a.out_scale, form_of(a.form), v);
    case ActivationKind::kFunction:
      return apply_activation(function_, v, n);
  }
}

bool HalfPipeline::limits(float& low, float& high) const {
  const bool clamps = activation_.kind == ActivationKind::kClamp;
  low = clamps ? activation_.fmin : -INFINITY;
  high = clamps ? activation_.fmax : INFINITY;
  return clamps || activation_.kind == ActivationKind::kLinear;
}

void HalfPipeline::finish(int64_t pixels, int64_t channels, int64_t channel, const float* bias, float* v, uint16_t* y,
                          int64_t y_stride) const {
  float low = 0, high = 0;
  if (limits(low, high)) return npu::half_output_block(pixels, channels, v, bias, low, high, y, y_stride);
  if (bias != nullptr) npu::add_bias_f32(pixels, channels, bias, v);
  activate(pixels, channels, channel, v);
  output(pixels, channels, v, y, y_stride);
}

void HalfPipeline::output(int64_t pixels, int64_t channels, const float* v, uint16_t* y, int64_t y_stride) {
  npu::narrow_block(pixels, channels, v, y, y_stride);
}

}  // namespace openrknn::sim
