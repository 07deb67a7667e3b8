#include "npu/requant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace openrknn::npu {
namespace {

TEST(FixedRatio, IsTheNearestFifteenBitMultiplier) {
  // Every mantissa of 17 bits at several exponents: no other multiplier in range at the same shift is nearer.
  int64_t wrong = 0;
  for (const int exponent : {-20, -3, 0, 5, 13}) {
    for (int m = 65536; m < 131072; ++m) {
      const double ratio = std::ldexp(m, exponent - 17);
      const FixedRatio r = fixed_ratio(ratio);
      const bool in_range = r.multiplier >= 16384 && r.multiplier <= 32767;
      wrong += in_range && std::abs(r.value() - ratio) <= std::ldexp(0.5, -r.shift) ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(FixedRatio, StaysInRangeAtTheEnds) {
  EXPECT_EQ(fixed_ratio(0).multiplier, 0);
  EXPECT_EQ(fixed_ratio(1e9).multiplier, 32767);
  EXPECT_EQ(fixed_ratio(1e9).shift, 0);
  EXPECT_LE(fixed_ratio(1e-12).shift, 46);
  EXPECT_NEAR(fixed_ratio(32767.4).value(), 32767, 1);
}

TEST(ChannelStage, KeepsTheLargestChannelInRangeWithTheSmallestShift) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-12, 0);
  for (int round = 0; round < 2000; ++round) {
    std::vector<ChannelGain> gains;
    for (int c = 0; c < 16; ++c)
      gains.push_back({std::exp2(exponent(random)), std::floor(std::exp2(10 - 2 * exponent(random)))});
    const NumericsProfile profile;
    const ChannelStage stage = channel_stage_constants(profile, gains, false, 0);
    double largest = 0;
    double top = 0;
    for (size_t c = 0; c < gains.size(); ++c) {
      ASSERT_GE(stage.multipliers[c], 1);
      ASSERT_LE(stage.multipliers[c], 32767);
      top = std::max(top, gains[c].scale);
      largest = std::max(largest, gains[c].largest * stage.multipliers[c]);
    }
    ASSERT_EQ(*std::max_element(stage.multipliers.begin(), stage.multipliers.end()), 32767);
    ASSERT_LT(largest, std::exp2(31 + stage.shift));
    if (stage.shift > 0) {
      ASSERT_GE(largest, std::exp2(30 + stage.shift));
    }
    ASSERT_NEAR(stage.v_scale, top / 32767 * std::exp2(stage.shift), 1e-12 * stage.v_scale);
  }
}

TEST(ChannelStage, Q14HasAFixedShift) {
  NumericsProfile profile;
  profile.channel_multiplier = ChannelMultiplier::kQ14;
  const std::vector<ChannelGain> gains{{1.0, 1000}, {0.25, 1000}};
  const ChannelStage stage = channel_stage_constants(profile, gains, false, 0);
  EXPECT_EQ(stage.shift, 14);
  EXPECT_EQ(stage.multipliers, (std::vector<int32_t>{16384, 4096}));
  EXPECT_DOUBLE_EQ(stage.v_scale, 1.0);
}

TEST(ChannelStage, PerLayerIsBypassed) {
  const std::vector<ChannelGain> gains{{0.5, 10}, {0.5, 20}};
  const ChannelStage stage = channel_stage_constants(NumericsProfile{}, gains, true, 0);
  EXPECT_TRUE(stage.bypass);
  EXPECT_DOUBLE_EQ(stage.v_scale, 0.5);
}

TEST(ChannelStage, AResidualReachesIt) {
  const std::vector<ChannelGain> gains{{1e-6, 100}};
  const double residual_scale = 0.05;
  const ChannelStage stage = channel_stage_constants(NumericsProfile{}, gains, false, residual_scale / 32767);
  EXPECT_LE(residual_scale / stage.v_scale, 32767);
}

TEST(OperandPair, PutsBothAtOneScale) {
  const OperandPair p = operand_pair(0.02, 3, 0.013, -7);
  EXPECT_EQ(p.a.offset, -3);
  EXPECT_EQ(p.b.offset, 7);
  EXPECT_EQ(p.a.multiplier, 32767);
  EXPECT_NEAR(p.b.multiplier * p.v_scale, 0.013, 0.013 * 1e-4);
}

}  // namespace
}  // namespace openrknn::npu
