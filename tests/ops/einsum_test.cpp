#include <cmath>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

Tensor einsum(const char* equation, const std::vector<Tensor>& operands) {
  return run("Einsum", operands, attributes({{"equation", equation}}));
}

std::string refused(const char* equation, const std::vector<Tensor>& operands) {
  return error_of("Einsum", operands, attributes({{"equation", equation}}));
}

TEST(Einsum, OneOperand) {
  const Tensor x = iota(Shape{2, 3});
  EXPECT_EQ(values(einsum("ij->ji", {x})), (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(einsum("ij->i", {x})), (F{3, 12}));
  EXPECT_EQ(values(einsum(" i j -> ", {x})), (F{15}));
  EXPECT_EQ(values(einsum("ii->i", {iota(Shape{3, 3})})), (F{0, 4, 8}));
  EXPECT_EQ(values(einsum("ii", {iota(Shape{3, 3})})), (F{12}));
  EXPECT_EQ(values(einsum("...ii->...i", {iota(Shape{2, 2, 2})})), (F{0, 3, 4, 7}));
  EXPECT_EQ(values(einsum("ba", {x})), (F{0, 3, 1, 4, 2, 5}));  // the result is in alphabetical order
}

TEST(Einsum, TwoOperands) {
  const Tensor a = iota(Shape{2, 3});
  const Tensor b = iota(Shape{3, 2});
  EXPECT_EQ(values(einsum("ij,jk", {a, b})), values(run("MatMul", {a, b})));
  EXPECT_EQ(values(einsum("ij,ij->j", {a, a})), (F{9, 17, 29}));
  EXPECT_EQ(values(einsum("i,j->ji", {floats(Shape{2}, {1, 2}), floats(Shape{2}, {3, 4})})), (F{3, 6, 4, 8}));
  EXPECT_EQ(values(einsum("ij,->ij", {a, floats(Shape{}, {2})})), (F{0, 2, 4, 6, 8, 10}));
  const Tensor p = iota(Shape{4, 2, 3});
  const Tensor q = iota(Shape{1, 3, 2});
  EXPECT_EQ(values(einsum("...ij,...jk->...ik", {p, q})), values(run("MatMul", {p, q})));
  EXPECT_EQ(dims(einsum("bij,bkj->bik", {p, iota(Shape{4, 5, 3})})), (I{4, 2, 5}));
  // An extent of 1 is repeated; an index that only one operand has is summed there.
  EXPECT_EQ(values(einsum("ij,ik->i", {a, floats(Shape{1, 2}, {1, 2})})), (F{9, 36}));
}

// Against plain loops: three operands with every kind of index.
TEST(Einsum, ThreeOperandsAndIntegers) {
  const Tensor a = iota<int64_t>(Shape{2, 3, 4});
  const Tensor b = iota<int64_t>(Shape{3, 2, 5});
  const Tensor c = iota<int64_t>(Shape{5, 4});
  const Tensor y = einsum("abc,bad,dc->da", {a, b, c});
  ASSERT_EQ(dims(y), (I{5, 2}));
  for (int64_t d = 0; d < 5; ++d) {
    for (int64_t i = 0; i < 2; ++i) {
      int64_t sum = 0;
      for (int64_t j = 0; j < 3; ++j) {
        for (int64_t k = 0; k < 4; ++k) sum += (i * 12 + j * 4 + k) * (j * 10 + i * 5 + d) * (d * 4 + k);
      }
      EXPECT_EQ(y.as<int64_t>()[static_cast<size_t>(d * 2 + i)], sum);
    }
  }
  const Tensor doubles = Tensor::from(Shape{2}, std::vector<double>{1e-9, 1.0});
  EXPECT_EQ(values<double>(einsum("i,i", {doubles, doubles})), (std::vector<double>{1e-18 + 1.0}));
}

TEST(Einsum, Errors) {
  const Tensor x = iota(Shape{2, 3});
  EXPECT_NE(refused("ij,jk->ik", {x}).find("2 terms"), std::string::npos);
  EXPECT_NE(refused("ijk->i", {x}).find("does not fit"), std::string::npos);
  EXPECT_NE(refused("ij->k", {x}).find("in no operand"), std::string::npos);
  EXPECT_NE(refused("ij->ii", {x}).find("twice"), std::string::npos);
  EXPECT_NE(refused("ii->i", {x}).find("extents 2 and 3"), std::string::npos);
  EXPECT_NE(refused("i?->i", {x}).find("no list of indices"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
