#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;

// The element at a multi-index, for expectations written apart from the kernels' loops.
float element(const Tensor& t, const I& index) {
  int64_t offset = 0;
  for (int i = 0; i < t.shape().rank(); ++i) offset = offset * t.shape()[i] + index[static_cast<size_t>(i)];
  return t.as<float>()[static_cast<size_t>(offset)];
}

// Calls f for every multi-index of a shape in row-major order.
template <typename F1>
void each_index(const Shape& shape, F1&& f) {
  I index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t n = 0; n < shape.elements(); ++n) {
    f(index);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < shape[static_cast<int>(i)]) break;
      index[i] = 0;
    }
  }
}

TEST(Movement, ConcatJoinsAlongAnyAxis) {
  const Tensor a = iota(Shape{2, 1, 2});
  const Tensor b = floats(Shape{2, 2, 2}, {10, 11, 12, 13, 14, 15, 16, 17});
  const Tensor c = run("Concat", {a, b}, attributes({{"axis", int64_t{-2}}}));
  EXPECT_EQ(dims(c), (I{2, 3, 2}));
  EXPECT_EQ(values(c), (F{0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17}));
  EXPECT_NE(error_of("Concat", {a, b}, attributes({{"axis", int64_t{0}}})).find("differ outside axis 0"),
            std::string::npos);
}

TEST(Movement, SplitBySizesAndEqually) {
  const Tensor x = iota(Shape{2, 5});
  const auto parts = run_all("Split", {x, Tensor::ints({2, 3})}, attributes({{"axis", int64_t{1}}}), 2);
  EXPECT_EQ(values(parts[0]), (F{0, 1, 5, 6}));
  EXPECT_EQ(values(parts[1]), (F{2, 3, 4, 7, 8, 9}));
  const auto thirds = run_all("Split", {x}, attributes({{"axis", int64_t{1}}, {"num_outputs", int64_t{3}}}), 3);
  EXPECT_EQ(dims(thirds[0]), (I{2, 2}));
  EXPECT_EQ(dims(thirds[2]), (I{2, 1}));
  EXPECT_EQ(values(thirds[2]), (F{4, 9}));
  EXPECT_NE(error_of("Split", {x, Tensor::ints({2, 2})}, attributes({{"axis", int64_t{1}}}), 2).find("do not sum to 5"),
            std::string::npos);
}

TEST(Movement, SliceMatchesNumpySemantics) {
  const Tensor x = iota(Shape{4, 5});
  const Tensor a =
      run("Slice", {x, Tensor::ints({1, 0}), Tensor::ints({3, 1000}), Tensor::ints({0, 1}), Tensor::ints({1, 2})});
  EXPECT_EQ(values(a), (F{5, 7, 9, 10, 12, 14}));
  const Tensor reversed =
      run("Slice", {x, Tensor::ints({-1}), Tensor::ints({INT64_MIN}), Tensor::ints({-1}), Tensor::ints({-1})});
  EXPECT_EQ(dims(reversed), (I{4, 5}));
  EXPECT_EQ(values(reversed)[0], 4.0F);
  EXPECT_EQ(values(reversed)[5], 9.0F);
  const Tensor jump = run("Slice", {x, Tensor::ints({3}), Tensor::ints({0}), Tensor::ints({1}), Tensor::ints({-2})});
  EXPECT_EQ(values(jump), (F{3, 1, 8, 6, 13, 11, 18, 16}));
  EXPECT_EQ(dims(run("Slice", {x, Tensor::ints({3}), Tensor::ints({1})})), (I{0, 5}));
  EXPECT_EQ(
      values(run("Slice", {x, Tensor::ints({1}), Tensor::ints({4}), Tensor::ints({1}), Tensor::ints({INT64_MAX})})),
      (F{1, 6, 11, 16}));
  EXPECT_NE(error_of("Slice", {x, Tensor::ints({0}), Tensor::ints({1}), Tensor::ints({0}), Tensor::ints({0})})
                .find("step is 0"),
            std::string::npos);
  EXPECT_NE(error_of("Slice", {x, Tensor::ints({0}), Tensor::ints({1}), Tensor::ints({2})}).find("axis 2"),
            std::string::npos);
}

