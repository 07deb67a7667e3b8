#include <cmath>
#include <limits>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;

TEST(Reduce, HandComputed) {
  const Tensor x = floats(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run("ReduceSum", {x, Tensor::ints({0})})), (F{5, 7, 9}));
  EXPECT_EQ(dims(run("ReduceSum", {x, Tensor::ints({0})})), (I{1, 3}));
  EXPECT_EQ(values(run("ReduceMean", {x, Tensor::ints({-1})})), (F{2, 5}));
  EXPECT_EQ(dims(run("ReduceMean", {x, Tensor::ints({-1})}, attributes({{"keepdims", int64_t{0}}}))), (I{2}));
  EXPECT_EQ(values(run("ReduceMax", {x})), (F{6}));
  EXPECT_EQ(dims(run("ReduceMax", {x}, attributes({{"keepdims", int64_t{0}}}))), (I{}));
  EXPECT_EQ(values(run("ReduceMin", {x, Tensor::ints({1})})), (F{1, 4}));
  EXPECT_EQ(values(run("ReduceProd", {x, Tensor::ints({1})})), (F{6, 120}));
  EXPECT_EQ(values(run("ReduceL1", {floats(Shape{3}, {-1, 2, -3})})), (F{6}));
  EXPECT_EQ(values(run("ReduceL2", {floats(Shape{2}, {3, -4})})), (F{5}));
  EXPECT_EQ(values(run("ReduceSumSquare", {floats(Shape{2}, {3, -4})})), (F{25}));
  EXPECT_FLOAT_EQ(values(run("ReduceLogSum", {floats(Shape{2}, {3, 4})}))[0], std::log(7.0F));
  EXPECT_FLOAT_EQ(values(run("ReduceLogSumExp", {floats(Shape{2}, {500, 501})}))[0], 501.3132617F);
}

TEST(Reduce, EmptyAxes) {
  const Tensor x = floats(Shape{2}, {1, 2});
  const auto noop = attributes({{"noop_with_empty_axes", int64_t{1}}});
  EXPECT_EQ(values(run("ReduceSum", {x, Tensor::ints({})}, noop)), (F{1, 2}));
  EXPECT_EQ(values(run("ReduceSum", {x}, noop)), (F{1, 2}));
  EXPECT_EQ(values(run("ReduceSum", {x, Tensor::ints({})})), (F{3}));
  EXPECT_EQ(values(run("ReduceSum", {Tensor(DType::kFloat32, Shape{0, 3}), Tensor::ints({0})})), (F{0, 0, 0}));
}

TEST(Reduce, IntegersAreExact) {
  const Tensor x = int64s(Shape{3}, {int64_t{1} << 60, 3, -5});
  EXPECT_EQ(values<int64_t>(run("ReduceSum", {x})), (I{(int64_t{1} << 60) - 2}));
  EXPECT_EQ(values<int64_t>(run("ReduceMax", {x})), (I{int64_t{1} << 60}));
  EXPECT_EQ(values<int64_t>(run("ReduceMin", {x})), (I{-5}));
  EXPECT_EQ(values<int64_t>(run("ReduceProd", {int64s(Shape{3}, {2, 3, -5})})), (I{-30}));
  EXPECT_EQ(values<int64_t>(run("ReduceL1", {int64s(Shape{3}, {2, 3, -5})})), (I{10}));
}

