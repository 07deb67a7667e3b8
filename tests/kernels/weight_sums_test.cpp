#include "kernels/npu/weight_sums.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace openrknn::npu {
namespace {

TEST(WeightSums, AreThoseOfTheSingleWeights) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    const int32_t zero = round < 300 ? round - 150 : static_cast<int32_t>(random() % 2001) - 1000;
    std::vector<int8_t> weights(random() % 200);
    for (int8_t& w : weights) w = static_cast<int8_t>(random());
    WeightSums sums, want;
    for (int times = 0; times < 2; ++times) sums.add(weights.data(), static_cast<int64_t>(weights.size()), zero);
    for (int times = 0; times < 2; ++times) {
      for (const int8_t w : weights) (w + zero > 0 ? want.positive : want.negative) += w + zero;
    }
    ASSERT_EQ(sums.positive, want.positive) << zero;
    ASSERT_EQ(sums.negative, want.negative) << zero;
  }
}

TEST(WeightSums, OfMoreWeightsThan32BitsHold) {
  const std::vector<int8_t> weights(20'000'000, 127);
  WeightSums sums;
  sums.add(weights.data(), static_cast<int64_t>(weights.size()), 128);
  EXPECT_EQ(sums.positive, int64_t{255} * 20'000'000);
  EXPECT_EQ(sums.negative, 0);
}

}  // namespace
}  // namespace openrknn::npu
