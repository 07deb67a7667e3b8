#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

Tensor bools(const Shape& shape, const std::vector<uint8_t>& v) {
  return cast(Tensor::from(shape, v).view(), DType::kBool);
}
std::vector<int64_t> truth(const Tensor& t) {
  EXPECT_EQ(t.dtype(), DType::kBool);
  return to_ints(t.view());
}

// Broadcasting stated by index arithmetic, apart from the kernels' loops.
template <typename Op>
F naive(const Tensor& a, const Tensor& b, const Shape& shape, Op op) {
  const auto pick = [&](const Tensor& t, int64_t flat) {
    int64_t offset = 0;
    int64_t stride = 1;
    for (int i = 1; i <= shape.rank(); ++i) {
      const int64_t extent = shape.dim(-i);
      const int64_t at = flat % extent;
      flat /= extent;
      if (i > t.shape().rank()) continue;
      if (t.shape().dim(-i) != 1) offset += at * stride;
      stride *= t.shape().dim(-i);
    }
    return t.as<float>()[static_cast<size_t>(offset)];
  };
  F out;
  for (int64_t n = 0; n < shape.elements(); ++n) out.push_back(op(pick(a, n), pick(b, n)));
  return out;
}

TEST(Elementwise, BroadcastsLikeNumpyOnRandomShapes) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(random() % 5);
    I full;
    for (int i = 0; i < rank; ++i) full.push_back(1 + static_cast<int64_t>(random() % 5));
    const auto thinned = [&] {
      const int cut = static_cast<int>(random() % 2) * static_cast<int>(random() % static_cast<unsigned>(rank + 1));
      I dims(full.begin() + cut, full.end());
      for (int64_t& d : dims) d = random() % 3 == 0 ? 1 : d;
      return *Shape::make(dims);
    };
    const Shape sa = thinned();
    const Shape sb = thinned();
    const Tensor a = iota(sa);
    const Tensor b = iota(sb);
    const Shape shape = *broadcast(sa, sb);
    EXPECT_EQ(values(run("Sub", {a, b})), naive(a, b, shape, [](float x, float y) { return x - y; }));
    EXPECT_EQ(values(run("Max", {a, b})), naive(a, b, shape, [](float x, float y) { return std::max(x, y); }));
    EXPECT_EQ(truth(run("Less", {a, b})), [&] {
      const F v = naive(a, b, shape, [](float x, float y) { return x < y ? 1.0F : 0.0F; });
      return I(v.begin(), v.end());
    }());
  }
}

TEST(Elementwise, LongRowsAreCutIntoStretches) {
  const Tensor a = iota(Shape{2, 3, 40000});
  const Tensor scale = floats(Shape{3, 1}, {1, 2, 3});
  const Tensor y = run("Mul", {a, scale});
  EXPECT_EQ(values(y), naive(a, scale, a.shape(), [](float x, float s) { return x * s; }));
}

TEST(Elementwise, IntegerArithmeticIsExactAndWraps) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(values<int64_t>(run("Add", {Tensor::ints({big, INT64_MAX}), Tensor::ints({1, 1})})),
            (I{big + 1, INT64_MIN}));
  EXPECT_EQ(values<int64_t>(run("Mul", {Tensor::ints({big}), Tensor::ints({3})})), (I{3 * big}));
  EXPECT_EQ(values<int64_t>(run("Div", {Tensor::ints({-7, 7, INT64_MIN}), Tensor::ints({2, -2, -1})})),
            (I{-3, -3, INT64_MIN}));
  EXPECT_EQ(values<int64_t>(run("Mod", {Tensor::ints({-7, 7, INT64_MIN}), Tensor::ints({3, -3, -1})})), (I{2, -2, 0}));
  EXPECT_EQ(
      values<int64_t>(run("Mod", {Tensor::ints({-7, 7}), Tensor::ints({3, -3})}, attributes({{"fmod", int64_t{1}}}))),
      (I{-1, 1}));
  EXPECT_EQ(values<int64_t>(run("Pow", {Tensor::ints({3, -2}), Tensor::ints({5, 3})})), (I{243, -8}));
  EXPECT_EQ(values<int64_t>(run("Pow", {Tensor::ints({4, 9}), Tensor::scalar(1.5F)})), (I{8, 27}));
  EXPECT_NE(error_of("Div", {Tensor::ints({1}), Tensor::ints({0})}).find("divided by 0"), std::string::npos);
  const Tensor bytes = Tensor::from<uint8_t>(Shape{2}, std::vector<uint8_t>{250, 3});
  EXPECT_EQ(values<uint8_t>(run("Add", {bytes, bytes})), (std::vector<uint8_t>{244, 6}));
  const Tensor wide = Tensor::from<uint64_t>(Shape{1}, std::vector<uint64_t>{UINT64_MAX});
  EXPECT_EQ(values<uint64_t>(run("Div", {wide, Tensor::scalar<uint64_t>(2)})), (std::vector<uint64_t>{UINT64_MAX / 2}));
}

