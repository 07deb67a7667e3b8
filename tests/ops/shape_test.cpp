// Operators about shapes, constants and types, and those that look for elements.
#include <limits>

#include "kernels/cpu/registry.hpp"
#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

TEST(ShapeOps, ShapeAndSize) {
  const Tensor x = iota(Shape{2, 3, 4});
  EXPECT_EQ(values<int64_t>(run("Shape", {x})), (I{2, 3, 4}));
  EXPECT_EQ(values<int64_t>(run("Shape", {x}, attributes({{"start", int64_t{-2}}, {"end", int64_t{2}}}))), (I{3}));
  EXPECT_EQ(values<int64_t>(run("Shape", {x}, attributes({{"start", int64_t{5}}}))), (I{}));
  EXPECT_EQ(values<int64_t>(run("Size", {x})), (I{24}));
}

TEST(ShapeOps, Constants) {
  EXPECT_EQ(values(run("Constant", {}, attributes({{"value_floats", F{1, 2}}}))), (F{1, 2}));
  EXPECT_EQ(values<int64_t>(run("Constant", {}, attributes({{"value", Tensor::ints({7})}}))), (I{7}));
  EXPECT_EQ(values(run("ConstantOfShape", {Tensor::ints({1, 2})})), (F{0, 0}));
  const Tensor ones = run("ConstantOfShape", {Tensor::ints({2, 2})}, attributes({{"value", Tensor::ints({-1})}}));
  EXPECT_EQ(values<int64_t>(ones), (I{-1, -1, -1, -1}));
  EXPECT_NE(error_of("ConstantOfShape", {Tensor::ints({-1})}).find("negative"), std::string::npos);
}

TEST(ShapeOps, RangesOfAnyType) {
  const auto range = [](auto a, auto b, auto c) {
    return run("Range", {Tensor::scalar(a), Tensor::scalar(b), Tensor::scalar(c)});
  };
  EXPECT_EQ(values<int64_t>(range(int64_t{3}, int64_t{10}, int64_t{3})), (I{3, 6, 9}));
  EXPECT_EQ(values<int32_t>(range(10, 4, -2)), (std::vector<int32_t>{10, 8, 6}));
  EXPECT_EQ(values<int64_t>(range(int64_t{3}, int64_t{3}, int64_t{1})), (I{}));
  EXPECT_EQ(values(range(0.0F, 1.0F, 0.25F)), (F{0, 0.25F, 0.5F, 0.75F}));
  EXPECT_NE(error_of("Range", {Tensor::scalar(0), Tensor::scalar(1), Tensor::scalar(0)}).find("no end"),
            std::string::npos);
}

