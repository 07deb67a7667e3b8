#include <cmath>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;

Tensor random_tensor(uint32_t seed, const Shape& shape, float low, float high) {
  std::mt19937 rng(seed);
  std::vector<float> v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = low + (high - low) * static_cast<float>(rng() % 100001) * 1e-5F;
  return Tensor::from(shape, v);
}

double at(const Tensor& t, int64_t i) { return t.as<float>()[static_cast<size_t>(i)]; }

void expect_close(double got, double expected) { ASSERT_NEAR(got, expected, 1e-7 + 1e-6 * std::fabs(expected)); }

TEST(Norm, Batch) {
  const Tensor x = random_tensor(1, Shape{2, 3, 4, 5}, -2, 2);
  const Tensor s = random_tensor(2, Shape{3}, -1, 1), b = random_tensor(3, Shape{3}, -1, 1);
  const Tensor m = random_tensor(4, Shape{3}, -1, 1), v = random_tensor(5, Shape{3}, 0.1F, 2);
  const Tensor y = run("BatchNormalization", {x, s, b, m, v}, attributes({{"epsilon", 1e-3F}}));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t c = i / 20 % 3;
    expect_close(at(y, i), (at(x, i) - at(m, c)) / std::sqrt(at(v, c) + 1e-3) * at(s, c) + at(b, c));
  }
  EXPECT_EQ(dims(run("BatchNormalization", {random_tensor(1, Shape{4, 3}, 0, 1), s, b, m, v})), (I{4, 3}));
}

TEST(Norm, BatchInTrainingCarriesTheStatisticsOn) {
  const Tensor x = floats(Shape{2, 1, 2}, {1, 3, 5, 7});
  const Tensor one = floats(Shape{1}, {1}), zero = floats(Shape{1}, {0}), two = floats(Shape{1}, {2});
  const auto y = run_all("BatchNormalization", {x, one, zero, zero, two},
                         attributes({{"training_mode", int64_t{1}}, {"momentum", 0.5F}, {"epsilon", 0.0F}}), 3);
  for (int64_t i = 0; i < 4; ++i) expect_close(at(y[0], i), (at(x, i) - 4.0) / std::sqrt(5.0));
  EXPECT_EQ(at(y[1], 0), 2.0);
  EXPECT_EQ(at(y[2], 0), 3.5);
  EXPECT_NE(error_of("BatchNormalization", {x, one, zero, zero, two}, {}, 3).find("training_mode"), std::string::npos);
}

// Mean and inverse deviation of elements [first, first + n) in plain double.
std::pair<double, double> statistics(const Tensor& x, int64_t first, int64_t n, double epsilon) {
  double mean = 0.0, variance = 0.0;
  for (int64_t i = 0; i < n; ++i) mean += at(x, first + i) / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i)
    variance += (at(x, first + i) - mean) * (at(x, first + i) - mean) / static_cast<double>(n);
  return {mean, 1.0 / std::sqrt(variance + epsilon)};
}

TEST(Norm, InstanceAndGroup) {
  const Tensor x = random_tensor(1, Shape{2, 6, 7}, -2, 2);
  const Tensor s = random_tensor(2, Shape{6}, -1, 1), b = random_tensor(3, Shape{6}, -1, 1);
  for (const int64_t group : {int64_t{1}, int64_t{3}, int64_t{6}}) {
    const Tensor y = group == 1 ? run("InstanceNormalization", {x, s, b})
                                : run("GroupNormalization", {x, s, b}, attributes({{"num_groups", 6 / group}}));
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t size = group * 7;
      const auto [mean, inverse] = statistics(x, i / size * size, size, 1e-5F);
      const int64_t c = i / 7 % 6;
      expect_close(at(y, i), (at(x, i) - mean) * inverse * at(s, c) + at(b, c));
    }
  }
}

TEST(Norm, LayerWithItsStatistics) {
  const Tensor x = random_tensor(1, Shape{2, 3, 4, 5}, -2, 3);
  for (const int64_t axis : {int64_t{-1}, int64_t{2}, int64_t{1}}) {
    const int64_t n = axis == -1 ? 5 : axis == 2 ? 20 : 60;
    const Shape tail = axis == -1 ? Shape{5} : axis == 2 ? Shape{4, 5} : Shape{3, 4, 5};
    const Tensor s = random_tensor(2, tail, -1, 1), b = random_tensor(3, tail, -1, 1);
    const auto results = run_all("LayerNormalization", {x, s, b}, attributes({{"axis", axis}, {"epsilon", 1e-4F}}), 3);
    for (int64_t i = 0; i < x.elements(); ++i) {
      const auto [mean, inverse] = statistics(x, i / n * n, n, 1e-4F);
      expect_close(at(results[0], i), (at(x, i) - mean) * inverse * at(s, i % n) + at(b, i % n));
      expect_close(at(results[1], i / n), mean);
      expect_close(at(results[2], i / n), inverse);
    }
    EXPECT_EQ(dims(results[1]), axis == -1 ? (I{2, 3, 4, 1}) : axis == 2 ? (I{2, 3, 1, 1}) : (I{2, 1, 1, 1}));
  }
  const Tensor s = random_tensor(2, Shape{5}, 1, 1);
  EXPECT_EQ(dims(run("LayerNormalization", {x, s})), (I{2, 3, 4, 5}));
}