TEST(Reduce, EverySubsetOfAxesEqualsTheDefinition) {
  std::mt19937 rng(1);
  const Shape shape{3, 4, 5, 17};
  std::vector<float> data(static_cast<size_t>(shape.elements()));
  for (float& v : data) v = static_cast<float>(static_cast<int64_t>(rng() % 201) - 100);
  const Tensor x = Tensor::from(shape, data);
  for (unsigned set = 1; set < 16; ++set) {
    I axes, extents;
    for (int a = 0; a < 4; ++a) {
      if ((set >> a & 1U) != 0) axes.push_back(a);
      extents.push_back((set >> a & 1U) != 0 ? 1 : shape[a]);
    }
    const Shape out = *Shape::make(extents);
    std::vector<double> sums(static_cast<size_t>(out.elements()), 0.0), most(sums.size(), -1e9);
    for (int64_t e = 0; e < shape.elements(); ++e) {
      int64_t at = 0;
      for (int a = 0; a < 4; ++a) {
        const int64_t i = e / shape.strides()[static_cast<size_t>(a)] % shape[a];
        if (out[a] != 1) at += i * out.strides()[static_cast<size_t>(a)];
      }
      sums[static_cast<size_t>(at)] += data[static_cast<size_t>(e)];
      most[static_cast<size_t>(at)] =
          std::max(most[static_cast<size_t>(at)], static_cast<double>(data[static_cast<size_t>(e)]));
    }
    const Tensor s = run("ReduceSum", {x, Tensor::ints(axes)});
    const Tensor m = run("ReduceMax", {x, Tensor::ints(axes)});
    ASSERT_EQ(dims(s), extents);
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(s.as<float>()[i], sums[i]) << "axes " << set;
      ASSERT_EQ(m.as<float>()[i], most[i]) << "axes " << set;
    }
  }
}

TEST(Reduce, ArgMaxAndArgMin) {
  const Tensor x = floats(Shape{2, 3}, {1, 3, 3, 2, 0, 0});
  EXPECT_EQ(values<int64_t>(run("ArgMax", {x}, attributes({{"axis", int64_t{1}}}))), (I{1, 0}));
  EXPECT_EQ(values<int64_t>(run("ArgMax", {x}, attributes({{"axis", int64_t{-1}}, {"select_last_index", int64_t{1}}}))),
            (I{2, 0}));
  EXPECT_EQ(values<int64_t>(run("ArgMin", {x}, attributes({{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}))),
            (I{0, 1}));
  EXPECT_EQ(values<int64_t>(run("ArgMin", {x})), (I{0, 1, 1}));
  EXPECT_EQ(dims(run("ArgMin", {x}, attributes({{"keepdims", int64_t{0}}}))), (I{3}));
}

TEST(Reduce, OtherTypes) {
  const Tensor bools = cast(floats(Shape{2, 2}, {0, 1, 1, 1}).view(), DType::kBool);
  const Tensor axis = Tensor::ints({1});
  EXPECT_EQ(to_ints(run("ReduceMin", {bools, axis}, attributes({{"keepdims", int64_t{0}}})).view()), (I{0, 1}));
  EXPECT_EQ(to_ints(run("ReduceMax", {bools, axis}, attributes({{"keepdims", int64_t{0}}})).view()), (I{1, 1}));
  const Tensor bytes = Tensor::from(Shape{3}, std::vector<uint8_t>{200, 100, 3});
  EXPECT_EQ(values<uint8_t>(run("ReduceMax", {bytes})), (std::vector<uint8_t>{200}));
  EXPECT_EQ(values<int64_t>(run("ArgMin", {Tensor::from(Shape{2}, std::vector<uint16_t>{9, 8})})), (I{1}));
  const Tensor half = cast(floats(Shape{2}, {3, 4}).view(), DType::kFloat16);
  const Tensor norm = run("ReduceL2", {half});
  EXPECT_EQ(norm.dtype(), DType::kFloat16);
  EXPECT_EQ(to_doubles(norm.view()), (std::vector<double>{5}));
  const Tensor nothing = Tensor::from(Shape{0}, std::vector<int32_t>{});
  EXPECT_EQ(values<int32_t>(run("ReduceMax", {nothing})), (std::vector<int32_t>{INT32_MIN}));
}

TEST(Reduce, NanWinsInExtremes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(values(run("ReduceMax", {floats(Shape{3}, {1, nan, 2})}))[0]));
  EXPECT_TRUE(std::isnan(values(run("ReduceMin", {floats(Shape{3}, {1, nan, 2})}))[0]));
}

TEST(Reduce, Errors) {
  EXPECT_NE(error_of("ReduceSum", {iota(Shape{2, 3}), Tensor::ints({2})}).find("axis"), std::string::npos);
  EXPECT_NE(error_of("ArgMax", {Tensor(DType::kFloat32, Shape{0, 3})}).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
