#include "kernels/npu/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu/kept.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

const RowKernels& rows() {
#if defined(__x86_64__)
  if (isa() == Isa::kAvx512Vbmi) return kRowKernelsAvx512Vbmi;
  const Isa vectors = without_dot(isa());
  if (vectors == Isa::kAvx512) return kRowKernelsAvx512;
  if (vectors == Isa::kAvx2) return kRowKernelsAvx2;
#endif
  return kRowKernelsScalar;
}

// Blocks whose rows touch are one long row.
struct Extent {
  int64_t rows, length;
};
Extent merged(int64_t pixels, int64_t channels, int64_t stride) {
  return stride == channels ? Extent{1, pixels * channels} : Extent{pixels, channels};
}

// Doubles hold t * C exactly while |t| < 2^36 (|B * S| < 2^35 as |S| < 2^24) and |C| < 2^17.
bool channel_stage_is_exact_in_doubles(int64_t channels, const ChannelStage& stage) {
  if (stage.bypass || stage.multiplier == nullptr) return false;
  for (int64_t c = 0; c < channels; ++c) {
    if (stage.minus_weight_zero != nullptr && !within(stage.minus_weight_zero[c], 2048)) return false;
    if (!within(stage.multiplier[c], 65535)) return false;
  }
  return true;
}

// |x + offset| < 2^21 and 31 bits of multiplier.
bool operand_stage_is_exact_in_doubles(const OperandStage& stage) { return within(stage.offset, 1 << 20); }

bool output_stage_is_exact_in_doubles(const OutputStage& stage) {
  return within(stage.multiplier, 65536) && within(stage.zero_point, 65535) &&
         (!stage.zero_point_first || stage.shift <= 32);
}

constexpr int64_t kChannelBlock = 256;

}  // namespace

const RowKernels& row_kernels() { return rows(); }

void channel_stage_block(int64_t pixels, int64_t channels, const int32_t* accumulators, const int32_t* window_sums,
                         bool sums_per_channel, const ChannelStage& stage, int32_t* v) {
  const bool exact = channel_stage_is_exact_in_doubles(channels, stage);
  const double scale = power_of_two(-stage.shift), scale_negative = power_of_two(-stage.shift_negative);
  if (exact && window_sums == nullptr && pixels > 1 && channels <= kChannelBlock / 2) {
    // Several pixels at a time, since rows of few values do not fill vectors.
    const int64_t repeats = std::min(pixels, kChannelBlock / channels), row = repeats * channels;
    int32_t bias[kChannelBlock], multiplier[kChannelBlock];
    for (int64_t i = 0; i < repeats; ++i) {
      std::copy_n(stage.bias, channels, bias + i * channels);
      std::copy_n(stage.multiplier, channels, multiplier + i * channels);
    }
    for (int64_t first = 0; first < pixels * channels; first += row) {
      rows().channel(std::min(row, pixels * channels - first), accumulators + first, bias, nullptr, nullptr, 0,
                     multiplier, scale, scale_negative, v + first);
    }
    return;
  }
  for (int64_t p = 0; p < pixels; ++p) {
    const int32_t* acc = accumulators + p * channels;
    const int32_t* sums = window_sums == nullptr ? nullptr : window_sums + (sums_per_channel ? p * channels : p);
    if (exact) {
      rows().channel(channels, acc, stage.bias, stage.minus_weight_zero, sums, sums_per_channel ? 1 : 0,
                     stage.multiplier, scale, scale_negative, v + p * channels);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      int64_t t = static_cast<int64_t>(acc[c]) + stage.bias[c];
      if (sums != nullptr && stage.minus_weight_zero != nullptr) {
        t += static_cast<int64_t>(stage.minus_weight_zero[c]) * sums[sums_per_channel ? c : 0];
      }
      const int32_t multiplier = stage.multiplier == nullptr ? 1 : stage.multiplier[c];
      v[p * channels + c] = channel_stage(t, multiplier, stage.shift, stage.shift_negative, stage.bypass);
    }
  }
}

