#include "kernels/npu/elementwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

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

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

bool within(int64_t x, int64_t limit) { return x >= -limit && x <= limit; }

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

float half_reciprocal(int64_t kernel) {
  // Halves of 1 / k: numerators of 16 bits scaled by 2^-16, which is what the unit's registers hold.
  uint16_t bits = 0;
  const float reciprocal = 1.0F / static_cast<float>(kernel);
  rows().narrow(1, &reciprocal, &bits);
  float value = 0.0F;
  rows().widen(1, &bits, &value);
  return value;
}

template <typename T>
const T* window_pixel(const PoolShape& s, const T* input, int64_t y, int64_t x, int64_t kh, int64_t kw) {
  return input + ((y * s.stride_h + kh) * s.in_w + x * s.stride_w + kw) * s.in_stride;
}

template <typename Body>
void for_pool_windows(const PoolShape& s, const Body& body) {
  for (int64_t y = 0; y < s.out_h; ++y) {
    for (int64_t x = 0; x < s.out_w; ++x) body(y, x, (y * s.out_w + x) * s.out_stride);
  }
}

constexpr int64_t kChannelBlock = 256;
constexpr int64_t kFewChannels = 8;              // for which a copy is cheaper than vectors with idle lanes
constexpr int32_t kLastIndex = 2 * kTableLimit;  // of tables, counted from 0

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

TableOutput::TableOutput(const int16_t* table, int32_t index_scale, int32_t index_shift, const OutputStage& stage)
    : index_scale_(index_scale),
      index_shift_(index_shift),
      factor_(index_scale * power_of_two(-index_shift)),
      results_(static_cast<size_t>(kLastIndex) + 2) {  // vectors read pairs
  std::vector<int32_t> values;
  for (int32_t x = -kTableLimit; x <= kTableLimit; ++x) values.push_back(table_value(table, x));
  const auto n = static_cast<int64_t>(values.size());
  std::vector<int8_t> results(values.size());
  output_block(1, n, values.data(), stage, results.data(), n);
  for (size_t i = 0; i < results.size(); ++i) {
    const bool edge =
        (i > 0 && results[i - 1] != results[i]) || (i + 1 < results.size() && results[i + 1] != results[i]);
    results_[i] = static_cast<uint16_t>(static_cast<uint8_t>(results[i]) | (edge ? 0x100 : 0));
  }
  set_steps();
}

void TableOutput::set_steps() {
  static_assert(kStepBins * kStepIndices == kLastIndex);
  const auto result = [&](int32_t index) { return static_cast<uint8_t>(results_[static_cast<size_t>(index)]); };
  if (result(kLastIndex) != result(kLastIndex - 1)) return;  // the last index is in no bin
  std::vector<uint8_t> steps(size_t{2 + kMostSteps} * kStepBins, kNoStep);
  for (int32_t bin = 0; bin < kStepBins; ++bin) {
    const auto byte = [&](int row) -> uint8_t& { return steps[static_cast<size_t>(row * kStepBins + bin)]; };
    const int32_t begin = bin * kStepIndices;
    int count = 0;
    uint8_t amount = 0;
    for (int32_t i = std::max(begin, 1); i < begin + kStepIndices; ++i) {
      const auto change = static_cast<uint8_t>(result(i) - result(i - 1));
      if (change == 0) continue;
      if (count == kMostSteps || (count > 0 && change != amount)) return;
      amount = change;
      byte(2 + count++) = static_cast<uint8_t>(2 * (i - begin));
    }
    byte(0) = result(std::max(begin - 1, 0));
    byte(1) = amount;
  }
  steps_ = std::move(steps);
}

LookUp TableOutput::look_up() const { return {kLastIndex, results_.data(), steps_.empty() ? nullptr : steps_.data()}; }

int8_t TableOutput::exact(int64_t v) const {
  const int64_t x = std::clamp<int64_t>(rne(v * index_scale_, index_shift_), -kTableLimit, kTableLimit);
  return static_cast<int8_t>(results_[static_cast<size_t>(x + kTableLimit)]);
}

