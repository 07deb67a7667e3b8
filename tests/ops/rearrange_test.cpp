// Gather, scatter, DepthToSpace and the reshaping operators.
#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

TEST(Gather, RowsColumnsAndScalars) {
  const Tensor x = iota(Shape{3, 4});
  const Tensor rows = run("Gather", {x, int64s(Shape{2}, {2, -3})});
  EXPECT_EQ(values(rows), (F{8, 9, 10, 11, 0, 1, 2, 3}));
  const Tensor columns = run("Gather", {x, int64s(Shape{1, 2}, {-1, 0})}, attributes({{"axis", int64_t{1}}}));
  EXPECT_EQ(dims(columns), (I{3, 1, 2}));
  EXPECT_EQ(values(columns), (F{3, 0, 7, 4, 11, 8}));
  EXPECT_EQ(dims(run("Gather", {x, Tensor::scalar<int64_t>(1)})), (I{4}));
  EXPECT_NE(error_of("Gather", {x, Tensor::ints({3})}).find("index 3 outside"), std::string::npos);
  EXPECT_NE(error_of("Gather", {x, x}).find("integer type"), std::string::npos);
}

TEST(Gather, ElementsAlongAnAxis) {
  const Tensor x = floats(Shape{2, 2}, {1, 2, 3, 4});
  const Tensor i = int64s(Shape{2, 2}, {0, 0, 1, 0});
  EXPECT_EQ(values(run("GatherElements", {x, i}, attributes({{"axis", int64_t{1}}}))), (F{1, 1, 4, 3}));
  EXPECT_EQ(values(run("GatherElements", {x, i})), (F{1, 2, 3, 2}));
}

TEST(Gather, TuplesWithBatches) {
  const Tensor x = iota(Shape{2, 2, 2});
  EXPECT_EQ(values(run("GatherND", {x, int64s(Shape{2, 2}, {0, 1, 1, 0})})), (F{2, 3, 4, 5}));
  EXPECT_EQ(values(run("GatherND", {x, int64s(Shape{2, 1}, {1, 0})}, attributes({{"batch_dims", int64_t{1}}}))),
            (F{2, 3, 4, 5}));
  EXPECT_EQ(values(run("GatherND", {x, int64s(Shape{1, 3}, {-1, -1, -1})})), (F{7}));
  EXPECT_NE(error_of("GatherND", {x, int64s(Shape{1, 3}, {0, 0, 2})}).find("outside axis 2"), std::string::npos);
}

TEST(Scatter, WritesAndReduces) {
  const Tensor x = iota(Shape{4});
  const Tensor at = int64s(Shape{2, 1}, {1, -1});
  EXPECT_EQ(values(run("ScatterND", {x, at, floats(Shape{2}, {9, 8})})), (F{0, 9, 2, 8}));
  EXPECT_EQ(
      values(run("ScatterND", {x, at, floats(Shape{2}, {9, 8})}, attributes({{"reduction", std::string("add")}}))),
      (F{0, 10, 2, 11}));
  const Tensor grid =
      run("ScatterElements", {iota(Shape{2, 2}), int64s(Shape{1, 2}, {1, 0}), floats(Shape{1, 2}, {7, 6})});
  EXPECT_EQ(values(grid), (F{0, 6, 7, 3}));
  const Tensor maxed = run("ScatterElements", {iota(Shape{3}), Tensor::ints({1, 1}), floats(Shape{2}, {0.5F, 5})},
                           attributes({{"reduction", std::string("max")}}));
  EXPECT_EQ(values(maxed), (F{0, 5, 2}));
  EXPECT_NE(error_of("ScatterND", {x, at, floats(Shape{3}, {1, 2, 3})}).find("updates"), std::string::npos);
}

