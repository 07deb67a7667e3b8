#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;

Tensor random_integers(std::mt19937& rng, const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = static_cast<float>(static_cast<int64_t>(rng() % 17) - 8);
  return Tensor::from(shape, v);
}

TEST(MatMul, HandComputed) {
  const Tensor a = floats(Shape{2, 2}, {1, 2, 3, 4});
  const Tensor b = floats(Shape{2, 3}, {1, 0, 2, 0, 1, 3});
  EXPECT_EQ(values(run("MatMul", {a, b})), (F{1, 2, 8, 3, 4, 18}));
}

TEST(MatMul, VectorsLoseTheirAddedAxis) {
  const Tensor m = floats(Shape{2, 2}, {1, 2, 3, 4});
  const Tensor v = floats(Shape{2}, {1, 10});
  const Tensor mv = run("MatMul", {m, v});
  EXPECT_EQ(dims(mv), (I{2}));
  EXPECT_EQ(values(mv), (F{21, 43}));
  const Tensor vm = run("MatMul", {v, m});
  EXPECT_EQ(dims(vm), (I{2}));
  EXPECT_EQ(values(vm), (F{31, 42}));
  const Tensor vv = run("MatMul", {v, v});
  EXPECT_EQ(dims(vv), (I{}));
  EXPECT_EQ(values(vv), (F{101}));
  EXPECT_EQ(dims(run("MatMul", {floats(Shape{3, 2, 2}, F(12, 1.0F)), v})), (I{3, 2}));
}

TEST(MatMul, BatchesBroadcast) {
  std::mt19937 rng(1);
  const Tensor a = random_integers(rng, Shape{2, 1, 3, 5});
  const Tensor b = random_integers(rng, Shape{4, 5, 6});
  const Tensor y = run("MatMul", {a, b});
  ASSERT_EQ(dims(y), (I{2, 4, 3, 6}));
  for (int64_t e = 0; e < y.elements(); ++e) {
    const int64_t i = e / 72, j = e / 18 % 4, r = e / 6 % 3, c = e % 6;
    double sum = 0.0;
    for (int64_t k = 0; k < 5; ++k) {
      sum += static_cast<double>(a.as<float>()[static_cast<size_t>((i * 3 + r) * 5 + k)]) *
             b.as<float>()[static_cast<size_t>((j * 5 + k) * 6 + c)];
    }
    ASSERT_EQ(y.as<float>()[static_cast<size_t>(e)], sum);
  }
}

TEST(MatMul, ManySizesEqualTheDefinition) {
  std::mt19937 rng(2);
  for (int i = 0; i < 120; ++i) {
    const int64_t m = 1 + static_cast<int64_t>(rng() % 40), n = 1 + static_cast<int64_t>(rng() % 150),
                  k = 1 + static_cast<int64_t>(rng() % 600);
    const bool ta = rng() % 2 == 0, tb = rng() % 2 == 0;
    const Tensor a = random_integers(rng, ta ? Shape{k, m} : Shape{m, k});
    const Tensor b = random_integers(rng, tb ? Shape{n, k} : Shape{k, n});
    const Tensor y = run("Gemm", {a, b}, attributes({{"transA", int64_t{ta}}, {"transB", int64_t{tb}}}));
    const Tensor z = !ta && !tb ? run("MatMul", {a, b}) : y;
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0.0;
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(a.as<float>()[static_cast<size_t>(ta ? l * m + r : r * k + l)]) *
                 b.as<float>()[static_cast<size_t>(tb ? c * k + l : l * n + c)];
        }
        ASSERT_EQ(y.as<float>()[static_cast<size_t>(r * n + c)], sum) << m << " " << n << " " << k << " " << ta << tb;
        ASSERT_EQ(z.as<float>()[static_cast<size_t>(r * n + c)], sum);
      }
    }
  }
}

TEST(Gemm, AlphaBetaAndBroadcastOfC) {
  const Tensor a = floats(Shape{2, 1}, {1, 2});
  const Tensor b = floats(Shape{1, 3}, {1, 2, 3});
  const auto scaled = attributes({{"alpha", 2.0F}, {"beta", 10.0F}});
  EXPECT_EQ(values(run("Gemm", {a, b, floats(Shape{3}, {1, 2, 3})}, scaled)), (F{12, 24, 36, 14, 28, 42}));
  EXPECT_EQ(values(run("Gemm", {a, b, floats(Shape{2, 1}, {1, 2})})), (F{2, 3, 4, 4, 6, 8}));
  EXPECT_EQ(values(run("Gemm", {a, b, floats(Shape{2, 3}, {1, 1, 1, 0, 0, 0})})), (F{2, 3, 4, 2, 4, 6}));
  EXPECT_EQ(values(run("Gemm", {a, b, floats(Shape{}, {1})})), (F{2, 3, 4, 3, 5, 7}));
  EXPECT_EQ(values(run("Gemm", {a, b})), (F{1, 2, 3, 2, 4, 6}));
}

TEST(Gemm, Errors) {
  EXPECT_NE(error_of("MatMul", {iota(Shape{2, 3}), iota(Shape{2, 3})}).find("3 columns meet 2 rows"),
            std::string::npos);
  EXPECT_NE(error_of("Gemm", {iota(Shape{2, 3}), iota(Shape{3, 4}), iota(Shape{5})}).find("does not broadcast"),
            std::string::npos);
  EXPECT_NE(error_of("Gemm", {iota(Shape{1, 2, 3}), iota(Shape{3, 4})}).find("both must be matrices"),
            std::string::npos);
}

TEST(MatMul, IntegersWrap) {
  const auto ints = [](const Shape& shape, const std::vector<int32_t>& v) { return Tensor::from(shape, v); };
  const Tensor a = ints({2, 2}, {1, 2, 3, 1 << 30}), b = ints({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(values<int32_t>(run("MatMul", {a, b})),
            (std::vector<int32_t>{19, 22, static_cast<int32_t>(15 + 7 * (int64_t{1} << 30) - (int64_t{2} << 32)), 18}));
  const Tensor y = run("Gemm", {a, b, ints({2}, {1, -1})}, attributes({{"transB", int64_t{1}}, {"alpha", 2.0F}}));
  EXPECT_EQ(values<int32_t>(y)[0], 2 * 17 + 1);
  EXPECT_EQ(values<int32_t>(y)[1], 2 * 23 - 1);
  EXPECT_NE(error_of("Gemm", {a, b}, attributes({{"alpha", 0.5F}})).find("no whole number"), std::string::npos);
  EXPECT_NE(error_of("MatMul", {iota<int8_t>({2, 2}), iota<int8_t>({2, 2})}).find("products of int8"),
            std::string::npos);
}

TEST(MatMul, HugeBatchesOfNothing) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(dims(run("MatMul", {Tensor(DType::kFloat32, Shape{huge, 0, 3}), iota({3, 4})})), (I{huge, 0, 4}));
  const Attributes none;
  const TensorType types[] = {{DType::kFloat32, Shape{huge, 1, 1}}, {DType::kFloat32, Shape{1, 1}}};
  const Tensor* constants[] = {nullptr, nullptr};
  const auto inferred = registry().find("MatMul")->infer({"MatMul", none, types, constants, 1});
  ASSERT_FALSE(inferred.ok());
  EXPECT_NE(inferred.error().message().find("products, at most"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
