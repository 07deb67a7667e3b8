#include "kernels/math.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace openrknn {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance of `got` from the exact value in units of the last place of the float nearest to it.
double ulps(float got, long double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isnan(nearest) || std::isnan(got)) return std::isnan(nearest) == std::isnan(got) ? 0.0 : 1e9;
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0.0 : 1e9;
  const float next = std::nextafter(std::fabs(nearest), kInf);
  const long double unit = static_cast<long double>(next) - std::fabs(nearest);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

// Visits floats over the whole range of bit patterns, with a step that is odd so that all mantissas are met.
template <typename Mine, typename Theirs>
double worst(Mine mine, Theirs theirs, uint32_t step = 4999) {
  double result = 0.0;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double e = ulps(mine(x), theirs(static_cast<long double>(x)));
    if (e > result) result = e;
  }
  return result;
}

// The same over [low, high], evenly spaced.
template <typename Mine, typename Theirs>
double worst_between(Mine mine, Theirs theirs, float low, float high) {
  double result = 0.0;
  for (int i = 0; i <= 500000; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) * 2e-6F;
    result = std::max(result, ulps(mine(x), theirs(static_cast<long double>(x))));
  }
  return result;
}

// Correct rounding is an error of at most 0.5; a double evaluation adds about 1e-8.
constexpr double kNearlyExact = 0.5001;

TEST(Math, ExpIsCorrectlyRounded) {
  const auto exact = [](long double x) { return std::exp(x); };
  EXPECT_LT(worst(math::exp_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::exp_f, exact, -110.0F, 90.0F), kNearlyExact);
  EXPECT_EQ(math::exp_f(kInf), kInf);
  EXPECT_EQ(math::exp_f(-kInf), 0.0F);
  EXPECT_TRUE(std::isnan(math::exp_f(kNan)));
  EXPECT_EQ(math::exp_f(0.0F), 1.0F);
}

TEST(Math, Expm1IsCorrectlyRounded) {
  const auto mine = [](float x) { return static_cast<float>(math::expm1(x)); };
  const auto exact = [](long double x) { return std::expm1(x); };
  EXPECT_LT(worst(mine, exact), kNearlyExact);
  EXPECT_LT(worst_between(mine, exact, -1.0F, 1.0F), kNearlyExact);
}

TEST(Math, LogIsCorrectlyRounded) {
  const auto exact = [](long double x) { return std::log(x); };
  EXPECT_LT(worst(math::log_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::log_f, exact, 0.5F, 2.0F), kNearlyExact);
  EXPECT_EQ(math::log_f(0.0F), -kInf);
  EXPECT_EQ(math::log_f(-0.0F), -kInf);
  EXPECT_EQ(math::log_f(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log_f(-1.0F)));
  EXPECT_TRUE(std::isnan(math::log_f(-kInf)));
  EXPECT_TRUE(std::isnan(math::log_f(kNan)));
}

TEST(Math, Log1pIsCorrectlyRounded) {
  const auto mine = [](float x) { return static_cast<float>(math::log1p(x)); };
  const auto exact = [](long double x) { return std::log1p(x); };
  EXPECT_LT(worst(mine, exact), kNearlyExact);
  EXPECT_LT(worst_between(mine, exact, -0.999F, 2.0F), kNearlyExact);
}

TEST(Math, TanhIsCorrectlyRounded) {
  const auto exact = [](long double x) { return std::tanh(x); };
  EXPECT_LT(worst(math::tanh_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::tanh_f, exact, -12.0F, 12.0F), kNearlyExact);
  EXPECT_TRUE(std::signbit(math::tanh_f(-0.0F)));
  EXPECT_EQ(math::tanh_f(-kInf), -1.0F);
  EXPECT_EQ(math::tanh_f(kInf), 1.0F);
}

TEST(Math, SigmoidIsCorrectlyRounded) {
  const auto exact = [](long double x) { return 1.0L / (1.0L + std::exp(-x)); };
  EXPECT_LT(worst(math::sigmoid_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::sigmoid_f, exact, -110.0F, 30.0F), kNearlyExact);
  EXPECT_EQ(math::sigmoid_f(-kInf), 0.0F);
  EXPECT_EQ(math::sigmoid_f(kInf), 1.0F);
}

TEST(Math, SoftplusIsCorrectlyRounded) {
  const auto exact = [](long double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); };
  EXPECT_LT(worst(math::softplus_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::softplus_f, exact, -110.0F, 30.0F), kNearlyExact);
  EXPECT_EQ(math::softplus_f(-kInf), 0.0F);
  EXPECT_EQ(math::softplus_f(kInf), kInf);
}

TEST(Math, ErfIsCorrectlyRounded) {
  const auto exact = [](long double x) { return std::erf(x); };
  EXPECT_LT(worst(math::erf_f, exact), kNearlyExact);
  EXPECT_LT(worst_between(math::erf_f, exact, -6.5F, 6.5F), kNearlyExact);
  EXPECT_EQ(math::erf_f(kInf), 1.0F);
  EXPECT_TRUE(std::isnan(math::erf_f(kNan)));
}

TEST(Math, SineAndCosineOverAllFloats) {
  const auto sine = [](float x) { return static_cast<float>(math::sin(x)); };
  const auto cosine = [](float x) { return static_cast<float>(math::cos(x)); };
  EXPECT_LT(worst(sine, [](long double x) { return std::sin(x); }), kNearlyExact);
  EXPECT_LT(worst(cosine, [](long double x) { return std::cos(x); }), kNearlyExact);
  EXPECT_LT(worst_between(
                sine, [](long double x) { return std::sin(x); }, -20.0F, 20.0F),
            kNearlyExact);
  // Around multiples of pi/2 and around the switch to the long reduction.
  EXPECT_LT(worst_between(
                cosine, [](long double x) { return std::cos(x); }, 1048000.0F, 1049000.0F),
            kNearlyExact);
}

TEST(Math, PowOverRandomPairs) {
  uint64_t state = 1;
  const auto next = [&state] {
    return static_cast<uint32_t>((state = state * 6364136223846793005U + 1442695040888963407U) >> 32);
  };
  double result = 0.0;
  for (int i = 0; i < 300000; ++i) {
    const float x = std::exp2(static_cast<float>(static_cast<int32_t>(next())) * 0x1p-25F);
    const float y = static_cast<float>(static_cast<int32_t>(next())) * 0x1p-28F;
    result =
        std::max(result, ulps(math::pow_f(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))));
  }
  EXPECT_LT(result, kNearlyExact);
}

TEST(Math, PowSpecialCasesAreThoseOfC) {
  const float values[] = {0.0F, -0.0F, 1.0F,  -1.0F,  0.5F,        -0.5F,  2.0F, -2.0F, 3.0F, -3.0F,
                          2.5F, -2.5F, 1e30F, -1e30F, 16777217.0F, 1e-45F, kInf, -kInf, kNan};
  for (const float x : values) {
    for (const float y : values) {
      const float mine = math::pow_f(x, y);
      const float theirs = static_cast<float>(std::pow(static_cast<long double>(x), static_cast<long double>(y)));
      if (std::isnan(theirs)) {
        EXPECT_TRUE(std::isnan(mine)) << x << " ^ " << y << " = " << mine;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(mine), std::bit_cast<uint32_t>(theirs))
            << x << " ^ " << y << " = " << mine << ", not " << theirs;
      }
    }
  }
}

}  // namespace
}  // namespace openrknn
