// The pipeline behind an accumulator, and the pooling unit, over arrays: what arithmetic.hpp says of one value, with
// the same results. Every function works on the calling thread and on no more than the range it is given: callers split
// pixels over threads and keep blocks small enough for the caches (about 64 KiB of int32).
//
// A block is `pixels` rows of `channels` values. Dense arrays (accumulators, v) have rows of `channels` values; int8
// and half tensors have rows `stride` elements apart. Outputs may be the same array as an input of the same type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/npu/rows.hpp"

namespace openrknn::npu {

// ---- int8 tasks: accumulators and v are int32 ----

// First stage, per channel: A (bias), B (minus the weight zero point; nullptr: none), C (multiplier; nullptr only with
// bypass). Shifts 0..63. |B| and |C| fit 17 bits.
struct ChannelStage {
  const int32_t* bias = nullptr;
  const int32_t* minus_weight_zero = nullptr;
  const int32_t* multiplier = nullptr;
  int32_t shift = 0;
  int32_t shift_negative = 0;
  bool bypass = false;
};
// v = channel_stage(acc + A[c] + B[c] * S). window_sums: one a pixel (direct), or pixels x channels when
// sums_per_channel (depthwise); nullptr when minus_weight_zero is.
void channel_stage_block(int64_t pixels, int64_t channels, const int32_t* accumulators, const int32_t* window_sums,
                         bool sums_per_channel, const ChannelStage& stage, int32_t* v);

// e = rne((x + offset) * multiplier, shift), saturated to int32.
struct OperandStage {
  int32_t offset = 0;  // minus the operand's zero point
  int32_t multiplier = 1;
  int32_t shift = 0;
};
void operand_block(int64_t pixels, int64_t channels, const int8_t* x, int64_t x_stride, const OperandStage& stage,
                   int32_t* v);
// v = sat32(v + e): a residual.
void add_operand_block(int64_t pixels, int64_t channels, const int8_t* x, int64_t x_stride, const OperandStage& stage,
                       int32_t* v);

// v = x; v = (a + a_offset) * (b + b_offset), offsets within 2^15.
void widen_s8(int64_t n, const int8_t* x, int32_t* v);
void multiply_s8(int64_t n, const int8_t* a, int32_t a_offset, const int8_t* b, int32_t b_offset, int32_t* v);

// y = table[x], x as unsigned; y may be x.
void look_up_s8(int64_t n, const int8_t* x, const int8_t* table, int8_t* y);

// v = sat32(a op b). Division has no integer form here.
enum class Combine : uint8_t { kAdd, kSub, kMul, kMax, kMin, kDiv };
void combine_s32(Combine op, int64_t n, const int32_t* a, const int32_t* b, int32_t* v);

void clamp_s32(int64_t n, int64_t low, int64_t high, int32_t* v);
// v < 0: v = sat32(rne(v * slope, shift)); slopes: one, or one per channel.
void prelu_s32(int64_t pixels, int64_t channels, const int16_t* slopes, int64_t slope_count, int32_t shift, int32_t* v);
// v = table_value(table, rne(v * index_scale, index_shift)); table int16 [2][513], see arithmetic.hpp.
void table_s32(int64_t n, const int16_t* table, int32_t index_scale, int32_t index_shift, int32_t* v);

struct OutputStage {
  int32_t multiplier = 1;
  int32_t shift = 0;
  int32_t zero_point = 0;
  bool zero_point_first = false;
};
void output_block(int64_t pixels, int64_t channels, const int32_t* v, const OutputStage& stage, int8_t* y,
                  int64_t y_stride);

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

// Between reals and int8 with a scale and a zero point: y = the nearest integer of x / scale, ties to even, plus zero,
// saturated; NaN as 0. |zero| < 2^16.
void quantize_s8(int64_t n, const float* x, float scale, int32_t zero, int8_t* y);
void dequantize_s8(int64_t n, const int8_t* x, float scale, int32_t zero, float* y);

// ---- fp16 tasks: accumulators and v are fp32 ----

void widen_block(int64_t pixels, int64_t channels, const uint16_t* x, int64_t x_stride, float* v);
void add_bias_f32(int64_t pixels, int64_t channels, const float* bias, float* v);
// v = v + x in fp32: a residual.
void add_half_block(int64_t pixels, int64_t channels, const uint16_t* x, int64_t x_stride, float* v);
void combine_f32(Combine op, int64_t n, const float* a, const float* b, float* v);
void clamp_f32(int64_t n, float low, float high, float* v);  // NaN stays NaN
void prelu_f32(int64_t pixels, int64_t channels, const float* slopes, int64_t slope_count, float* v);
// t = table_value(table, rne_int(v * index_scale)) * out_scale in fp32, then kValue t; kGate v * t; kPlus max(v, 0) +
// t. NaN stays NaN.
enum class TableForm : uint8_t { kValue, kGate, kPlus };
// y = fl16(min(max(v [+ bias], low), high)); bias per channel, or nullptr; NaN becomes 0x7E00.
void half_output_block(int64_t pixels, int64_t channels, const float* v, const float* bias, float low, float high,
                       uint16_t* y, int64_t y_stride);
void table_f32(int64_t n, const int16_t* table, float index_scale, float out_scale, TableForm form, float* v);
// One rounding to fp16, ties to even; NaN becomes 0x7E00. Returns how many finite values became infinite.
int64_t narrow_block(int64_t pixels, int64_t channels, const float* v, uint16_t* y, int64_t y_stride);

// ---- pooling ----

// A slab as in conv.hpp: NHWC, `stride` elements a pixel, padding filled in by the caller: the least value (int8 -128,
// fp16 0xFC00) for max, the padding value for average, which counts it.
struct PoolShape {
  int64_t in_w;      // pixels a row of the slab
  int64_t channels;  // of this call
  int64_t in_stride, out_stride;
  int64_t kernel_h, kernel_w, stride_h, stride_w;
  int64_t out_h, out_w;
};
void max_pool_s8(const PoolShape& shape, const int8_t* input, int8_t* output);
void average_pool_s8(const PoolShape& shape, const int8_t* input, int8_t* output);
// NaN never wins; of zeros of both signs the first stays.
void max_pool_f16(const PoolShape& shape, const uint16_t* input, uint16_t* output);
// fp32: the sum over the window, row by row, then * (1 / kernel_w) then * (1 / kernel_h), both reciprocals as halves;
// one rounding to fp16. The order is a guess.
void average_pool_f16(const PoolShape& shape, const uint16_t* input, uint16_t* output);

}  // namespace openrknn::npu
