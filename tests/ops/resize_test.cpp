#include "kernels/resize.hpp"

#include <cmath>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

struct Case {
  const char* mode;
  const char* coordinate;
  const char* nearest;
  int64_t antialias;
  int64_t exclude_outside;
  float cubic_a;
  float extrapolation;
  F roi;           // of the last axis
  int64_t extent;  // of the last axis
  float scale;     // 0: size counts
  int64_t size;
  F expected;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> made = {
#include "ops/resize_cases.inc"
  };
  return made;
}

F sample(int64_t n) {
  F x;
  for (int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>((i * 7 + 3) % 11) - 4.5F + 0.25F * static_cast<float>(i));
  return x;
}

Attributes attributes_of(const Case& c) {
  return attributes({{"mode", std::string(c.mode)},
                     {"coordinate_transformation_mode", std::string(c.coordinate)},
                     {"nearest_mode", std::string(c.nearest)},
                     {"antialias", c.antialias},
                     {"exclude_outside", c.exclude_outside},
                     {"cubic_coeff_a", c.cubic_a},
                     {"extrapolation_value", c.extrapolation}});
}

// The resized axis at place `axis` of a rank-4 tensor; the others have extent 1.
F resized(const Case& c, int axis) {
  Shape shape{1, 1, 1, 1};
  shape.set(axis, c.extent);
  F scales(4, 1.0F);
  I sizes(4, 1);
  F roi{0, 0, 0, 0, 1, 1, 1, 1};
  scales[static_cast<size_t>(axis)] = c.scale;
  sizes[static_cast<size_t>(axis)] = c.size;
  if (!c.roi.empty()) {
    roi[static_cast<size_t>(axis)] = c.roi[0];
    roi[static_cast<size_t>(axis) + 4] = c.roi[1];
  }
  std::vector<Tensor> inputs{floats(shape, sample(c.extent)), c.roi.empty() ? Tensor() : floats(Shape{8}, roi),
                             Tensor(), Tensor()};
  if (c.scale != 0.0F) inputs[2] = floats(Shape{4}, scales);
  if (c.scale == 0.0F) inputs[3] = Tensor::ints(sizes);
  return values(run("Resize", inputs, attributes_of(c)));
}

TEST(Resize, MatchesTheCommonRuntime) {
  for (const Case& c : cases()) {
    for (const int axis : {3, 2, 1}) {
      const F y = resized(c, axis);
      ASSERT_EQ(y.size(), c.expected.size());
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_NEAR(y[i], c.expected[i], 4e-6) << c.mode << " " << c.coordinate << " " << c.nearest << " scale "
                                               << c.scale << " size " << c.size << " at " << i;
      }
    }
  }
}

// Rounding in fp32 moves these ties off the half.
TEST(Resize, TiesThatRoundingMovedAreTies) {
  struct Tie {
    const char* coordinate;
    const char* nearest;
    int64_t extent, size, at;
    float expected;
  };
  for (const Tie& t :
       {Tie{"half_pixel", "round_prefer_floor", 28, 19, 9, 13},
        Tie{"pytorch_half_pixel", "round_prefer_floor", 14, 19, 9, 6},
        Tie{"asymmetric", "round_prefer_ceil", 10, 12, 9, 8}, Tie{"half_pixel", "round_prefer_ceil", 26, 1, 0, 13}}) {
    const Attributes nearest = attributes(
        {{"coordinate_transformation_mode", std::string(t.coordinate)}, {"nearest_mode", std::string(t.nearest)}});
    F x;
    for (int64_t i = 0; i < t.extent; ++i) x.push_back(static_cast<float>(i));
    const F y =
        values(run("Resize", {floats(Shape{t.extent}, x), Tensor(), Tensor(), Tensor::ints({t.size})}, nearest));
    EXPECT_EQ(y[static_cast<size_t>(t.at)], t.expected) << t.coordinate << " " << t.extent << " to " << t.size;
  }
}

TEST(Resize, HalfPixelForNearestOfOldTensorflow) {
  const Attributes nearest = attributes({{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                                         {"nearest_mode", std::string("floor")}});
  const F y = values(run("Resize", {floats(Shape{4}, {0, 1, 2, 3}), Tensor(), Tensor(), Tensor::ints({3})}, nearest));
  EXPECT_EQ(y, (F{0, 2, 3}));  // floor((x + 0.5) * 4 / 3)
}

TEST(Resize, TwoAxesAreTheProductOfOne) {
  const Tensor x = iota(Shape{1, 2, 3, 4});
  const Attributes linear = attributes({{"mode", std::string("linear")}});
  const Tensor both = run("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, 2, 2})}, linear);
  const Tensor rows = run("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, 2, 1})}, linear);
  EXPECT_EQ(dims(both), (I{1, 2, 6, 8}));
  EXPECT_EQ(values(run("Resize", {rows, Tensor(), floats(Shape{4}, {1, 1, 1, 2})}, linear)), values(both));
}

TEST(Resize, AxesAndAspectRatio) {
  const Tensor x = iota(Shape{1, 1, 4, 8});
  const auto policy = [](const char* name) {
    return attributes({{"axes", I{2, 3}}, {"keep_aspect_ratio_policy", std::string(name)}});
  };
  EXPECT_EQ(dims(run("Resize", {x, Tensor(), Tensor(), Tensor::ints({6, 6})}, policy("stretch"))), (I{1, 1, 6, 6}));
  EXPECT_EQ(dims(run("Resize", {x, Tensor(), Tensor(), Tensor::ints({6, 6})}, policy("not_larger"))), (I{1, 1, 3, 6}));
  EXPECT_EQ(dims(run("Resize", {x, Tensor(), Tensor(), Tensor::ints({6, 6})}, policy("not_smaller"))),
            (I{1, 1, 6, 12}));
}

TEST(Resize, NearestMovesAnyType) {
  const Tensor x = Tensor::from<int8_t>(Shape{1, 1, 1, 2}, std::vector<int8_t>{-5, 7});
  EXPECT_EQ(values<int8_t>(run("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, 2, 2})})),
            (std::vector<int8_t>{-5, -5, 7, 7, -5, -5, 7, 7}));
  // Between -5 and 7 lie -2 and 4.
  const Tensor between =
      run("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, 1, 2})}, attributes({{"mode", std::string("linear")}}));
  EXPECT_EQ(values<int8_t>(between), (std::vector<int8_t>{-5, -2, 4, 7}));
}

TEST(Resize, RefusesWhatItCannotDo) {
  const Tensor x = iota(Shape{1, 1, 2, 2});
  EXPECT_NE(error_of("Resize", {x}).find("either scales or sizes"), std::string::npos);
  EXPECT_NE(error_of("Resize", {x, Tensor(), floats(Shape{2}, {2, 2})}).find("2 values for 4 axes"), std::string::npos);
  EXPECT_NE(error_of("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, -1, 2})}).find("scale -1"), std::string::npos);
  EXPECT_NE(
      error_of("Resize", {x, Tensor(), floats(Shape{4}, {1, 1, 2, 2})}, attributes({{"mode", std::string("area")}}))
          .find("area"),
      std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
