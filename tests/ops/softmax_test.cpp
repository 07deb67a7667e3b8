#include <cmath>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;

TEST(Softmax, EqualsTheDefinitionAlongEveryAxis) {
  std::mt19937 rng(1);
  const Shape shape{3, 5, 70};
  std::vector<float> data(static_cast<size_t>(shape.elements()));
  for (float& v : data) v = static_cast<float>(static_cast<int64_t>(rng() % 20001) - 10000) * 0.001F;
  const Tensor x = Tensor::from(shape, data);
  for (int axis = 0; axis < 3; ++axis) {
    const auto attrs = attributes({{"axis", int64_t{axis}}});
    const Tensor y = run("Softmax", {x}, attrs);
    const Tensor l = run("LogSoftmax", {x}, attrs);
    const int64_t step = shape.strides()[static_cast<size_t>(axis)];
    for (int64_t e = 0; e < shape.elements(); ++e) {
      const int64_t start = e - e / step % shape[axis] * step;
      long double sum = 0.0L;
      for (int64_t i = 0; i < shape[axis]; ++i)
        sum += std::exp(static_cast<long double>(data[static_cast<size_t>(start + i * step)]));
      const long double value = data[static_cast<size_t>(e)];
      // One rounding to float: half a unit in the last place.
      const auto expected = static_cast<double>(std::exp(value) / sum);
      ASSERT_NEAR(y.as<float>()[static_cast<size_t>(e)], expected, expected * 6e-8);
      const auto logarithm = static_cast<double>(value - std::log(sum));
      ASSERT_NEAR(l.as<float>()[static_cast<size_t>(e)], logarithm, std::fabs(logarithm) * 6e-8 + 1e-12);
    }
  }
}

// Long lines side by side are turned first, sixteen at a time.
TEST(Softmax, GivesTheSameBitsAlongAnyAxis) {
  std::mt19937 rng(2);
  for (const int64_t n : {127, 128, 145, 1000}) {
    const int64_t outer = 2, inner = 19;
    std::vector<float> lines(static_cast<size_t>(outer * inner * n)), columns(lines.size());
    const auto column = [&](int64_t i, int64_t k) {
      return static_cast<size_t>(i / inner * n * inner + k * inner + i % inner);
    };
    for (float& v : lines) v = static_cast<float>(static_cast<int64_t>(rng() % 20001) - 10000) * 0.001F;
    lines[5] = std::nanf("");
    for (int64_t i = 0; i < outer * inner; ++i) {
      for (int64_t k = 0; k < n; ++k) columns[column(i, k)] = lines[static_cast<size_t>(i * n + k)];
    }
    const Tensor want = run("Softmax", {Tensor::from(Shape{outer * inner, n}, lines)});
    const Tensor got =
        run("Softmax", {Tensor::from(Shape{outer, n, inner}, columns)}, attributes({{"axis", int64_t{1}}}));
    for (int64_t i = 0; i < outer * inner; ++i) {
      for (int64_t k = 0; k < n; ++k) {
        const float a = want.as<float>()[static_cast<size_t>(i * n + k)], b = got.as<float>()[column(i, k)];
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << n << ": " << i << " " << k;
      }
    }
  }
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  EXPECT_EQ(values(run("Softmax", {floats(Shape{2}, {1000, 1000})})), (F{0.5F, 0.5F}));
  EXPECT_EQ(values(run("Softmax", {floats(Shape{2}, {-1e30F, 1e30F})})), (F{0, 1}));
  EXPECT_EQ(values(run("Softmax", {floats(Shape{3, 1}, {5, -5, 1e10F})})), (F{1, 1, 1}));
}

TEST(Softmax, HardmaxTakesTheFirst) {
  EXPECT_EQ(values(run("Hardmax", {floats(Shape{2, 3}, {1, 3, 3, 2, 0, -1})})), (F{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(values(run("Hardmax", {floats(Shape{2, 3}, {1, 3, 3, 2, 0, -1})}, attributes({{"axis", int64_t{0}}}))),
            (F{0, 1, 1, 1, 0, 0}));
}

TEST(Softmax, Errors) {
  EXPECT_NE(error_of("Softmax", {iota(Shape{2, 3})}, attributes({{"axis", int64_t{2}}})).find("axis"),
            std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
