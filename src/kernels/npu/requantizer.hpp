// Accumulators of int8 tasks to results in one pass: what the stages of elementwise.hpp give one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/npu/elementwise.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {

// table_s32 and the output stage in one: their result for every index.
class TableOutput {
 public:
  TableOutput() = default;
  TableOutput(const int16_t* table, int32_t index_scale, int32_t index_shift, const OutputStage& stage);
  void run(int64_t pixels, int64_t channels, const int32_t* v, int8_t* y, int64_t y_stride) const;

  double factor() const { return factor_; }  // from v to an index
  LookUp look_up() const;                    // its indices count from 0
  int8_t exact(int64_t v) const;

 private:
  void set_steps();

  int32_t index_scale_ = 1, index_shift_ = 0;
  double factor_ = 0;
  std::vector<uint16_t> results_;
  std::vector<uint8_t> steps_;  // empty: some bin has too many
};

class Requantizer;

// One block and what its `exact` needs; stays where it is while the block is used.
struct RequantizeCall {
  RequantizeBlock block;
  const Requantizer* requantizer = nullptr;
  int64_t channel = 0, channels = 0, done = 0;  // done: values in front of the block's
  const int8_t* residual = nullptr;
  int64_t residual_stride = 0;

  // Pixels of few channels that lie together, as rows of kMostChannels values; false when they cannot be so.
  bool share_rows();
  // On to the rows behind the next `rows`.
  void skip_rows(int64_t rows);
};

// All stages of a convolution behind its accumulators, in one pass: channel stage, residual, clamp, output stage. fp32
// decides all values but those near a tie, which go through the stages above.
class Requantizer {
 public:
  struct Stages {
    int64_t channels = 0;
    ChannelStage channel;            // its arrays outlive the Requantizer
    const int64_t* least = nullptr;  // per channel: range of the accumulator
    const int64_t* largest = nullptr;
    const OperandStage* residual = nullptr;
    bool clamps = false;
    int64_t low = 0, high = 0;
    const TableOutput* table = nullptr;  // instead of clamp and output stage; outlives the Requantizer
    OutputStage output;
  };

  Requantizer() = default;
  explicit Requantizer(const Stages& stages);
  // False: the stages' constants leave the ranges in which fp32 can decide, or there are window sums.
  bool usable() const { return usable_; }
  static constexpr int64_t kMostChannels = 64;
  // Channels [channel, channel + channels) of the task, at most kMostChannels; acc [pixels][channels], dense. Results
  // may overwrite the residuals, pixel by pixel.
  void run(int64_t pixels, int64_t channel, int64_t channels, const int32_t* acc, const int8_t* residual,
           int64_t residual_stride, int8_t* y, int64_t y_stride) const;
  // For kernels that have accumulators in registers: what they shall do with them, if usable() and simple().
  bool simple() const { return stages_.table == nullptr; }
  void describe(int64_t pixels, int64_t channel, int64_t channels, const int8_t* residual, int64_t residual_stride,
                int8_t* y, int64_t y_stride, RequantizeCall& call) const;

 private:
  friend struct RequantizeCall;
  bool set_factors(const Stages& stages, double out_factor, double unit);
  void set_output(const Stages& stages, double out_factor);
  bool set_margin(double out_factor, double reach, double result, int32_t unit);
  int64_t stages_before_output(int64_t channel, int32_t acc, const int8_t* residual) const;
  int8_t exact(int64_t channel, int32_t acc, const int8_t* residual) const;
  void share_pixels();
  void run_rows(const RequantizeBlock& block) const;
  void run_shared(RequantizeCall& call, int64_t values) const;
  void run_apart(int64_t pixels, const int32_t* acc, int8_t* y, int64_t y_stride) const;

  bool usable_ = false;
  bool has_residual_ = false;
  Stages stages_;
  OperandStage residual_;
  std::vector<float> factors_;
  std::vector<int32_t> shared_bias_;  // of kMostChannels values, where these are several pixels; else empty
  std::vector<float> shared_factors_;
  double farthest_ = 0, residual_reach_ = 0;  // of results
  float residual_factor_ = 0, constant_ = 0;
  int32_t margin_ = 0;
  bool wide_ = false;
  int8_t low_ = 0, high_ = 0;
};

}  // namespace openrknn::npu
