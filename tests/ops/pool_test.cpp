#include <limits>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;

Attributes window(const I& kernel, const I& strides, const I& pads, int64_t ceil_mode = 0, int64_t include = -1) {
  Attributes a;
  a.set("kernel_shape", kernel);
  a.set("strides", strides);
  a.set("pads", pads);
  a.set("ceil_mode", ceil_mode);
  if (include >= 0) a.set("count_include_pad", include);
  return a;
}

TEST(Pool, MaxHandComputed) {
  const Tensor x = iota(Shape{1, 1, 3, 4});
  EXPECT_EQ(values(run("MaxPool", {x}, window({2, 2}, {1, 2}, {0, 0, 0, 0}))), (F{5, 7, 9, 11}));
  EXPECT_EQ(values(run("MaxPool", {x}, window({2, 2}, {2, 2}, {0, 0, 0, 0}))), (F{5, 7}));
  EXPECT_EQ(values(run("MaxPool", {x}, window({2, 2}, {2, 2}, {0, 0, 0, 0}, 1))), (F{5, 7, 9, 11}));
  EXPECT_EQ(values(run("MaxPool", {floats(Shape{1, 1, 2}, {-3, -4})}, window({2}, {1}, {1, 1}))), (F{-3, -3, -4}));
}

TEST(Pool, AverageCountsPaddingOnlyWhenAsked) {
  const Tensor x = floats(Shape{1, 1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(values(run("AveragePool", {x}, window({3}, {2}, {1, 1}))), (F{1.5F, 3}));
  EXPECT_EQ(values(run("AveragePool", {x}, window({3}, {2}, {1, 1}, 0, 1))), (F{1, 3}));
  // With ceil_mode the last window [4, pad, -] counts its padding but not what lies beyond it.
  EXPECT_EQ(values(run("AveragePool", {x}, window({3}, {2}, {0, 1}, 0, 1))), (F{2, 7.0F / 3}));
  EXPECT_EQ(values(run("AveragePool", {x}, window({3}, {3}, {0, 1}, 1, 1))), (F{2, 2}));
  EXPECT_EQ(values(run("AveragePool", {x}, window({3}, {3}, {0, 1}, 1, 0))), (F{2, 4}));
}

TEST(Pool, CeilModeNeverStartsAWindowInTheEndPadding) {
  const Tensor x = floats(Shape{1, 1, 2}, {1, 2});
  // Extent 2 + 1 + 1, kernel 1... stride 3: ceil gives 2 windows, the second starts at 3, in the end padding.
  EXPECT_EQ(dims(run("MaxPool", {x}, window({1}, {3}, {0, 1}, 1))), (I{1, 1, 1}));
  EXPECT_EQ(dims(run("MaxPool", {floats(Shape{1, 1, 5}, {1, 2, 3, 4, 5})}, window({2}, {2}, {0, 0}, 1))), (I{1, 1, 3}));
}

TEST(Pool, CeilModeLetsTheFirstWindowStickOut) {
  const Attributes a =
      attributes({{"kernel_shape", I{3}}, {"strides", I{2}}, {"pads", I{1, 0}}, {"ceil_mode", int64_t{1}}});
  EXPECT_EQ(values(run("MaxPool", {floats(Shape{1, 1, 1}, {7})}, a)), (std::vector<float>{7}));
  EXPECT_EQ(values(run("AveragePool", {floats(Shape{1, 1, 1}, {7})}, a)), (std::vector<float>{7}));
}

TEST(Pool, RandomWindowsEqualTheDefinition) {
  std::mt19937 rng(5);
  const auto pick = [&rng](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 200; ++i) {
    const int64_t c = pick(1, 5), h = pick(4, 15), w = pick(4, 15), kh = pick(1, 3), kw = pick(1, 3), sh = pick(1, 3),
                  sw = pick(1, 3);
    const int64_t dh = pick(1, 2), dw = pick(1, 2), pt = pick(0, kh - 1), pl = pick(0, kw - 1), pb = pick(0, kh - 1),
                  pr = pick(0, kw - 1);
    if ((kh - 1) * dh + 1 > h + pt + pb || (kw - 1) * dw + 1 > w + pl + pr) continue;
    std::vector<float> data(static_cast<size_t>(c * h * w));
    for (float& v : data) v = static_cast<float>(pick(-100, 100));
    const Tensor x = Tensor::from(Shape{1, c, h, w}, data);
    for (const bool average : {false, true}) {
      const int64_t include = average ? pick(0, 1) : -1;
      Attributes a = window({kh, kw}, {sh, sw}, {pt, pl, pb, pr}, 0, include);
      a.set("dilations", I{dh, dw});
      const Tensor y = run(average ? "AveragePool" : "MaxPool", {x}, a);
      const int64_t oh = (h + pt + pb - (kh - 1) * dh - 1) / sh + 1, ow = (w + pl + pr - (kw - 1) * dw - 1) / sw + 1;
      ASSERT_EQ(dims(y), (I{1, c, oh, ow}));
      for (int64_t e = 0; e < y.elements(); ++e) {
        const int64_t ch = e / (oh * ow), oy = e / ow % oh, ox = e % ow;
        double sum = 0.0, most = -std::numeric_limits<double>::infinity();
        int64_t n = 0;
        for (int64_t ky = 0; ky < kh; ++ky) {
          for (int64_t kx = 0; kx < kw; ++kx) {
            const int64_t iy = oy * sh - pt + ky * dh, ix = ox * sw - pl + kx * dw;
            if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
            const double v = data[static_cast<size_t>((ch * h + iy) * w + ix)];
            sum += v;
            most = std::max(most, v);
            ++n;
          }
        }
        const auto count = static_cast<double>(include == 1 ? kh * kw : n);
        const float expected = average ? (n == 0 ? 0.0F : static_cast<float>(sum / count)) : static_cast<float>(most);
        ASSERT_EQ(y.as<float>()[static_cast<size_t>(e)], expected) << "case " << i << " element " << e;
      }
    }
  }
}

TEST(Pool, GlobalPoolsOfAnyRank) {
  const Tensor x = iota(Shape{1, 2, 5, 7});
  EXPECT_EQ(values(run("GlobalAveragePool", {x})), (F{17, 52}));
  EXPECT_EQ(dims(run("GlobalAveragePool", {x})), (I{1, 2, 1, 1}));
  EXPECT_EQ(values(run("GlobalMaxPool", {x})), (F{34, 69}));
  EXPECT_EQ(values(run("GlobalAveragePool", {iota(Shape{2, 1, 3})})), (F{1, 4}));
}

TEST(Pool, MaxOfBytesAndItsPlaces) {
  const std::vector<uint8_t> bytes = {0, 0, 7, 9, 9, 3, 0, 0, 0, 0, 0, 5};
  const Tensor x = Tensor::from(Shape{1, 2, 2, 3}, bytes);
  Attributes a = window({2, 2}, {1, 1}, {0, 0, 0, 0});
  const auto rows = run_all("MaxPool", {x}, a, 2);
  EXPECT_EQ(values<uint8_t>(rows[0]), (std::vector<uint8_t>{9, 9, 0, 5}));
  EXPECT_EQ(values<int64_t>(rows[1]), (I{3, 4, 6, 11}));  // the first of equals
  a.set("storage_order", 1);
  EXPECT_EQ(values<int64_t>(run_all("MaxPool", {x}, a, 2)[1]), (I{1, 3, 6, 11}));
  const Tensor low = Tensor::from(Shape{1, 1, 2}, std::vector<int8_t>{-128, -128});
  const auto lowest = run_all("MaxPool", {low}, window({2}, {1}, {0, 0}), 2);
  EXPECT_EQ(values<int8_t>(lowest[0]), (std::vector<int8_t>{-128}));
  EXPECT_EQ(values<int64_t>(lowest[1]), (I{0}));
}

TEST(Pool, LpPools) {
  const Tensor x = floats(Shape{1, 1, 4}, {-3, 4, 1, -2});
  Attributes a = window({2}, {1}, {0, 0});
  EXPECT_EQ(values(run("LpPool", {x}, a)), (F{5, std::sqrt(17.0F), std::sqrt(5.0F)}));
  a = window({2}, {2}, {1, 1});
  a.set("p", 1);
  EXPECT_EQ(values(run("LpPool", {x}, a)), (F{3, 5, 2}));
  EXPECT_EQ(values(run("GlobalLpPool", {x}, attributes({{"p", int64_t{1}}}))), (F{10}));
  EXPECT_NEAR(values(run("GlobalLpPool", {x}, attributes({{"p", int64_t{3}}})))[0], std::cbrt(100.0F), 1e-6);
  EXPECT_NE(error_of("GlobalLpPool", {x}, attributes({{"p", int64_t{0}}})).find("'p'"), std::string::npos);
}

TEST(Pool, Errors) {
  EXPECT_NE(error_of("MaxPool", {iota(Shape{2, 3})}, window({1}, {1}, {0, 0})).find("no spatial axis"),
            std::string::npos);
  EXPECT_NE(error_of("MaxPool", {iota(Shape{1, 1, 4})}, window({2, 2}, {1, 1}, {0, 0, 0, 0})).find("kernel_shape"),
            std::string::npos);
  EXPECT_NE(error_of("AveragePool", {iota(Shape{1, 1, 4})}, window({9}, {1}, {0, 0})).find("does not fit"),
            std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