void TableOutput::run(int64_t pixels, int64_t channels, const int32_t* v, int8_t* y, int64_t y_stride) const {
  int32_t index[kChannelBlock];
  const uint16_t* results = results_.data();
  int64_t pixel = 0, channel = 0;
  for (int64_t first = 0; first < pixels * channels; first += kChannelBlock) {
    const int64_t n = std::min(kChannelBlock, pixels * channels - first);
    rows().table_index(n, v + first, factor_, kTableLimit, index);
    for (int64_t i = 0; i < n;) {  // to the end of a pixel
      const int64_t end = std::min(n, i + channels - channel);
      int8_t* to = y + pixel * y_stride + channel;
      channel += end - i;
      for (; i < end; ++i) *to++ = static_cast<int8_t>(results[index[i]]);
      if (channel < channels) continue;
      channel = 0;
      ++pixel;
    }
  }
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

Requantizer::Requantizer(const Stages& s) : has_residual_(s.residual != nullptr), stages_(s) {
  if (has_residual_) residual_ = *s.residual;
  if (s.table != nullptr) {
    // Where an index is next to a tie between two, and these have other results, the stages decide.
    if (s.table->factor() <= 0 || !set_factors(s, s.table->factor(), kIndexUnit)) return;
    if (!set_margin(s.table->factor(), kTableLimit, kLastIndex, kIndexUnit)) return;
    constant_ = static_cast<float>(kTableLimit * kIndexUnit + kIndexHalf + margin_);
    usable_ = true;
    share_pixels();
    return;
  }
  const OutputStage& out = s.output;
  if (out.multiplier <= 0 || !within(out.zero_point, 255) || out.shift > 62) return;
  const double out_factor = out.multiplier * power_of_two(-out.shift);
  constexpr double kUnit = 1 << kRequantizeBits;
  if (!set_factors(s, out_factor, kUnit)) return;
  wide_ = farthest_ + residual_reach_ + 1024 >= static_cast<double>(kFarthest) / kUnit;
  set_output(s, out_factor);
}

// False where something may saturate before the last step, or acc + bias leave int32.
bool Requantizer::set_factors(const Stages& s, double out_factor, double unit) {
  const ChannelStage& c = s.channel;
  if (c.shift > 62 || (!c.bypass && (c.shift != c.shift_negative || c.multiplier == nullptr))) return false;
  const double step = c.bypass ? 1.0 : power_of_two(-c.shift);
  constexpr double kLimit = 0x1p31 - 2;
  factors_.resize(static_cast<size_t>(s.channels));
  for (int64_t i = 0; i < s.channels; ++i) {
    if (c.minus_weight_zero != nullptr && c.minus_weight_zero[i] != 0) return false;
    const auto t = static_cast<double>(std::max(std::abs(s.least[i] + c.bias[i]), std::abs(s.largest[i] + c.bias[i])));
    const double factor = c.bypass ? 1.0 : c.multiplier[i] * step;
    if (t >= kLimit || t * std::abs(factor) >= kLimit) return false;
    farthest_ = std::max(farthest_, t * std::abs(factor) * out_factor);
    factors_[static_cast<size_t>(i)] = static_cast<float>(factor * out_factor * unit);
  }
  if (!has_residual_) return true;
  if (!within(residual_.offset, 65535) || residual_.shift > 62) return false;
  const double factor = residual_.multiplier * power_of_two(-residual_.shift);
  const double largest = (128.0 + std::abs(static_cast<double>(residual_.offset))) * std::abs(factor);
  residual_factor_ = static_cast<float>(factor * out_factor * unit);
  residual_reach_ = largest * out_factor;
  return largest < kLimit;
}

void Requantizer::set_output(const Stages& s, double out_factor) {
  const OutputStage& out = s.output;
  const auto bound = [&](int64_t v) {
    return output_stage(sat32(v), out.multiplier, out.shift, out.zero_point, out.zero_point_first);
  };
  low_ = bound(s.clamps ? s.low : INT32_MIN);
  high_ = bound(s.clamps ? s.high : INT32_MAX);
  constexpr int32_t kUnit = 1 << kRequantizeBits, kHalf = kUnit / 2;
  constexpr double kResult = 130;  // that is not clamped
  if (!set_margin(out_factor, kResult + std::abs(static_cast<double>(out.zero_point)), kResult, kUnit)) return;
  constant_ = static_cast<float>(out.zero_point * kUnit + kHalf + margin_);
  usable_ = true;
  share_pixels();
}

// What a result of at most `result` that was at most `reach` in front of the constant can be moved by: inner roundings
// of the stages, half a unit of v each; those of fp32 (of the accumulator and its factor; of its sum with the constant;
// the same for the residual); and the conversion to an integer of units 1 / `unit`. False where that is a tenth.
bool Requantizer::set_margin(double out_factor, double reach, double result, int32_t unit) {
  const double inner = out_factor * (has_residual_ ? 1.0 : 0.5);
  const double share = reach + residual_reach_;  // the accumulator's
  const double rounded = 2 * share + (has_residual_ ? share + result + residual_reach_ : 0) + result;
  const double moved = inner + 0x1p-24 * 1.01 * rounded + 1.0 / unit;
  if (moved >= 0.1) return false;
  margin_ = static_cast<int32_t>(std::ceil(moved * unit));
  return true;
}

void Requantizer::share_pixels() {
  const int64_t channels = stages_.channels;
  if (channels >= kMostChannels || kMostChannels % channels != 0) return;
  for (int64_t i = 0; i < kMostChannels; ++i) {
    shared_bias_.push_back(stages_.channel.bias[i % channels]);
    shared_factors_.push_back(factors_[static_cast<size_t>(i % channels)]);
  }
}

int64_t Requantizer::stages_before_output(int64_t channel, int32_t acc, const int8_t* residual) const {
  const ChannelStage& c = stages_.channel;
  const int32_t multiplier = c.multiplier == nullptr ? 1 : c.multiplier[channel];
  const int32_t v =
      channel_stage(static_cast<int64_t>(acc) + c.bias[channel], multiplier, c.shift, c.shift_negative, c.bypass);
  if (residual == nullptr) return v;
  const OperandStage& r = residual_;
  return sat32(int64_t{v} + sat32(operand_stage(*residual, r.offset, r.multiplier, r.shift)));
}

int8_t Requantizer::exact(int64_t channel, int32_t acc, const int8_t* residual) const {
  int64_t v = stages_before_output(channel, acc, residual);
  if (stages_.table != nullptr) return stages_.table->exact(v);
  if (stages_.clamps) v = std::min<int64_t>(std::max<int64_t>(v, sat32(stages_.low)), sat32(stages_.high));
  const OutputStage& out = stages_.output;
  return output_stage(v, out.multiplier, out.shift, out.zero_point, out.zero_point_first);
}

void Requantizer::run_rows(const RequantizeBlock& b) const {
  if (stages_.table == nullptr) return rows().requantize(b);
  rows().requantize_look_up(b, stages_.table->look_up());
}

bool RequantizeCall::share_rows() {
  RequantizeBlock& b = block;
  const bool dense = b.y_stride == b.channels && (b.residual == nullptr || b.residual_stride == b.channels);
  if (!dense || requantizer->shared_bias_.empty() || b.channels != requantizer->stages_.channels) return false;
  b.bias = requantizer->shared_bias_.data();
  b.factor = requantizer->shared_factors_.data();
  b.pixels = b.pixels * b.channels / Requantizer::kMostChannels;
  b.channels = b.y_stride = b.residual_stride = Requantizer::kMostChannels;
  return true;
}

void RequantizeCall::skip_rows(int64_t rows) {
  const int64_t values = rows * block.channels;
  done += values;
  if (block.acc != nullptr) block.acc += values;
  block.y += values;
  if (block.residual != nullptr) block.residual += values;
}

// Rows of kMostChannels values, and one of the rest.
void Requantizer::run_shared(RequantizeCall& call, int64_t values) const {
  RequantizeBlock& b = call.block;
  run_rows(b);
  if (values % kMostChannels == 0) return;
  call.skip_rows(b.pixels);
  b.pixels = 1;
  b.channels = values % kMostChannels;
  run_rows(b);
}

// Pixels of few channels that lie apart, by way of some that lie together.
void Requantizer::run_apart(int64_t pixels, const int32_t* acc, int8_t* y, int64_t y_stride) const {
  int8_t results[1024];
  const int64_t channels = stages_.channels, step = static_cast<int64_t>(sizeof(results)) / channels;
  for (int64_t first = 0; first < pixels; first += step) {
    const int64_t n = std::min(step, pixels - first);
    run(n, 0, channels, acc + first * channels, nullptr, 0, results, channels);
    for (int64_t p = 0; p < n; ++p) std::copy_n(results + p * channels, channels, y + (first + p) * y_stride);
  }
}

void Requantizer::describe(int64_t pixels, int64_t channel, int64_t channels, const int8_t* residual,
                           int64_t residual_stride, int8_t* y, int64_t y_stride, RequantizeCall& call) const {
  call.requantizer = this;
  call.channel = channel;
  call.channels = channels;
  call.residual = residual;
  call.residual_stride = residual_stride;
  call.done = 0;
  RequantizeBlock& b = call.block;
  b = {};
  b.pixels = pixels;
  b.channels = channels;
  b.bias = stages_.channel.bias + channel;
  b.factor = factors_.data() + channel;
  b.residual = residual;
  b.residual_stride = residual_stride;
  b.residual_offset = residual_.offset;
  b.residual_factor = residual_factor_;
  b.constant = constant_;
  b.margin = margin_;
  b.wide = wide_;
  b.low = low_;
  b.high = high_;
  b.y = y;
  b.y_stride = y_stride;
  b.exact = [](const void* context, int32_t acc, int64_t index) {
    const auto& c = *static_cast<const RequantizeCall*>(context);
    const int64_t at = c.done + index, pixel = at / c.channels, lane = at % c.channels;
    const int8_t* other = c.residual == nullptr ? nullptr : c.residual + pixel * c.residual_stride + lane;
    return c.requantizer->exact(c.channel + lane, acc, other);
  };
  b.context = &call;
}

void Requantizer::run(int64_t pixels, int64_t channel, int64_t channels, const int32_t* acc, const int8_t* residual,
                      int64_t residual_stride, int8_t* y, int64_t y_stride) const {
  RequantizeCall call;
  describe(pixels, channel, channels, residual, residual_stride, y, y_stride, call);
  call.block.acc = acc;
  if (call.share_rows()) return run_shared(call, pixels * channels);
  const bool shares = !shared_bias_.empty() && channels == stages_.channels;
  if (shares && residual == nullptr && channels <= kFewChannels && pixels > 1)
    return run_apart(pixels, acc, y, y_stride);
  run_rows(call.block);
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

static std::vector<int64_t> tap_offsets(const PoolShape& s) {
  std::vector<int64_t> offsets;
  for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
    for (int64_t kw = 0; kw < s.kernel_w; ++kw) offsets.push_back((kh * s.in_w + kw) * s.in_stride);
  }
  return offsets;
}

namespace {

// Whether it is cheaper to take the largest of each column first: whole rows fill vectors, channels of a pixel may not.
bool columns_first(const PoolShape& s) {
  constexpr int64_t kVector = 64;
  const int64_t pieces = s.channels / kVector + s.channels % kVector / 16 + (s.channels % 16 + 7) / 8;
  const int64_t apart = s.kernel_h * s.kernel_w * pieces;
  return s.stride_w * s.kernel_h * ceil_div(s.in_stride, kVector) + s.kernel_w * pieces < apart;
}

}  // namespace

void max_pool_s8(const PoolShape& s, const int8_t* input, int8_t* output) {
  const std::vector<int64_t> offsets = tap_offsets(s);
  const bool columns = columns_first(s);
  const int64_t row = ((s.out_w - 1) * s.stride_w + s.kernel_w - 1) * s.in_stride + s.channels;
  std::vector<int64_t> down(static_cast<size_t>(s.kernel_h));
  for (size_t i = 0; i < down.size(); ++i) down[i] = static_cast<int64_t>(i) * s.in_w * s.in_stride;
  Kept<int8_t> largest(static_cast<size_t>(columns ? row : 0));
  for (int64_t y = 0; y < s.out_h; ++y) {
    const int8_t* from = window_pixel(s, input, y, 0, 0, 0);
    int8_t* to = output + y * s.out_w * s.out_stride;
    if (columns) {
      rows().max_s8(1, row, s.kernel_h, down.data(), from, 0, largest.data(), 0);
      rows().max_s8(s.out_w, s.channels, s.kernel_w, offsets.data(), largest.data(), s.stride_w * s.in_stride, to,
                    s.out_stride);
    } else {
      rows().max_s8(s.out_w, s.channels, s.kernel_h * s.kernel_w, offsets.data(), from, s.stride_w * s.in_stride, to,
                    s.out_stride);
    }
  }
}

void average_pool_s8(const PoolShape& s, const int8_t* input, int8_t* output) {
  const auto kernel_h = static_cast<int>(s.kernel_h), kernel_w = static_cast<int>(s.kernel_w);
  int32_t sums[kChannelBlock];
  for_pool_windows(s, [&](int64_t y, int64_t x, int64_t at) {
    for (int64_t c = 0; c < s.channels; c += kChannelBlock) {
      const int64_t n = std::min(kChannelBlock, s.channels - c);
      std::fill_n(sums, n, 0);
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        rows().sum_s8(n, window_pixel(s, input, y, x, tap / s.kernel_w, tap % s.kernel_w) + c, sums);
      }
      for (int64_t i = 0; i < n; ++i) output[at + c + i] = average_stage(sums[i], kernel_h, kernel_w);
    }
  });
}

