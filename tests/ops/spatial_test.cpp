// Sampling, regions and windows put back; ONNX's own cases run elsewhere, here are values that can be worked out.
#include <cmath>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

Attributes sampling(const char* mode, const char* padding, int64_t align = 0) {
  return attributes({{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}});
}

TEST(GridSample, PositionsOfOneRow) {
  const Tensor x = floats(Shape{1, 1, 1, 4}, {10, 20, 30, 40});
  // The second coordinate is that of the only row: its centre.
  const auto at = [&](const F& positions, const Attributes& a) {
    F grid;
    for (const float p : positions) grid.insert(grid.end(), {p, 0.0F});
    return values(run("GridSample", {x, floats(Shape{1, 1, static_cast<int64_t>(positions.size()), 2}, grid)}, a));
  };
  EXPECT_EQ(at({-0.75F, -0.5F, 0, 1, 2}, sampling("linear", "zeros")), (F{10, 15, 25, 20, 0}));
  EXPECT_EQ(at({-1, 1, 3}, sampling("linear", "border")), (F{10, 40, 40}));
  EXPECT_EQ(at({-1, 0, 1, 1.25F}, sampling("linear", "zeros", 1)), (F{10, 25, 40, 25}));
  // 1.5: element 4.5, half an element beyond the edge at 3.5, so element 2.5.
  EXPECT_EQ(at({1.5F, -1.5F}, sampling("linear", "reflection")), (F{35, 15}));
  EXPECT_EQ(at({-0.8F, 0.3F, 5}, sampling("nearest", "zeros")), (F{10, 30, 0}));
  EXPECT_EQ(at({NAN, INFINITY, -INFINITY}, sampling("nearest", "zeros")), (F{0, 0, 0}));
  EXPECT_EQ(at({NAN, INFINITY, -1e30F}, sampling("linear", "border")), (F{10, 40, 10}));
  const F cubic = at({0, -0.25F}, sampling("cubic", "border"));
  EXPECT_FLOAT_EQ(cubic[0], 25.0F);
  EXPECT_FLOAT_EQ(cubic[1], 20.0F);
}

TEST(GridSample, VolumesAndErrors) {
  const Tensor x = iota(Shape{1, 2, 2, 2, 2});
  const Tensor middle = floats(Shape{1, 1, 1, 1, 3}, {0, 0, 0});
  EXPECT_EQ(values(run("GridSample", {x, middle})), (F{3.5F, 11.5F}));
  // x runs along the last axis.
  const Tensor corner = floats(Shape{1, 1, 1, 1, 3}, {1, -1, -1});
  EXPECT_EQ(values(run("GridSample", {x, corner}, sampling("linear", "zeros", 1))), (F{1, 9}));
  EXPECT_EQ(values(run("GridSample", {x, middle}, sampling("cubic", "zeros"))).size(), 2U);
  EXPECT_NE(error_of("GridSample", {x, iota(Shape{1, 1, 1, 1, 2})}).find("operand 1"), std::string::npos);
  EXPECT_NE(error_of("GridSample", {x, middle}, sampling("wavy", "zeros")).find("wavy"), std::string::npos);
}

TEST(AffineGrid, IdentityGivesThePositions) {
  const Tensor theta = floats(Shape{1, 2, 3}, {1, 0, 0, 0, 1, 0.5F});
  const Tensor grid = run("AffineGrid", {theta, Tensor::ints({1, 3, 1, 2})});
  EXPECT_EQ(dims(grid), (I{1, 1, 2, 2}));
  EXPECT_EQ(values(grid), (F{-0.5F, 0.5F, 0.5F, 0.5F}));
  EXPECT_EQ(values(run("AffineGrid", {theta, Tensor::ints({1, 3, 1, 2})}, attributes({{"align_corners", int64_t{1}}}))),
            (F{-1, 0.5F, 1, 0.5F}));
  EXPECT_NE(error_of("AffineGrid", {theta, Tensor::ints({2, 3, 1, 2})}).find("operand 0"), std::string::npos);
  EXPECT_NE(error_of("AffineGrid", {theta, Tensor::ints({1, 3, 2})}).find("size"), std::string::npos);
}

TEST(Regions, RoiAlign) {
  const Tensor x = iota(Shape{1, 2, 4, 4});
  const Tensor rois = floats(Shape{1, 4}, {0.5F, 0.5F, 2.5F, 2.5F});
  const Tensor batch = Tensor::ints({0});
  const Attributes a = attributes({{"output_height", int64_t{2}}, {"output_width", int64_t{2}}});
  // Half a pixel off: bins [0, 1) and [1, 2), one point each, at 0.5 and 1.5.
  EXPECT_EQ(values(run("RoiAlign", {x, rois, batch}, a)), (F{2.5F, 3.5F, 6.5F, 7.5F, 18.5F, 19.5F, 22.5F, 23.5F}));
  const Tensor sample = Tensor::ints({1});
  EXPECT_NE(error_of("RoiAlign", {x, rois, sample}, a).find("sample 1"), std::string::npos);
  const Tensor wide = floats(Shape{1, 4}, {0, 0, 1e20F, INFINITY});
  EXPECT_NE(error_of("RoiAlign", {x, wide, batch}, a).find("region"), std::string::npos);
}