TEST(ShapeOps, CastTruncatesSaturatesAndRounds) {
  const auto to = [](DType d) { return attributes({{"to", onnx_number(d)}}); };
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = floats(Shape{6}, {-1.7F, 1.7F, 300, -300, inf, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(values<int8_t>(run("Cast", {x}, to(DType::kInt8))), (std::vector<int8_t>{-1, 1, 127, -128, 127, 0}));
  EXPECT_EQ(to_ints(run("Cast", {floats(Shape{3}, {0, -0.5F, 2})}, to(DType::kBool)).view()), (I{0, 1, 1}));
  EXPECT_EQ(to_doubles(run("Cast", {floats(Shape{1}, {2049})}, to(DType::kFloat16)).view()),
            (std::vector<double>{2048}));
  EXPECT_EQ(values<int64_t>(run("CastLike", {floats(Shape{1}, {2.5F}), Tensor::ints({0})})), (I{2}));
  EXPECT_NE(error_of("Cast", {x}, attributes({{"to", int64_t{8}}})).find("type number 8"), std::string::npos);
}

TEST(Select, TopKSortsAndKeepsOrderOfTies) {
  const Tensor x = floats(Shape{2, 4}, {1, 3, 3, 2, 5, 4, 6, 4});
  const auto top = run_all("TopK", {x, Tensor::ints({2})}, {}, 2);
  EXPECT_EQ(values(top[0]), (F{3, 3, 6, 5}));
  EXPECT_EQ(values<int64_t>(top[1]), (I{1, 2, 2, 0}));
  const auto low =
      run_all("TopK", {x, Tensor::ints({1})}, attributes({{"axis", int64_t{0}}, {"largest", int64_t{0}}}), 2);
  EXPECT_EQ(values(low[0]), (F{1, 3, 3, 2}));
  EXPECT_EQ(values<int64_t>(low[1]), (I{0, 0, 0, 0}));
  EXPECT_NE(error_of("TopK", {x, Tensor::ints({5})}, {}, 2).find("0..4"), std::string::npos);
}

TEST(Select, NonZeroOneHotTriluCumSum) {
  const Tensor found = run("NonZero", {floats(Shape{2, 2}, {1, 0, 0, 2})});
  EXPECT_EQ(values<int64_t>(found), (I{0, 1, 0, 1}));
  const Tensor hot = run("OneHot", {Tensor::ints({1, -1, 7}), Tensor::scalar<int64_t>(3), floats(Shape{2}, {0, 5})});
  EXPECT_EQ(values(hot), (F{0, 5, 0, 0, 0, 5, 0, 0, 0}));
  const Tensor first = run("OneHot", {Tensor::ints({1, 0}), Tensor::scalar<int64_t>(2), floats(Shape{2}, {0, 1})},
                           attributes({{"axis", int64_t{0}}}));
  EXPECT_EQ(values(first), (F{0, 1, 1, 0}));
  const Tensor x = iota(Shape{3, 3});
  EXPECT_EQ(values(run("Trilu", {x})), (F{0, 1, 2, 0, 4, 5, 0, 0, 8}));
  EXPECT_EQ(values(run("Trilu", {x, Tensor::scalar<int64_t>(-1)}, attributes({{"upper", int64_t{0}}}))),
            (F{0, 0, 0, 3, 0, 0, 6, 7, 0}));
  EXPECT_EQ(values(run("CumSum", {x, Tensor::scalar<int64_t>(0)})), (F{0, 1, 2, 3, 5, 7, 9, 12, 15}));
  EXPECT_EQ(values(run("CumSum", {iota(Shape{3}), Tensor::scalar<int64_t>(0)},
                       attributes({{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}))),
            (F{3, 2, 0}));
}

TEST(Select, CumProdWrapsLikeItsType) {
  const Tensor x = floats(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run("CumProd", {x, Tensor::scalar<int64_t>(1)})), (F{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(values(run("CumProd", {x, Tensor::scalar<int64_t>(-1)},
                       attributes({{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}))),
            (F{6, 3, 1, 30, 6, 1}));
  EXPECT_EQ(values<int64_t>(run("CumProd", {Tensor::ints({INT64_MAX, 2}), Tensor::scalar<int64_t>(0)})),
            (I{INT64_MAX, -2}));
}

TEST(Shapes, BitCast) {
  const Tensor bits = run("BitCast", {floats(Shape{2}, {1.0F, -0.0F})}, attributes({{"to", int64_t{6}}}));
  EXPECT_EQ(values<int32_t>(bits), (std::vector<int32_t>{0x3F800000, INT32_MIN}));
  EXPECT_NE(error_of("BitCast", {bits}, attributes({{"to", int64_t{7}}})).find("size"), std::string::npos);
}

TEST(Shapes, EyeLike) {
  EXPECT_EQ(values(run("EyeLike", {floats(Shape{2, 3}, {9, 9, 9, 9, 9, 9})})), (F{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(
      values<int64_t>(run("EyeLike", {iota(Shape{3, 2})}, attributes({{"k", int64_t{-1}}, {"dtype", int64_t{7}}}))),
      (I{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(values(run("EyeLike", {iota(Shape{2, 2})}, attributes({{"k", INT64_MAX}}))), (F{0, 0, 0, 0}));
  EXPECT_NE(error_of("EyeLike", {iota(Shape{3})}).find("rank"), std::string::npos);
}

// Inference in a graph: shapes that depend on unknown data stay open, constants make them known.
TEST(Inference, ShapesThatNeedData) {
  Graph g;
  const ValueId x = g.add_input("x", DType::kFloat32, Shape{2, 6});
  const ValueId target = g.add_input("target", DType::kInt64, Shape{2});
  const auto open = add_node(g, "Reshape", "open", {x, target});
  ASSERT_TRUE(open.ok());
  EXPECT_FALSE(g.value((*open)[0]).shape.has_value());
  EXPECT_EQ(g.value((*open)[0]).dtype, DType::kFloat32);
  const auto known = add_node(g, "Reshape", "known", {x, g.add_constant("c", Tensor::ints({3, -1}))});
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(*g.value((*known)[0]).shape, (Shape{3, 4}));
  const auto count = add_node(g, "NonZero", "count", {x});
  ASSERT_TRUE(count.ok());
  EXPECT_FALSE(g.value((*count)[0]).shape.has_value());
}

TEST(Inference, EveryOperatorHasAKernelAndADocLine) {
  for (const OpDef& def : registry().all()) {
    EXPECT_NE(def.infer, nullptr) << def.name;
    EXPECT_NE(cpu::kernels().find(def.name), nullptr) << def.name;
    EXPECT_FALSE(def.doc.empty()) << def.name;
    EXPECT_LE(def.min_inputs, def.max_inputs < 0 ? 1000 : def.max_inputs) << def.name;
  }
}

}  // namespace
}  // namespace openrknn::ops::test
