// Real multipliers turned into the hardware's integer constants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numerics.hpp"
#include "model/program.hpp"

namespace openrknn::npu {

// ratio ~ multiplier / 2^shift with multiplier in 16384..32767, rounded to nearest (DESIGN section 5: without the "+1"
// of the open driver). Ratios from 2^15 up saturate, those below 2^-32 lose bits: shift stays in 0..46, so that v *
// multiplier and zero_point << shift fit 64 bits.
struct FixedRatio {
  int32_t multiplier = 0;
  int32_t shift = 0;
  double value() const;
};
FixedRatio fixed_ratio(double ratio);

// What one output channel of a convolution brings: its real scale (input scale times weight scale) and the largest
// magnitude its accumulator can reach with the real weights and any input.
struct ChannelGain {
  double scale = 0;
  double largest = 0;  // |t| max
};

// The first stage: per-channel multipliers C and one shift, and the real value of one step of v behind it.
struct ChannelStage {
  std::vector<int32_t> multipliers;  // empty when bypassed
  int32_t shift = 0;
  bool bypass = false;
  double v_scale = 0;
};
// `finest_v_scale`: v must not be finer than this (a fused residual's 16-bit multiplier has to reach it); 0: no limit.
ChannelStage channel_stage_constants(const NumericsProfile& profile, std::span<const ChannelGain> gains, bool per_layer,
                                     double finest_v_scale);

// Smallest share of the largest channel multiplier that a channel may have: below, its weights take a coarser scale.
constexpr double kSmallestChannelShare = 128.0 / 32767.0;

// Operands of Add, Sub, Max, Min: both at the scale of the one with the larger scale.
struct OperandPair {
  model::Operand a, b;
  double v_scale = 0;
};
OperandPair operand_pair(double scale_a, int32_t zero_a, double scale_b, int32_t zero_b);

}  // namespace openrknn::npu
