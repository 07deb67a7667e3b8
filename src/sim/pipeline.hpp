// The stages behind an accumulator, set up from a task: activation and output, integer and half.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/npu/requantizer.hpp"
#include "model/program.hpp"

namespace openrknn::sim {

npu::OperandStage stage_of(const model::Operand& operand);

// int8: v in int32, dense blocks of pixels x channels. `channel` is the first channel of the block.
class IntegerPipeline {
 public:
  IntegerPipeline() = default;
  IntegerPipeline(const model::Program& program, const model::Task& task);
  // Activation and output stage; v is overwritten.
  void finish(int64_t pixels, int64_t channels, int64_t channel, int32_t* v, int8_t* y, int64_t y_stride) const;
  // The same as a part of stages in one pass, while this lives; false where they have no form for the activation.
  bool describe(npu::Requantizer::Stages& stages) const;

 private:
  model::Activation activation_;
  npu::OutputStage output_;
  const int16_t* slopes_ = nullptr;
  npu::TableOutput table_;
};

// fp16: v in fp32.
class HalfPipeline {
 public:
  HalfPipeline() = default;
  HalfPipeline(const model::Program& program, const model::Task& task);
  void activate(int64_t pixels, int64_t channels, int64_t channel, float* v) const;
  // Bias (per channel, or nullptr), activation and output; v may be overwritten.
  void finish(int64_t pixels, int64_t channels, int64_t channel, const float* bias, float* v, uint16_t* y,
              int64_t y_stride) const;
  // The limits of results that need no more than them; false: finish.
  bool limits(float& low, float& high) const;
  static void output(int64_t pixels, int64_t channels, const float* v, uint16_t* y, int64_t y_stride);

 private:
  model::Activation activation_;
  const float* slopes_ = nullptr;
  const int16_t* table_ = nullptr;
  ActivationSpec function_;
};

}  // namespace openrknn::sim