TEST(Regions, MaxRoiPool) {
  const Tensor x = iota(Shape{1, 1, 4, 4});
  const Tensor rois = floats(Shape{2, 5}, {0, 0, 0, 3, 3, 0, 2, 2, 9, 9});
  const Tensor y = run("MaxRoiPool", {x, rois}, attributes({{"pooled_shape", I{2, 2}}}));
  // The second region reaches beyond the map: only its first bin has elements.
  EXPECT_EQ(values(y), (F{5, 7, 13, 15, 15, 0, 0, 0}));
  EXPECT_EQ(values(run("MaxRoiPool", {x, floats(Shape{1, 5}, {0, 0, 0, 4, 4})},
                       attributes({{"pooled_shape", I{1, 1}}, {"spatial_scale", 0.25F}}))),
            (F{5}));
}

TEST(Windows, MaxUnpool) {
  const Tensor x = floats(Shape{1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor places = Tensor::from(Shape{1, 1, 2, 2}, I{5, 7, 13, 15});
  const Attributes a = attributes({{"kernel_shape", I{2, 2}}, {"strides", I{2, 2}}});
  EXPECT_EQ(values(run("MaxUnpool", {x, places}, a)), (F{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}));
  const Tensor wide = run("MaxUnpool", {x, places, Tensor::ints({1, 1, 4, 5})}, a);
  EXPECT_EQ(values(wide), (F{0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0}));
  const Tensor far = Tensor::from(Shape{1, 1, 2, 2}, I{5, 7, 13, 16});
  EXPECT_NE(error_of("MaxUnpool", {x, far}, a).find("index 16"), std::string::npos);
  EXPECT_NE(error_of("MaxUnpool", {x, places, Tensor::ints({1, 1, 3, 5})}, a).find("output_shape"), std::string::npos);
}

TEST(Windows, Col2ImAddsWhatOverlaps) {
  const Tensor x = iota(Shape{1, 2, 3});  // two taps, three windows
  EXPECT_EQ(values(run("Col2Im", {x, Tensor::ints({4}), Tensor::ints({2})})), (F{0, 4, 6, 5}));
  EXPECT_EQ(values(run("Col2Im", {x, Tensor::ints({5}), Tensor::ints({2})},
                       attributes({{"strides", I{2}}, {"pads", I{1, 0}}}))),
            (F{3, 1, 4, 2, 5}));
  EXPECT_NE(error_of("Col2Im", {x, Tensor::ints({9}), Tensor::ints({2})}).find("columns"), std::string::npos);
}

TEST(Windows, CenterCropPad) {
  const Tensor x = iota(Shape{4, 3});
  EXPECT_EQ(values(run("CenterCropPad", {x, Tensor::ints({1, 6})})), (F{0, 3, 4, 5, 0, 0}));
  EXPECT_EQ(values(run("CenterCropPad", {x, Tensor::ints({1})}, attributes({{"axes", I{-1}}}))), (F{1, 4, 7, 10}));
  EXPECT_NE(error_of("CenterCropPad", {x, Tensor::ints({-1, 2})}).find("operand 1"), std::string::npos);
}

TEST(Matrices, Det) {
  EXPECT_EQ(values(run("Det", {floats(Shape{2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})})), (F{-6, 0}));
  EXPECT_EQ(dims(run("Det", {iota(Shape{3, 3})})), (I{}));
  EXPECT_NE(error_of("Det", {iota(Shape{2, 3})}).find("square"), std::string::npos);
}

// Without offsets it is Conv; whole offsets move a tap.
TEST(DeformConv, AgreesWithConv) {
  const Tensor x = iota(Shape{2, 4, 5, 6});
  const Tensor w = iota(Shape{6, 2, 2, 3});
  const Tensor b = floats(Shape{6}, {1, 2, 3, 4, 5, 6});
  Attributes a = attributes({{"group", int64_t{2}}, {"pads", I{1, 0, 1, 2}}, {"strides", I{2, 1}}});
  const Tensor conv = run("Conv", {x, w, b}, a);
  a.set("offset_group", 2);
  const Shape field{2, 12, conv.shape()[2], conv.shape()[3]};
  const Tensor still(DType::kFloat32, Shape{2, 24, field[2], field[3]});
  Tensor ones(DType::kFloat32, field);
  for (float& v : ones.mutable_as<float>()) v = 1.0F;
  EXPECT_EQ(values(run("DeformConv", {x, w, still, b, ones}, a)), values(conv));
  EXPECT_EQ(values(run("DeformConv", {x, w, still, b}, a)), values(conv));

  const Tensor line = floats(Shape{1, 1, 1, 3}, {10, 20, 40});
  const Tensor tap = floats(Shape{1, 1, 1, 1}, {1});
  const Tensor moved = floats(Shape{1, 2, 1, 3}, {0, 0, 0.5F, 1, 0.5F, 0.5F});
  EXPECT_EQ(values(run("DeformConv", {line, tap, moved})), (F{20, 30, 10}));
  EXPECT_NE(error_of("DeformConv", {line, tap, line}).find("operand 2"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
