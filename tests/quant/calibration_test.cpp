#include "quant/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quant/observer.hpp"
#include "quant/weights.hpp"

namespace openrknn::quant {
namespace {

TEST(Observer, FindsTheFiniteExtremes) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  for (size_t n = 0; n < 200; ++n) {
    std::vector<float> x(n);
    double low = 1e9;
    double high = -1e9;
    int64_t strange = 0;
    for (float& v : x) {
      v = normal(random);
      const auto die = random() % 40;
      if (die == 0) v = std::numeric_limits<float>::infinity();
      if (die == 1) v = -std::numeric_limits<float>::infinity();
      if (die == 2) v = std::numeric_limits<float>::quiet_NaN();
      if (!std::isfinite(v)) {
        ++strange;
        continue;
      }
      low = std::min<double>(low, v);
      high = std::max<double>(high, v);
    }
    Range range;
    observe(x, range);
    EXPECT_EQ(range.non_finite, strange);
    EXPECT_EQ(range.seen, low <= high);
    if (range.seen) {
      EXPECT_EQ(range.min, low);
      EXPECT_EQ(range.max, high);
    }
  }
}

TEST(Observer, WidensOverSamples) {
  Range range;
  observe(std::vector<float>{1, 2}, range);
  observe(std::vector<float>{-3, 0.5F}, range);
  EXPECT_EQ(range.min, -3);
  EXPECT_EQ(range.max, 2);
}

TEST(Weights, ChannelsAreAsymmetricAndContainZero) {
  const Tensor w = Tensor::from<float>(Shape{3, 2}, std::vector<float>{0.5F, 1.0F, -0.2F, -0.4F, 0, 0});
  const QuantParams q = weight_params(w, 0);
  ASSERT_EQ(q.scales.size(), 3U);
  EXPECT_FLOAT_EQ(q.scales[0], 1.0F / 255);
  EXPECT_EQ(q.zero_points[0], -128);
  EXPECT_FLOAT_EQ(q.scales[1], 0.4F / 255);
  EXPECT_EQ(q.zero_points[1], 127);
  EXPECT_FLOAT_EQ(q.scales[2], 2.0F / 255);  // nothing but zeros: [-1, 1]
  EXPECT_EQ(weight_params(w, -1).scales.size(), 1U);
}

TEST(Weights, SymmetricRangesHoldBothEnds) {
  const Tensor weights = Tensor::from<float>(Shape{3, 4}, {-0.5F, 0.5F, 0.5F, -0.5F, -1.0F, 0.0F, 1.0F, 1.0F,  //
                                                           -0.25F, 0.5F, 0.1F, 0.0F});
  const QuantParams params = weight_params(weights, 0);
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(params.zero_points[c], 0);
    const float largest = c == 0 ? 0.5F : 1.0F;
    EXPECT_EQ(quantize_value(largest, params.scales[c], 0), 127);
    EXPECT_EQ(quantize_value(-largest, params.scales[c], 0), -127);
  }
  EXPECT_NE(params.zero_points[2], 0);
}

TEST(Weights, RoundHalfToEvenAndSaturate) {
  EXPECT_EQ(quantize_value(0.5F, 1, 0), 0);
  EXPECT_EQ(quantize_value(1.5F, 1, 0), 2);
  EXPECT_EQ(quantize_value(-2.5F, 1, 0), -2);
  EXPECT_EQ(quantize_value(1000, 1, 0), 127);
  EXPECT_EQ(quantize_value(-1000, 1, 0), -128);
  EXPECT_EQ(quantize_value(std::numeric_limits<float>::quiet_NaN(), 1, 5), 5);
}

}  // namespace
}  // namespace openrknn::quant