TEST(Movement, PadModes) {
  const Tensor x = floats(Shape{1, 3}, {1, 2, 3});
  const auto mode = [](const char* name) { return attributes({{"mode", std::string(name)}}); };
  const Tensor pads = Tensor::ints({0, 2, 0, 3});
  EXPECT_EQ(values(run("Pad", {x, pads, Tensor::scalar(9.0F)})), (F{9, 9, 1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(values(run("Pad", {x, pads}, mode("edge"))), (F{1, 1, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(values(run("Pad", {x, Tensor::ints({0, 2, 0, 2})}, mode("reflect"))), (F{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(values(run("Pad", {x, pads}, mode("wrap"))), (F{2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(values(run("Pad", {x, Tensor::ints({-1, 1}), Tensor(), Tensor::ints({1})})), (F{2, 3, 0}));
  EXPECT_EQ(values(run("Pad", {x, Tensor::ints({-1, 1}), Tensor(), Tensor::ints({1})}, mode("edge"))), (F{2, 3, 3}));
  EXPECT_NE(error_of("Pad", {x, Tensor::ints({0, -4, 0, 0})}).find("more is removed"), std::string::npos);
  EXPECT_NE(error_of("Pad", {x, pads}, mode("mirror")).find("mirror"), std::string::npos);
}

TEST(Movement, PadTwoAxesAroundTheInterior) {
  const Tensor y = run("Pad", {iota(Shape{2, 2}), Tensor::ints({1, 0, 0, 1}), Tensor::scalar(-1.0F)});
  EXPECT_EQ(dims(y), (I{3, 3}));
  EXPECT_EQ(values(y), (F{-1, -1, -1, 0, 1, -1, 2, 3, -1}));
}

TEST(Movement, TransposeEveryPermutationOfEveryElementSize) {
  const Shape shape{3, 37, 1, 41};
  I perm{0, 1, 2, 3};
  const Tensor x = iota(shape);
  do {
    const Tensor y = run("Transpose", {x}, attributes({{"perm", perm}}));
    size_t n = 0;
    each_index(y.shape(), [&](const I& index) {
      I source(4);
      for (size_t i = 0; i < 4; ++i) source[static_cast<size_t>(perm[i])] = index[i];
      ASSERT_EQ(y.as<float>()[n++], element(x, source));
    });
    const Tensor small = run("Transpose", {cast(x.view(), DType::kInt8)}, attributes({{"perm", perm}}));
    EXPECT_EQ(values<int8_t>(small), values<int8_t>(cast(y.view(), DType::kInt8)));
    const Tensor wide = run("Transpose", {cast(x.view(), DType::kInt64)}, attributes({{"perm", perm}}));
    EXPECT_EQ(to_doubles(wide.view()), to_doubles(y.view()));
    const Tensor half = run("Transpose", {cast(x.view(), DType::kInt16)}, attributes({{"perm", perm}}));
    EXPECT_EQ(to_doubles(half.view()), to_doubles(y.view()));
  } while (std::next_permutation(perm.begin(), perm.end()));
  EXPECT_EQ(dims(run("Transpose", {x})), (I{41, 1, 37, 3}));
  EXPECT_NE(error_of("Transpose", {x}, attributes({{"perm", I{0, 0, 1, 2}}})).find("named twice"), std::string::npos);
}

TEST(Movement, TileAndExpandRepeat) {
  EXPECT_EQ(values(run("Tile", {iota(Shape{2, 2}), Tensor::ints({2, 2})})),
            (F{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(dims(run("Tile", {iota(Shape{2, 2}), Tensor::ints({0, 2})})), (I{0, 4}));
  EXPECT_EQ(values(run("Expand", {iota(Shape{2, 1}), Tensor::ints({2, 1, 3})})),
            (F{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values(run("Expand", {iota(Shape{1, 3}), Tensor::ints({2, 1})})), (F{0, 1, 2, 0, 1, 2}));
  EXPECT_NE(error_of("Expand", {iota(Shape{2, 2}), Tensor::ints({3})}).find("broadcast"), std::string::npos);
}

TEST(Movement, SliceAndPadInvertEachOtherOnRandomShapes) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    I extents;
    I pads(static_cast<size_t>(2 * rank));
    I starts;
    I ends;
    for (int i = 0; i < rank; ++i) {
      extents.push_back(1 + static_cast<int64_t>(random() % 6));
      pads[static_cast<size_t>(i)] = static_cast<int64_t>(random() % 4);
      pads[static_cast<size_t>(i + rank)] = static_cast<int64_t>(random() % 4);
      starts.push_back(pads[static_cast<size_t>(i)]);
      ends.push_back(starts.back() + extents.back());
    }
    const Tensor x = iota<int16_t>(*Shape::make(extents));
    const Tensor padded = run("Pad", {x, Tensor::ints(pads)});
    EXPECT_EQ(values<int16_t>(run("Slice", {padded, Tensor::ints(starts), Tensor::ints(ends)})), values<int16_t>(x));
  }
}

}  // namespace
}  // namespace openrknn::ops::test