TEST(Space, DepthToSpaceInBothOrders) {
  // ONNX's definition, index by index.
  const int64_t b = 2;
  const Tensor x = iota(Shape{2, 12, 2, 3});
  for (const bool dcr : {true, false}) {
    const Tensor y =
        run("DepthToSpace", {x}, attributes({{"blocksize", b}, {"mode", std::string(dcr ? "DCR" : "CRD")}}));
    ASSERT_EQ(dims(y), (I{2, 3, 4, 6}));
    size_t n = 0;
    for (int64_t batch = 0; batch < 2; ++batch) {
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t h = 0; h < 4; ++h) {
          for (int64_t w = 0; w < 6; ++w) {
            const int64_t cell = h % b * b + w % b;
            const int64_t source = dcr ? cell * 3 + c : c * b * b + cell;
            const int64_t flat = ((batch * 12 + source) * 2 + h / b) * 3 + w / b;
            ASSERT_EQ(y.as<float>()[n++], static_cast<float>(flat));
          }
        }
      }
    }
  }
  EXPECT_NE(error_of("DepthToSpace", {x}, attributes({{"blocksize", int64_t{5}}})).find("12 channels"),
            std::string::npos);
}

TEST(Space, SpaceToDepthUndoesIt) {
  const Tensor x = iota<int8_t>(Shape{1, 3, 4, 6});
  const Attributes block = attributes({{"blocksize", int64_t{2}}});
  const Tensor deep = run("SpaceToDepth", {x}, block);
  EXPECT_EQ(dims(deep), (I{1, 12, 2, 3}));
  EXPECT_EQ(values<int8_t>(run("DepthToSpace", {deep}, block)), values<int8_t>(x));
}

TEST(Space, ReverseSequenceByLengths) {
  const Tensor x = iota(Shape{4, 2});
  EXPECT_EQ(values(run("ReverseSequence", {x, Tensor::ints({3, 1})})), (F{4, 1, 2, 3, 0, 5, 6, 7}));
}

TEST(Reshape, RulesOfZeroAndMinusOne) {
  const Tensor x = iota(Shape{2, 3, 4});
  EXPECT_EQ(dims(run("Reshape", {x, Tensor::ints({0, -1})})), (I{2, 12}));
  EXPECT_EQ(dims(run("Reshape", {x, Tensor::ints({4, 3, 2})})), (I{4, 3, 2}));
  EXPECT_EQ(values(run("Reshape", {x, Tensor::ints({-1})})), values(x));
  const Tensor empty = Tensor(DType::kFloat32, Shape{0, 3});
  EXPECT_EQ(dims(run("Reshape", {empty, Tensor::ints({3, 0})}, attributes({{"allowzero", int64_t{1}}}))), (I{3, 0}));
  EXPECT_NE(error_of("Reshape", {x, Tensor::ints({5, -1})}).find("24 elements"), std::string::npos);
  EXPECT_NE(error_of("Reshape", {x, Tensor::ints({-1, -1})}).find("more than one"), std::string::npos);
  EXPECT_NE(error_of("Reshape", {x, Tensor::ints({2, 3, 4, 0})}).find("no extent to copy"), std::string::npos);
}

TEST(Reshape, FlattenSqueezeUnsqueezeDropout) {
  const Tensor x = iota(Shape{1, 3, 1, 4});
  EXPECT_EQ(dims(run("Flatten", {x}, attributes({{"axis", int64_t{-1}}}))), (I{3, 4}));
  EXPECT_EQ(dims(run("Flatten", {x}, attributes({{"axis", int64_t{0}}}))), (I{1, 12}));
  EXPECT_EQ(dims(run("Squeeze", {x})), (I{3, 4}));
  EXPECT_EQ(dims(run("Squeeze", {x, Tensor::ints({-2})})), (I{1, 3, 4}));
  EXPECT_EQ(dims(run("Unsqueeze", {x, Tensor::ints({-1, 0})})), (I{1, 1, 3, 1, 4, 1}));
  const auto dropped = run_all("Dropout", {x}, {}, 2);
  EXPECT_EQ(values(dropped[0]), values(x));
  EXPECT_EQ(to_ints(dropped[1].view()), I(12, 1));
  EXPECT_NE(error_of("Dropout", {x, Tensor(), cast(Tensor::scalar(1.0F).view(), DType::kBool)}).find("inference"),
            std::string::npos);
  EXPECT_NE(error_of("Squeeze", {x, Tensor::ints({1})}).find("not 1"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
