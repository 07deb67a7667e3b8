#include "kernels/activation.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

std::vector<float> samples() {
  std::vector<float> x{0.0F, -0.0F, 1e-30F, -1e-30F, 1e-5F, -1e-5F, 100.0F, -100.0F, 1e38F, -1e38F};
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.00625F);
  return x;
}

double erfc_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct Case {
  const char* op;
  Attributes attrs;
  std::function<double(double)> expected;  // in double, from the C library
};

std::vector<Case> cases() {
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  const auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); };
  const auto gate = [](double x, double g) { return g == 0.0 ? 0.0 : x * g; };
  return {
      {"Relu", {}, [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", attributes({{"alpha", 0.125F}}), [](double x) { return x < 0 ? 0.125 * x : x; }},
      {"Sigmoid", {}, sigmoid},
      {"Tanh", {}, [](double x) { return std::tanh(x); }},
      {"HardSigmoid", attributes({{"alpha", 0.25F}, {"beta", 0.5F}}),
       [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", {}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"Elu", attributes({{"alpha", 0.5F}}), [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }},
      {"Selu", attributes({{"alpha", 1.5F}, {"gamma", 1.25F}}),
       [](double x) { return 1.25 * (x < 0 ? 1.5 * std::expm1(x) : x); }},
      {"Celu", attributes({{"alpha", 2.0F}}), [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }},
      {"Softplus", {}, softplus},
      {"Softsign", {}, [](double x) { return x / (1 + std::fabs(x)); }},
      {"ThresholdedRelu", attributes({{"alpha", 0.5F}}), [](double x) { return x > 0.5 ? x : 0.0; }},
      {"Swish", attributes({{"alpha", 0.5F}}), [=](double x) { return gate(x, sigmoid(0.5 * x)); }},
      {"exSwish", {}, [=](double x) { return gate(x, sigmoid(x)); }},
      {"Mish", {}, [=](double x) { return gate(x, std::tanh(softplus(x))); }},
      {"exMish", {}, [=](double x) { return gate(x, std::tanh(softplus(x))); }},
      {"Gelu", {}, [=](double x) { return gate(x, erfc_cdf(x)); }},
      {"exGelu", {}, [=](double x) { return gate(x, erfc_cdf(x)); }},
      {"Gelu", attributes({{"approximate", std::string("tanh")}}),
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
  };
}

TEST(Activation, EveryFunctionMatchesItsFormula) {
  const std::vector<float> x = samples();
  const Tensor in = floats(Shape{static_cast<int64_t>(x.size())}, x);
  for (const Case& c : cases()) {
    const auto y = values(run(c.op, {in}, c.attrs));
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = c.expected(static_cast<double>(x[i]));
      // Three roundings of float; 1 + erf(x) in double loses Gelu's tail below 1e-15.
      const double bound = 2e-7 * std::fabs(expected) + 1e-15;
      ASSERT_LE(std::fabs(static_cast<double>(y[i]) - expected), bound) << c.op << "(" << x[i] << ") = " << y[i];
    }
  }
}

TEST(Activation, NanStaysAndInfinitiesHaveLimits) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor in = floats(Shape{3}, {std::numeric_limits<float>::quiet_NaN(), inf, -inf});
  for (const Case& c : cases()) {
    const auto y = values(run(c.op, {in}, c.attrs));
    EXPECT_TRUE(std::isnan(y[0])) << c.op;
    const std::string op = c.op;
    const bool bounded = op == "Sigmoid" || op == "Tanh" || op == "HardSigmoid" || op == "Softsign";
    if (!bounded) {
      EXPECT_EQ(y[1], inf) << c.op;
    }
  }
  EXPECT_EQ(values(run("exSwish", {in}))[2], 0.0F);
}

TEST(Activation, ClipTakesScalarBoundsOfAnyType) {
  const Tensor x = floats(Shape{4}, {-2, -0.5F, 0.5F, 2});
  EXPECT_EQ(values(run("Clip", {x, Tensor::scalar(-1.0F), Tensor::scalar(1.0F)})),
            (std::vector<float>{-1, -0.5F, 0.5F, 1}));
  EXPECT_EQ(values(run("Clip", {x, Tensor(), Tensor::scalar(0.0F)})), (std::vector<float>{-2, -0.5F, 0, 0}));
  EXPECT_EQ(values(run("Clip", {x, Tensor::scalar(3.0F), Tensor::scalar(1.0F)})), (std::vector<float>{1, 1, 1, 1}));
  const std::vector<int64_t> big{INT64_MIN, 5, INT64_MAX};
  EXPECT_EQ(values<int64_t>(run("Clip", {int64s(Shape{3}, big), Tensor::scalar<int64_t>(0)})),
            (std::vector<int64_t>{0, 5, INT64_MAX}));
  EXPECT_NE(error_of("Clip", {x, Tensor::scalar<int64_t>(0)}).find("int64"), std::string::npos);
}

TEST(Activation, PReluBroadcastsItsSlope) {
  const Tensor x = floats(Shape{1, 2, 2}, {-1, 1, -2, 2});
  EXPECT_EQ(values(run("PRelu", {x, floats(Shape{2, 1}, {0.5F, 0.25F})})), (std::vector<float>{-0.5F, 1, -0.5F, 2}));
  EXPECT_NE(error_of("PRelu", {x, floats(Shape{3, 1, 1}, {1, 2, 3})}).find("slope"), std::string::npos);
}

TEST(Activation, Integers) {
  const Tensor x = Tensor::from(Shape{3}, std::vector<int8_t>{-128, 0, 5});
  EXPECT_EQ(values<int8_t>(run("Relu", {x})), (std::vector<int8_t>{0, 0, 5}));
  const Tensor wide = int64s(Shape{2}, {-3, 4});
  EXPECT_EQ(values<int64_t>(run("PRelu", {wide, int64s(Shape{1}, {2})})), (std::vector<int64_t>{-6, 4}));
}

TEST(Activation, HalfOperandsAreComputedInFloat) {
  const Tensor x = cast(floats(Shape{3}, {-1, 0.5F, 2}).view(), DType::kFloat16);
  const Tensor expected = cast(run("Sigmoid", {cast(x.view(), DType::kFloat32)}).view(), DType::kFloat16);
  const Tensor y = run("Sigmoid", {x});
  EXPECT_EQ(y.dtype(), DType::kFloat16);
  EXPECT_EQ(to_doubles(y.view()), to_doubles(expected.view()));
  EXPECT_NE(error_of("Tanh", {int64s(Shape{1}, {1})}).find("float type"), std::string::npos);
}

TEST(Activation, FusedAttributesAreRead) {
  const auto clip = fused_activation(
      attributes({{"activation", std::string("Clip")}, {"activation_min", 0.0F}, {"activation_max", 6.0F}}));
  ASSERT_TRUE(clip.ok());
  std::vector<float> data{-1, 3, 7};
  apply_activation(*clip, data.data(), 3);
  EXPECT_EQ(data, (std::vector<float>{0, 3, 6}));
  EXPECT_EQ(fused_activation({})->kind, Activation::kNone);
  EXPECT_NE(fused_activation(attributes({{"activation", std::string("Sine")}})).error().message().find("Sine"),
            std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