void max_pool_f16(const PoolShape& s, const uint16_t* input, uint16_t* output) {
  const std::vector<int64_t> offsets = tap_offsets(s);
  for (int64_t y = 0; y < s.out_h; ++y) {
    rows().max_f16(s.out_w, s.channels, s.kernel_h * s.kernel_w, offsets.data(), window_pixel(s, input, y, 0, 0, 0),
                   s.stride_w * s.in_stride, output + y * s.out_w * s.out_stride, s.out_stride);
  }
}

void average_pool_f16(const PoolShape& s, const uint16_t* input, uint16_t* output) {
  const float recip_w = half_reciprocal(s.kernel_w), recip_h = half_reciprocal(s.kernel_h);
  float sums[kChannelBlock], wide[kChannelBlock];
  for_pool_windows(s, [&](int64_t y, int64_t x, int64_t at) {
    for (int64_t c = 0; c < s.channels; c += kChannelBlock) {
      const int64_t n = std::min(kChannelBlock, s.channels - c);
      std::fill_n(sums, n, 0.0F);
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        rows().widen(n, window_pixel(s, input, y, x, tap / s.kernel_w, tap % s.kernel_w) + c, wide);
        for (int64_t i = 0; i < n; ++i) sums[i] += wide[i];
      }
      for (int64_t i = 0; i < n; ++i) sums[i] = sums[i] * recip_w * recip_h;
      rows().narrow(n, sums, output + at + c);
    }
  });
}

}  // namespace openrknn::npu
