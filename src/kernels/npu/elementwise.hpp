// The pipeline behind an accumulator over arrays: what arithmetic.hpp says of one value, with the same results. All of
// it in one pass: requantizer.hpp. Every function works on the calling thread and on no more than the range it is
// given: callers split pixels over threads and keep blocks small enough for the caches (about 64 KiB of int32).
//
// A block is `pixels` rows of `channels` values. Dense arrays (accumulators, v) have rows of `channels` values; int8
// and half tensors have rows `stride` elements apart. Outputs may be the same array as an input of the same type.
#pragma once

#include <cstdint>

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

}  // namespace openrknn::npu
