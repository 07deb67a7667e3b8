#include "kernels/isa.hpp"

#include <gtest/gtest.h>

namespace openrknn {
namespace {

class IsaNames : public ::testing::Test {
 protected:
  void TearDown() override { force_isa(before_); }
  Isa before_ = isa();
};

TEST_F(IsaNames, NamesStandForInstructionSets) {
  EXPECT_EQ(isa_by_name("scalar"), (IsaChoice{Isa::kScalar, false}));
  EXPECT_FALSE(isa_by_name(""));
  EXPECT_FALSE(isa_by_name("avx"));
  EXPECT_FALSE(isa_by_name("AVX2"));
  EXPECT_EQ(isa_by_name("avx2").has_value(), isa_supported(Isa::kAvx2));
  EXPECT_EQ(isa_by_name("avx512").has_value(), isa_supported(Isa::kAvx512));
  EXPECT_EQ(isa_by_name("avx512bw").has_value(), isa_supported(Isa::kAvx512));
}

TEST_F(IsaNames, OnlyBwUsesNoVnni) {
  if (!isa_supported(Isa::kAvx512)) GTEST_SKIP() << "this machine lacks AVX-512";
  force_isa(*isa_by_name("avx512bw"));
  EXPECT_EQ(isa(), Isa::kAvx512);
  EXPECT_FALSE(has_avx512_vnni());
  force_isa(*isa_by_name("avx512"));
  EXPECT_EQ(has_avx512_vnni(), isa_by_name("avx512vnni").has_value());
  if (!isa_by_name("avx512vnni")) GTEST_SKIP() << "this machine lacks AVX-512 VNNI";
  force_isa(*isa_by_name("avx512vnni"));
  EXPECT_EQ(isa(), Isa::kAvx512);
  EXPECT_TRUE(has_avx512_vnni());
}

}  // namespace
}  // namespace openrknn