TEST(Norm, LrnOverChannels) {
  const Tensor x = random_tensor(1, Shape{2, 7, 3}, -3, 3);
  for (const float beta : {0.75F, 0.5F, 1.0F, 0.6F}) {
    for (const int64_t size : {1, 4, 5}) {
      const Tensor y = run("LRN", {x}, attributes({{"size", size}, {"alpha", 0.3F}, {"beta", beta}, {"bias", 2.0F}}));
      for (int64_t i = 0; i < y.elements(); ++i) {
        const int64_t c = i / 3 % 7;
        double sum = 0.0;
        // ONNX: from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2).
        for (int64_t o = c - (size - 1) / 2; o <= c + size / 2; ++o) {
          if (o >= 0 && o < 7) sum += at(x, i + (o - c) * 3) * at(x, i + (o - c) * 3);
        }
        expect_close(at(y, i),
                     at(x, i) / std::pow(2.0 + 0.3 / static_cast<double>(size) * sum, static_cast<double>(beta)));
      }
    }
  }
}

TEST(Norm, RmsOverTheLastAxes) {
  const Tensor x = random_tensor(1, Shape{2, 3, 5}, -2, 3);
  const Tensor whole = random_tensor(2, Shape{3, 5}, -1, 1), row = random_tensor(3, Shape{5}, -1, 1);
  for (const bool broadcast : {false, true}) {
    const Tensor& s = broadcast ? row : whole;
    const Tensor y = run("RMSNormalization", {x, s}, attributes({{"axis", int64_t{1}}, {"epsilon", 1e-3F}}));
    for (int64_t i = 0; i < x.elements(); ++i) {
      double squares = 0.0;
      for (int64_t k = i / 15 * 15; k < i / 15 * 15 + 15; ++k) squares += at(x, k) * at(x, k);
      expect_close(at(y, i), at(x, i) / std::sqrt(squares / 15 + 1e-3F) * at(s, broadcast ? i % 5 : i % 15));
    }
  }
  EXPECT_NE(error_of("RMSNormalization", {x, whole}).find("operand 1"), std::string::npos);
}

TEST(Norm, Lp) {
  const Tensor x = floats(Shape{2, 2}, {3, 4, 0, 0});
  EXPECT_EQ(values(run("LpNormalization", {x})), (std::vector<float>{0.6F, 0.8F, 0, 0}));
  EXPECT_EQ(values(run("LpNormalization", {floats(Shape{2, 2}, {1, -6, -3, 2})},
                       attributes({{"p", int64_t{1}}, {"axis", int64_t{0}}}))),
            (std::vector<float>{0.25F, -0.75F, -0.75F, 0.25F}));
  EXPECT_NE(error_of("LpNormalization", {x}, attributes({{"p", int64_t{3}}})).find("'p'"), std::string::npos);
}

TEST(Norm, MeanVarianceOverChosenAxes) {
  const Tensor x = random_tensor(4, Shape{2, 3, 2, 4}, -2, 3);
  const Tensor y = run("MeanVarianceNormalization", {x});
  for (int64_t c = 0; c < 3; ++c) {
    double mean = 0.0, square = 0.0;
    for (int64_t i = 0; i < x.elements(); ++i) mean += i / 8 % 3 == c ? at(x, i) / 16 : 0.0;
    for (int64_t i = 0; i < x.elements(); ++i) square += i / 8 % 3 == c ? std::pow(at(x, i) - mean, 2) / 16 : 0.0;
    for (int64_t i = 0; i < x.elements(); ++i) {
      if (i / 8 % 3 == c) expect_close(at(y, i), (at(x, i) - mean) / (std::sqrt(square) + 1e-9));
    }
  }
  // float64 stays float64.
  const Tensor d = Tensor::from(Shape{1, 2}, std::vector<double>{1.0, 3.0});
  const auto doubles = values<double>(run("MeanVarianceNormalization", {d}, attributes({{"axes", I{1}}})));
  EXPECT_NEAR(doubles[0], -1.0 / (1.0 + 1e-9), 1e-15);
}

TEST(Norm, Errors) {
  const Tensor x = iota(Shape{1, 3, 2}), c3 = iota(Shape{3}), c2 = iota(Shape{2});
  EXPECT_NE(error_of("BatchNormalization", {x, c3, c2, c3, c3}).find("operand 2"), std::string::npos);
  EXPECT_NE(error_of("GroupNormalization", {x, c3, c3}, attributes({{"num_groups", int64_t{2}}})).find("num_groups"),
            std::string::npos);
  EXPECT_NE(error_of("LayerNormalization", {x, c3}).find("operand 1"), std::string::npos);
  EXPECT_NE(error_of("LRN", {x}, attributes({{"size", int64_t{0}}})).find("size"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
