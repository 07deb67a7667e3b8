#include "target/transpose.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace openrknn::target {
namespace {

std::string limit_of(const char* target, std::array<int, 4> perm, std::array<int64_t, 4> dims, DType dtype) {
  const auto refusal = transpose_refusal(**find(target), perm, dims, dtype);
  if (!refusal) return "";
  EXPECT_NE(refusal->why.find("sdk.md C.4"), std::string::npos) << refusal->why;
  return refusal->limit;
}

TEST(Transpose, EveryPermutationHasARowAndMovesASmallAlignedTensor) {
  std::array<int, 4> perm{0, 1, 2, 3};
  do {
    EXPECT_EQ(limit_of("rk3588", perm, {2, 2, 16, 16}, DType::kInt8), "") << perm[0] << perm[1] << perm[2] << perm[3];
    EXPECT_EQ(limit_of("rk3576", perm, {8, 8, 8, 8}, DType::kFloat16), "") << perm[0] << perm[1] << perm[2] << perm[3];
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, ConditionsOfNchwToNhwc) {
  // c < 8192, h * w a multiple of 8, w * c < 16 p (int8) or 8 p; p = 8192.
  const std::array<int, 4> perm{0, 2, 3, 1};
  EXPECT_EQ(limit_of("rk3588", perm, {1, 8191, 8, 15}, DType::kInt8), "");
  EXPECT_EQ(limit_of("rk3588", perm, {1, 8191, 8, 17}, DType::kInt8), "transpose.p");
  EXPECT_EQ(limit_of("rk3588", perm, {1, 8191, 8, 9}, DType::kFloat16), "transpose.p");
  EXPECT_EQ(limit_of("rk3588", perm, {1, 8192, 8, 1}, DType::kInt8), "transpose.table");
  EXPECT_EQ(limit_of("rk3588", perm, {1, 16, 3, 3}, DType::kInt8), "transpose.table");
  EXPECT_EQ(limit_of("rk3576", perm, {1, 8191, 8, 17}, DType::kInt8), "");
}

TEST(Transpose, PlanesBeyondTheSecondConstant) {
  // h * w < 2 q = 4096.
  EXPECT_EQ(limit_of("rk3588", {0, 1, 3, 2}, {1, 4, 64, 63}, DType::kInt8), "");
  EXPECT_EQ(limit_of("rk3588", {0, 1, 3, 2}, {1, 4, 64, 64}, DType::kInt8), "transpose.q");
  EXPECT_EQ(limit_of("rk3588", {0, 1, 3, 2}, {1, 4, 8, 64}, DType::kInt8), "transpose.table");
  EXPECT_EQ(limit_of("rk3588", {0, 1, 3, 2}, {1, 4, 8, 64}, DType::kFloat16), "");
}

TEST(Transpose, TheRestrictedTargets) {
  EXPECT_EQ(limit_of("rk3566", {0, 2, 3, 1}, {1, 16, 16, 16}, DType::kInt8), "transpose.restricted");
  EXPECT_EQ(limit_of("rk3566", {0, 1, 2, 3}, {1, 16, 99, 99}, DType::kInt8), "");
  EXPECT_EQ(limit_of("rk3566", {2, 1, 0, 3}, {1, 16, 8, 1}, DType::kInt8), "");
  EXPECT_EQ(limit_of("rk3566", {2, 1, 0, 3}, {1, 16, 7, 1}, DType::kInt8), "transpose.restricted");
  EXPECT_EQ(limit_of("rk3566", {3, 1, 0, 2}, {8, 16, 1, 1}, DType::kInt8), "");
}

TEST(Transpose, HugeDimensionsDoNotWrapAround) {
  EXPECT_EQ(limit_of("rk3588", {2, 0, 1, 3}, {1LL << 31, 1LL << 31, 16, 16}, DType::kInt8), "transpose.p");
  EXPECT_NE(limit_of("rk3566", {2, 1, 0, 3}, {1, 1, 1LL << 32, 1LL << 32}, DType::kInt8), "");
}

}  // namespace
}  // namespace openrknn::target
