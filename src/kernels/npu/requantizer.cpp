#include "kernels/npu/requantizer.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/npu/arithmetic.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kTableBlock = 256;             // values that are looked up at a time
constexpr int64_t kFewChannels = 8;              // for which a copy is cheaper than vectors with idle lanes
constexpr int32_t kLastIndex = 2 * kTableLimit;  // of tables, counted from 0

}  // namespace

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
  int32_t index[kTableBlock];
  const uint16_t* results = results_.data();
  int64_t pixel = 0, channel = 0;
  for (int64_t first = 0; first < pixels * channels; first += kTableBlock) {
    const int64_t n = std::min(kTableBlock, pixels * channels - first);
    row_kernels().table_index(n, v + first, factor_, kTableLimit, index);
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
  if (stages_.table == nullptr) return row_kernels().requantize(b);
  row_kernels().requantize_look_up(b, stages_.table->look_up());
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

}  // namespace openrknn::npu