TEST(Elementwise, ManyOperands) {
  const Tensor a = floats(Shape{2}, {1, 5});
  const Tensor b = floats(Shape{1}, {3});
  const Tensor c = floats(Shape{2, 1}, {2, 8});
  EXPECT_EQ(values(run("Sum", {a, b, c})), (F{6, 10, 12, 16}));
  EXPECT_EQ(values(run("Mean", {a, b, c})), (F{2, 10.0F / 3, 4, 16.0F / 3}));
  EXPECT_EQ(values(run("Min", {a, b, c})), (F{1, 2, 1, 3}));
  EXPECT_EQ(values(run("Max", {a})), (F{1, 5}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(values(run("Max", {floats(Shape{1}, {nan}), floats(Shape{1}, {1})}))[0]));
  EXPECT_TRUE(std::isnan(values(run("Min", {floats(Shape{1}, {1}), floats(Shape{1}, {nan})}))[0]));
}

TEST(Elementwise, PowersAndShifts) {
  const Tensor x = floats(Shape{4}, {4, 9, 0.5F, 2});
  EXPECT_EQ(values(run("Pow", {x, Tensor::scalar(2.0F)})), (F{16, 81, 0.25F, 4}));
  EXPECT_EQ(values(run("Pow", {x, Tensor::scalar(0.5F)})), (F{2, 3, std::sqrt(0.5F), std::sqrt(2.0F)}));
  EXPECT_EQ(values(run("Pow", {x, Tensor::ints({3})})), (F{64, 729, 0.125F, 8}));
  EXPECT_FLOAT_EQ(values(run("Pow", {x, Tensor::scalar(-1.5F)}))[0], 0.125F);
  const Tensor bits = Tensor::from<uint8_t>(Shape{2}, std::vector<uint8_t>{0x81, 3});
  const Tensor one = Tensor::from<uint8_t>(Shape{1}, std::vector<uint8_t>{1});
  EXPECT_EQ(values<uint8_t>(run("BitShift", {bits, one}, attributes({{"direction", std::string("LEFT")}}))),
            (std::vector<uint8_t>{2, 6}));
  EXPECT_EQ(values<uint8_t>(run("BitwiseXor", {bits, one})), (std::vector<uint8_t>{0x80, 2}));
}

TEST(Elementwise, FusedActivations) {
  const Tensor x = floats(Shape{3}, {-1, 3, 9});
  EXPECT_EQ(values(run("Add", {x, x}, attributes({{"activation", std::string("Relu")}}))), (F{0, 6, 18}));
  const Attributes relu6 =
      attributes({{"activation", std::string("Clip")}, {"activation_min", 0.0F}, {"activation_max", 6.0F}});
  EXPECT_EQ(values(run("Mul", {x, Tensor::scalar(1.5F)}, relu6)), (F{0, 4.5F, 6}));
  EXPECT_EQ(values(run("Sub", {x, Tensor::scalar(1.0F)}, relu6)), (F{0, 2, 6}));
}

TEST(Elementwise, HalvesRoundOnce) {
  const Tensor a = cast(floats(Shape{1}, {2048}).view(), DType::kFloat16);
  const Tensor b = cast(floats(Shape{1}, {3}).view(), DType::kFloat16);
  EXPECT_EQ(to_doubles(run("Add", {a, b}).view()), (std::vector<double>{2052}));  // 2051 is a tie: to even
}

TEST(Elementwise, TypesThatDiffer) {
  EXPECT_NE(error_of("Add", {iota(Shape{2}), Tensor::ints({1, 2})}).find("int64"), std::string::npos);
  EXPECT_NE(error_of("Add", {iota(Shape{2}), iota(Shape{3})}).find("broadcast"), std::string::npos);
}

TEST(Logic, ComparisonsAndTables) {
  const Tensor a = Tensor::ints({1, 2, 3});
  const Tensor b = Tensor::ints({2, 2, 2});
  EXPECT_EQ(truth(run("Equal", {a, b})), (I{0, 1, 0}));
  EXPECT_EQ(truth(run("Greater", {a, b})), (I{0, 0, 1}));
  EXPECT_EQ(truth(run("GreaterOrEqual", {a, b})), (I{0, 1, 1}));
  EXPECT_EQ(truth(run("LessOrEqual", {a, b})), (I{1, 1, 0}));
  const Tensor p = bools(Shape{4}, {0, 0, 1, 1});
  const Tensor q = bools(Shape{4}, {0, 1, 0, 1});
  EXPECT_EQ(truth(run("And", {p, q})), (I{0, 0, 0, 1}));
  EXPECT_EQ(truth(run("Or", {p, q})), (I{0, 1, 1, 1}));
  EXPECT_EQ(truth(run("Xor", {p, q})), (I{0, 1, 1, 0}));
  EXPECT_EQ(truth(run("Equal", {p, q})), (I{1, 0, 0, 1}));
  EXPECT_EQ(truth(run("Not", {p})), (I{1, 1, 0, 0}));
  EXPECT_NE(error_of("And", {a, b}).find("bool expected"), std::string::npos);
}

TEST(Logic, WhereBroadcastsThreeOperandsOfAnyType) {
  const Tensor c = bools(Shape{2, 1}, {1, 0});
  EXPECT_EQ(values(run("Where", {c, floats(Shape{3}, {1, 2, 3}), Tensor::scalar(9.0F)})), (F{1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(values<int64_t>(run("Where", {c, Tensor::ints({1, 2}), Tensor::ints({7, 8})})), (I{1, 2, 7, 8}));
  EXPECT_EQ(truth(run("Where", {c, bools(Shape{1}, {1}), bools(Shape{1}, {0})})), (I{1, 0}));
}

TEST(Unary, FunctionsMatchTheirDefinitions) {
  struct Case {
    const char* op;
    float low;
    float high;
    std::function<double(double)> expected;
  };
  const std::vector<Case> cases{
      {"Neg", -9, 9, [](double x) { return -x; }},
      {"Abs", -9, 9, [](double x) { return std::fabs(x); }},
      {"Sign", -9, 9, [](double x) { return x > 0   ? 1.0
                                            : x < 0 ? -1.0
                                                    : 0.0; }},
      {"Floor", -9, 9, [](double x) { return std::floor(x); }},
      {"Ceil", -9, 9, [](double x) { return std::ceil(x); }},
      {"Round", -9, 9, [](double x) { return std::nearbyint(x); }},
      {"Reciprocal", 0.01F, 90, [](double x) { return 1 / x; }},
      {"Sqrt", 0, 90, [](double x) { return std::sqrt(x); }},
      {"Exp", -80, 80, [](double x) { return std::exp(x); }},
      {"Log", 0.01F, 90, [](double x) { return std::log(x); }},
      {"Erf", -4, 4, [](double x) { return std::erf(x); }},
      {"Sin", -90, 90, [](double x) { return std::sin(x); }},
      {"Cos", -90, 90, [](double x) { return std::cos(x); }},
      {"Tan", -90, 90, [](double x) { return std::tan(x); }},
      {"Asin", -1, 1, [](double x) { return std::asin(x); }},
      {"Acos", -1, 1, [](double x) { return std::acos(x); }},
      {"Atan", -9, 9, [](double x) { return std::atan(x); }},
      {"Atan", 1e5F, 1e20F, [](double x) { return std::atan(x); }},
      {"Sinh", -80, 80, [](double x) { return std::sinh(x); }},
      {"Cosh", -80, 80, [](double x) { return std::cosh(x); }},
      {"Asinh", -90, 90, [](double x) { return std::asinh(x); }},
      {"Acosh", 1, 90, [](double x) { return std::acosh(x); }},
      {"Atanh", -0.999F, 0.999F, [](double x) { return std::atanh(x); }},
  };
  for (const Case& c : cases) {
    constexpr int kSteps = 3000;
    F x;
    for (int i = 0; i <= kSteps; ++i) x.push_back(c.low + (c.high - c.low) * static_cast<float>(i) / kSteps);
    const F y = values(run(c.op, {floats(Shape{static_cast<int64_t>(x.size())}, x)}));
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = c.expected(static_cast<double>(x[i]));
      ASSERT_LE(std::fabs(static_cast<double>(y[i]) - expected), 1e-7 * std::fabs(expected))
          << c.op << "(" << x[i] << ") = " << y[i];
    }
  }
}

TEST(Unary, Shrink) {
  const Attributes a = attributes({{"lambd", 1.5F}, {"bias", 0.5F}});
  EXPECT_EQ(values(run("Shrink", {floats(Shape{5}, {-2, -1.5F, 0, 1, 3})}, a)), (F{-1.5F, 0, 0, 0, 2.5F}));
  const Tensor bytes = Tensor::from(Shape{3}, std::vector<int8_t>{-128, 1, 127});
  EXPECT_EQ(values<int8_t>(run("Shrink", {bytes}, attributes({{"bias", 3.0F}, {"lambd", 1.0F}}))),
            (std::vector<int8_t>{-125, 0, 124}));
}

TEST(Unary, IntegersAndEdges) {
  EXPECT_EQ(values<int64_t>(run("Neg", {Tensor::ints({5, INT64_MIN})})), (I{-5, INT64_MIN}));
  EXPECT_EQ(values<int64_t>(run("Abs", {Tensor::ints({-5, 5})})), (I{5, 5}));
  EXPECT_EQ(values<int64_t>(run("Sign", {Tensor::ints({-5, 0, 5})})), (I{-1, 0, 1}));
  EXPECT_EQ(values(run("Round", {floats(Shape{4}, {0.5F, 1.5F, -2.5F, 2.6F})})), (F{0, 2, -2, 3}));
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor odd = floats(Shape{4}, {std::numeric_limits<float>::quiet_NaN(), inf, -inf, 1});
  EXPECT_EQ(truth(run("IsNaN", {odd})), (I{1, 0, 0, 0}));
  EXPECT_EQ(truth(run("IsInf", {odd})), (I{0, 1, 1, 0}));
  EXPECT_EQ(truth(run("IsInf", {odd}, attributes({{"detect_negative", int64_t{0}}}))), (I{0, 1, 0, 0}));
  for (const char* op : {"Asin", "Acos", "Acosh", "Sqrt", "Log"}) {
    EXPECT_TRUE(std::isnan(values(run(op, {floats(Shape{1}, {-2})}))[0])) << op;
    EXPECT_TRUE(std::isnan(values(run(op, {odd}))[0])) << op;
  }
  EXPECT_EQ(values(run("Atan", {odd}))[1], static_cast<float>(M_PI / 2));
  EXPECT_NE(error_of("Sqrt", {Tensor::ints({4})}).find("float type"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
