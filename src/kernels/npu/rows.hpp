// Loops of elementwise.cpp that are compiled once per instruction set. They work in doubles, where every quantity is an
// exact integer or dyadic number under the limits that elementwise.cpp checks before it calls them; so they give what
// the 64-bit integers of arithmetic.hpp give.
#pragma once

#include <stdint.h>

namespace openrknn::npu {

// Accumulators to int8 in one pass: u = (acc + bias) * factor [+ (residual + offset) * factor] + constant in fp32, to
// an integer; y = sat8(u / 2^16 rounded down), clamped to [low, high]. The constant holds the zero point, the half that
// makes this the nearest integer, and a margin: where the fraction of a value does not exceed twice the
// margin, fp32 does not decide it, and `exact` gives it instead.
struct RequantizeBlock {
  int64_t pixels, channels;  // at most 64 channels
  const int32_t* acc;        // [pixels][channels]
  const int32_t* bias;       // per channel
  const float* factor;
  const int8_t* residual;  // nullptr: none; y may be the same
  int64_t residual_stride;
  int32_t residual_offset;
  float residual_factor, constant;
  int32_t margin;
  bool wide;  // u may leave int32: it is cut at kFarthest, far beyond every result and next to no tie
  int8_t low, high;
  int8_t* y;
  int64_t y_stride;
  int8_t (*exact)(const void* context, int32_t acc, int64_t index);  // index: into [pixels][channels]
  const void* context;
};
constexpr int kRequantizeBits = 16;
constexpr float kFarthest = 0x1p30F - 0x1p15F;

// What a table gives instead: u in units of 1 / kIndexUnit of an index, clamped to [0, last]; y = the low byte of
// results[index]. Where bit 8 is set there, so that a neighbour has another result, and the fraction does not exceed
// twice the margin, `exact` gives y. Two bytes behind results[last] may be read.
// `steps`, or nullptr: the same results as a staircase, for registers, if the last two are equal. The other indices, a
// power of two, come in kStepBins bins of kStepIndices, whose results change by the same amount, kMostSteps times at
// most. Bytes [2 + kMostSteps][kStepBins]: the result in front of the bin; the amount; for each change twice the index
// in the bin from which it holds, or kNoStep.
struct LookUp {
  int32_t last;
  const uint16_t* results;
  const uint8_t* steps;
};
constexpr int kIndexBits = 9;
constexpr int kIndexUnit = 1 << kIndexBits, kIndexHalf = kIndexUnit / 2;
constexpr int kStepBins = 256, kStepIndices = 128, kMostSteps = 3;
constexpr uint8_t kNoStep = 255;

// fp16 results from sums: y = fl16(min(max(v [+ bias], low), high)); NaN stays. Without limits: minus and plus
// infinity.
struct HalfOutput {
  int64_t pixels, channels;
  const float* v;     // [pixels][channels]
  const float* bias;  // per channel, or nullptr
  float low, high;
  uint16_t* y;
  int64_t y_stride;
};

struct RowKernels {
  const char* isa;  // that these are compiled for
  void (*requantize)(const RequantizeBlock&);
  void (*requantize_look_up)(const RequantizeBlock&, const LookUp&);
  // v = sat32(rne(t * c, s)), t = acc + bias + b * sum. `b`, `sums` may be nullptr; sums_step 0 (one for all) or 1.
  // scale, scale_negative: 2^-shift of non-negative and of negative products.
  void (*channel)(int64_t n, const int32_t* acc, const int32_t* bias, const int32_t* b, const int32_t* sums,
                  int64_t sums_step, const int32_t* c, double scale, double scale_negative, int32_t* v);
  // v = sat32([v +] rne((x + offset) * factor)), factor = multiplier * 2^-shift.
  void (*operand)(int64_t n, const int8_t* x, double offset, double factor, bool add, int32_t* v);
  // x = clamp(rne(v * factor), -limit, limit) + limit; limit an integer.
  void (*table_index)(int64_t n, const int32_t* v, double factor, double limit, int32_t* x);
  // The look-up table of fp16 tasks, int16 [2][513]: v = the value at rne(v * index_scale), times out_scale, put
  // together with v as `form` says (0: alone, 1: v times it, 2: max(v, 0) plus it). NaN stays.
  void (*half_table)(int64_t n, const int16_t* table, float index_scale, float out_scale, int form, float* v);
  void (*prelu)(int64_t n, const int16_t* slopes, int64_t slope_step, double scale, int32_t* v);
  void (*clamp)(int64_t n, int32_t low, int32_t high, int32_t* v);
  // y = sat8(rne(v * factor + inside) + outside).
  void (*output)(int64_t n, const int32_t* v, double factor, double inside, double outside, int8_t* y);
  // y = the nearest integer of x / scale, ties to even, plus zero, saturated; NaN as 0.
  void (*quantize_s8)(int64_t n, const float* x, float scale, int32_t zero, int8_t* y);
  void (*dequantize_s8)(int64_t n, const int8_t* x, float scale, int32_t zero, float* y);
  void (*widen)(int64_t n, const uint16_t* x, float* v);
  int64_t (*narrow)(int64_t n, const float* v, uint16_t* y);
  void (*half_output)(const HalfOutput&);
  // y = the largest of `taps` pixels of n channels, at x + offsets[tap]; `pixels` times, x_step and y_step apart.
  void (*max_s8)(int64_t pixels, int64_t n, int64_t taps, const int64_t* offsets, const int8_t* x, int64_t x_step,
                 int8_t* y, int64_t y_step);
  // The same of halves; NaN never wins, of zeros of both signs the first stays.
  void (*max_f16)(int64_t pixels, int64_t n, int64_t taps, const int64_t* offsets, const uint16_t* x, int64_t x_step,
                  uint16_t* y, int64_t y_step);
  void (*sum_s8)(int64_t n, const int8_t* x, int32_t* y);  // y += x
  void (*widen_s8)(int64_t n, const int8_t* x, int32_t* y);
  // y = (a + a_offset) * (b + b_offset)
  void (*multiply_s8)(int64_t n, const int8_t* a, int32_t a_offset, const int8_t* b, int32_t b_offset, int32_t* y);
  // y = table[x], x as unsigned; y may be x.
  void (*look_up_s8)(int64_t n, const int8_t* x, const int8_t* table, int8_t* y);
};

// Those in use.
const RowKernels& row_kernels();

extern const RowKernels kRowKernelsScalar;
#if defined(__x86_64__)
extern const RowKernels kRowKernelsAvx2;
extern const RowKernels kRowKernelsAvx512;
extern const RowKernels kRowKernelsAvx512Vbmi;
#endif

}  // namespace openrknn::npu
