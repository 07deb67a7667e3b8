#include "npu/requant.hpp"

#include <algorithm>
#include <cmath>

namespace openrknn::npu {
namespace {

constexpr int32_t kLargestMultiplier = 32767;
constexpr int32_t kSmallestMultiplier = 16384;
constexpr int32_t kLargestShift = 46;

}  // namespace

double FixedRatio::value() const { return std::ldexp(static_cast<double>(multiplier), -shift); }

FixedRatio fixed_ratio(double ratio) {
  if (!(ratio > 0)) return {0, 0};
  int exponent = 0;
  const double mantissa = std::frexp(ratio, &exponent);  // in [0.5, 1)
  auto multiplier = static_cast<int64_t>(std::nearbyint(mantissa * 32768.0));
  int shift = 15 - exponent;
  if (multiplier > kLargestMultiplier) {  // rounded up to 2^15
    multiplier = kSmallestMultiplier;
    shift -= 1;
  }
  if (shift < 0) return {kLargestMultiplier, 0};
  if (shift > kLargestShift) {
    const double reduced = std::ldexp(ratio, kLargestShift);
    return {static_cast<int32_t>(std::min<double>(std::nearbyint(reduced), kLargestMultiplier)), kLargestShift};
  }
  return {static_cast<int32_t>(multiplier), shift};
}

ChannelStage channel_stage_constants(const NumericsProfile& profile, std::span<const ChannelGain> gains, bool per_layer,
                                     double finest_v_scale) {
  ChannelStage stage;
  double largest_scale = 0;
  for (const ChannelGain& g : gains) largest_scale = std::max(largest_scale, g.scale);
  const bool q14 = profile.channel_multiplier == ChannelMultiplier::kQ14;
  const bool needs_shift = finest_v_scale > largest_scale;
  if (per_layer && !needs_shift) {
    stage.bypass = true;
    stage.v_scale = largest_scale;
    return stage;
  }
  const double unit = q14 ? 16384.0 : static_cast<double>(kLargestMultiplier);
  for (const ChannelGain& g : gains) {
    stage.multipliers.push_back(static_cast<int32_t>(std::max(1.0, std::nearbyint(g.scale / largest_scale * unit))));
  }
  if (q14) {
    stage.shift = 14;
    stage.v_scale = largest_scale;
    return stage;
  }
  double largest = 0;
  for (size_t c = 0; c < gains.size(); ++c) largest = std::max(largest, gains[c].largest * stage.multipliers[c]);
  // A quarter of the range is left to a fused residual.
  const double room = finest_v_scale > 0 ? 0x1p30 : 0x1p31;
  while (stage.shift < 46 && largest >= std::ldexp(room, stage.shift)) ++stage.shift;
  const auto v_scale = [&] { return std::ldexp(largest_scale / unit, stage.shift); };
  while (stage.shift < 46 && v_scale() < finest_v_scale) ++stage.shift;
  stage.v_scale = v_scale();
  return stage;
}

OperandPair operand_pair(double scale_a, int32_t zero_a, double scale_b, int32_t zero_b) {
  OperandPair pair;
  const double larger = std::max(scale_a, scale_b);
  pair.v_scale = larger / kLargestMultiplier;
  const auto constant = [&](double scale) { return static_cast<int32_t>(std::nearbyint(scale / pair.v_scale)); };
  pair.a = {-zero_a, constant(scale_a), 0};
  pair.b = {-zero_b, constant(scale_b), 0};
  return pair;
}

}  // namespace openrknn::npu
