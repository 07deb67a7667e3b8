#include <cmath>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

// Three boxes in a row: 0 and 1 overlap by a half of each (a third of both), 2 stands apart.
const F kBoxes = {0, 0, 1, 1, 0, 0.5F, 1, 1.5F, 0, 3, 1, 4};

I kept(const F& scores, int64_t most, float overlap, std::optional<float> least = std::nullopt, int64_t classes = 1) {
  std::vector<Tensor> operands = {floats(Shape{1, 3, 4}, kBoxes), floats(Shape{1, classes, 3}, scores),
                                  Tensor::ints({most}), floats(Shape{1}, {overlap})};
  if (least) operands.push_back(floats(Shape{1}, {*least}));
  return values<int64_t>(run("NonMaxSuppression", operands));
}

TEST(Subset, NonMaxSuppression) {
  EXPECT_EQ(kept({0.5F, 0.9F, 0.7F}, 3, 0.3F), (I{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(kept({0.5F, 0.9F, 0.7F}, 3, 0.5F), (I{0, 0, 1, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(kept({0.5F, 0.9F, 0.7F}, 1, 0.5F), (I{0, 0, 1}));
  EXPECT_EQ(kept({0.5F, 0.9F, 0.7F}, 3, 0.5F, 0.6F), (I{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(kept({0.5F, 0.5F, 0.5F}, 2, 0.5F), (I{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(kept({0, 0, NAN, 1, 0, 0}, 1, 0.5F, std::nullopt, 2), (I{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(kept({1, 1, 1}, 0, 0.5F), (I{}));
  // Middle and extent.
  const Tensor middles = floats(Shape{1, 2, 4}, {0.5F, 0.5F, 1, 1, 0.6F, 0.5F, 1, 1});
  const Tensor scores = floats(Shape{1, 1, 2}, {1, 2});
  EXPECT_EQ(values<int64_t>(run("NonMaxSuppression", {middles, scores, Tensor::ints({9}), floats(Shape{}, {0.5F})},
                                attributes({{"center_point_box", int64_t{1}}}))),
            (I{0, 0, 1}));
  EXPECT_EQ(dims(run("NonMaxSuppression", {middles, scores})), (I{0, 3}));
  EXPECT_NE(error_of("NonMaxSuppression", {middles, iota(Shape{1, 1, 3})}).find("boxes"), std::string::npos);
}

TEST(Subset, UniqueElements) {
  const Tensor x = floats(Shape{6}, {2, 1, 1, 3, NAN, NAN});
  auto results = run_all("Unique", {x}, attributes({{"sorted", int64_t{0}}}), 4);
  EXPECT_EQ(dims(results[0]), (I{4}));
  EXPECT_EQ(values<int64_t>(results[1]), (I{0, 1, 3, 4}));
  EXPECT_EQ(values<int64_t>(results[2]), (I{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(values<int64_t>(results[3]), (I{1, 2, 1, 2}));
  results = run_all("Unique", {Tensor::from(Shape{2, 2}, std::vector<int8_t>{7, -1, -1, 7})}, {}, 2);
  EXPECT_EQ(values<int8_t>(results[0]), (std::vector<int8_t>{-1, 7}));
  EXPECT_EQ(values<int64_t>(results[1]), (I{1, 0}));
  EXPECT_EQ(dims(run("Unique", {iota(Shape{0})})), (I{0}));
}

TEST(Subset, UniqueSlices) {
  const Tensor x = floats(Shape{2, 3}, {2, 1, 2, 0, 5, 0});
  const auto results = run_all("Unique", {x}, attributes({{"axis", int64_t{-1}}}), 4);
  EXPECT_EQ(dims(results[0]), (I{2, 2}));
  EXPECT_EQ(values(results[0]), (F{1, 2, 5, 0}));
  EXPECT_EQ(values<int64_t>(results[1]), (I{1, 0}));
  EXPECT_EQ(values<int64_t>(results[2]), (I{1, 0, 1}));
  EXPECT_EQ(values<int64_t>(results[3]), (I{1, 2}));
}

TEST(Subset, Compress) {
  const Tensor x = iota(Shape{3, 2});
  const auto flags = [](const std::vector<uint8_t>& v) {
    return cast(Tensor::from(Shape{static_cast<int64_t>(v.size())}, v).view(), DType::kBool);
  };
  EXPECT_EQ(values(run("Compress", {x, flags({0, 1, 1})}, attributes({{"axis", int64_t{0}}}))), (F{2, 3, 4, 5}));
  EXPECT_EQ(values(run("Compress", {x, flags({0, 1})}, attributes({{"axis", int64_t{1}}}))), (F{1, 3, 5}));
  EXPECT_EQ(values(run("Compress", {x, flags({0, 1, 0, 0, 1})})), (F{1, 4}));
  EXPECT_NE(error_of("Compress", {x, flags({0, 1, 1})}, attributes({{"axis", int64_t{1}}})).find("condition"),
            std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