void operand_block(int64_t pixels, int64_t channels, const int8_t* x, int64_t x_stride, const OperandStage& stage,
                   int32_t* v) {
  const Extent e = merged(pixels, channels, x_stride);
  const double factor = stage.multiplier * power_of_two(-stage.shift);
  for (int64_t row = 0; row < e.rows; ++row) {
    const int8_t* from = x + row * x_stride;
    int32_t* to = v + row * channels;
    if (operand_stage_is_exact_in_doubles(stage)) {
      rows().operand(e.length, from, stage.offset, factor, false, to);
    } else {
      for (int64_t i = 0; i < e.length; ++i) {
        to[i] = sat32(operand_stage(from[i], stage.offset, stage.multiplier, stage.shift));
      }
    }
  }
}

void add_operand_block(int64_t pixels, int64_t channels, const int8_t* x, int64_t x_stride, const OperandStage& stage,
                       int32_t* v) {
  const Extent e = merged(pixels, channels, x_stride);
  const double factor = stage.multiplier * power_of_two(-stage.shift);
  for (int64_t row = 0; row < e.rows; ++row) {
    const int8_t* from = x + row * x_stride;
    int32_t* to = v + row * channels;
    if (operand_stage_is_exact_in_doubles(stage)) {
      rows().operand(e.length, from, stage.offset, factor, true, to);
    } else {
      for (int64_t i = 0; i < e.length; ++i) {
        const int32_t operand = sat32(operand_stage(from[i], stage.offset, stage.multiplier, stage.shift));
        to[i] = sat32(static_cast<int64_t>(to[i]) + operand);
      }
    }
  }
}

void widen_s8(int64_t n, const int8_t* x, int32_t* v) { rows().widen_s8(n, x, v); }
void look_up_s8(int64_t n, const int8_t* x, const int8_t* table, int8_t* y) { rows().look_up_s8(n, x, table, y); }

void multiply_s8(int64_t n, const int8_t* a, int32_t a_offset, const int8_t* b, int32_t b_offset, int32_t* v) {
  rows().multiply_s8(n, a, a_offset, b, b_offset, v);
}

void combine_s32(Combine op, int64_t n, const int32_t* a, const int32_t* b, int32_t* v) {
  switch (op) {
    case Combine::kAdd:
      for (int64_t i = 0; i < n; ++i) v[i] = sat32(static_cast<int64_t>(a[i]) + b[i]);
      break;
    case Combine::kSub:
      for (int64_t i = 0; i < n; ++i) v[i] = sat32(static_cast<int64_t>(a[i]) - b[i]);
      break;
    case Combine::kMul:
    case Combine::kDiv:  // no integer form: callers compile it otherwise
      for (int64_t i = 0; i < n; ++i) v[i] = sat32(static_cast<int64_t>(a[i]) * b[i]);
      break;
    case Combine::kMax:
      for (int64_t i = 0; i < n; ++i) v[i] = std::max(a[i], b[i]);
      break;
    case Combine::kMin:
      for (int64_t i = 0; i < n; ++i) v[i] = std::min(a[i], b[i]);
      break;
  }
}

void clamp_s32(int64_t n, int64_t low, int64_t high, int32_t* v) { rows().clamp(n, sat32(low), sat32(high), v); }

void prelu_s32(int64_t pixels, int64_t channels, const int16_t* slopes, int64_t slope_count, int32_t shift,
               int32_t* v) {
  const double scale = power_of_two(-shift);
  for (int64_t p = 0; p < pixels; ++p) rows().prelu(channels, slopes, slope_count > 1 ? 1 : 0, scale, v + p * channels);
}

void table_s32(int64_t n, const int16_t* table, int32_t index_scale, int32_t index_shift, int32_t* v) {
  for (int64_t i = 0; i < n; ++i) v[i] = table_value(table, rne(static_cast<int64_t>(v[i]) * index_scale, index_shift));
}

void output_block(int64_t pixels, int64_t channels, const int32_t* v, const OutputStage& stage, int8_t* y,
                  int64_t y_stride) {
  const Extent e = merged(pixels, channels, y_stride);
  const double factor = stage.multiplier * power_of_two(-stage.shift);
  const double inside = stage.zero_point_first ? stage.zero_point : 0;
  const double outside = stage.zero_point_first ? 0 : stage.zero_point;
  for (int64_t row = 0; row < e.rows; ++row) {
    const int32_t* from = v + row * channels;
    int8_t* to = y + row * y_stride;
    if (output_stage_is_exact_in_doubles(stage)) {
      rows().output(e.length, from, factor, inside, outside, to);
    } else {
      for (int64_t i = 0; i < e.length; ++i) {
        to[i] = output_stage(from[i], stage.multiplier, stage.shift, stage.zero_point, stage.zero_point_first);
      }
    }
  }
}

void quantize_s8(int64_t n, const float* x, float scale, int32_t zero, int8_t* y) {
  rows().quantize_s8(n, x, scale, zero, y);
}

void dequantize_s8(int64_t n, const int8_t* x, float scale, int32_t zero, float* y) {
  rows().dequantize_s8(n, x, scale, zero, y);
}

void widen_block(int64_t pixels, int64_t channels, const uint16_t* x, int64_t x_stride, float* v) {
  const Extent e = merged(pixels, channels, x_stride);
  for (int64_t row = 0; row < e.rows; ++row) rows().widen(e.length, x + row * x_stride, v + row * channels);
}

void add_bias_f32(int64_t pixels, int64_t channels, const float* bias, float* v) {
  for (int64_t p = 0; p < pixels; ++p) {
    float* row = v + p * channels;
    for (int64_t c = 0; c < channels; ++c) row[c] += bias[c];
  }
}

void add_half_block(int64_t pixels, int64_t channels, const uint16_t* x, int64_t x_stride, float* v) {
  float wide[kChannelBlock];
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; c += kChannelBlock) {
      const int64_t n = std::min(kChannelBlock, channels - c);
      rows().widen(n, x + p * x_stride + c, wide);
      float* row = v + p * channels + c;
      for (int64_t i = 0; i < n; ++i) row[i] += wide[i];
    }
  }
}

void combine_f32(Combine op, int64_t n, const float* a, const float* b, float* v) {
  switch (op) {
    case Combine::kAdd:
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] + b[i];
      break;
    case Combine::kSub:
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] - b[i];
      break;
    case Combine::kMul:
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] * b[i];
      break;
    case Combine::kDiv:
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] / b[i];
      break;
    case Combine::kMax:  // of a NaN and a number: b
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] > b[i] ? a[i] : b[i];
      break;
    case Combine::kMin:
      for (int64_t i = 0; i < n; ++i) v[i] = a[i] < b[i] ? a[i] : b[i];
      break;
  }
}

void clamp_f32(int64_t n, float low, float high, float* v) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = v[i] < low ? low : v[i];
    v[i] = x > high ? high : x;
  }
}

void prelu_f32(int64_t pixels, int64_t channels, const float* slopes, int64_t slope_count, float* v) {
  const int64_t step = slope_count > 1 ? 1 : 0;
  for (int64_t p = 0; p < pixels; ++p) {
    float* row = v + p * channels;
    for (int64_t c = 0; c < channels; ++c) row[c] = row[c] < 0 ? row[c] * slopes[c * step] : row[c];
  }
}

void table_f32(int64_t n, const int16_t* table, float index_scale, float out_scale, TableForm form, float* v) {
  static_assert(static_cast<int>(TableForm::kValue) == 0 && static_cast<int>(TableForm::kGate) == 1 &&
                static_cast<int>(TableForm::kPlus) == 2);
  rows().half_table(n, table, index_scale, out_scale, static_cast<int>(form), v);
}

void half_output_block(int64_t pixels, int64_t channels, const float* v, const float* bias, float low, float high,
                       uint16_t* y, int64_t y_stride) {
  rows().half_output({pixels, channels, v, bias, low, high, y, y_stride});
}

int64_t narrow_block(int64_t pixels, int64_t channels, const float* v, uint16_t* y, int64_t y_stride) {
  const Extent e = merged(pixels, channels, y_stride);
  int64_t overflows = 0;
  for (int64_t row = 0; row < e.rows; ++row) {
    overflows += rows().narrow(e.length, v + row * channels, y + row * y_stride);
  }
  return overflows;
}

}  // namespace openrknn::npu
