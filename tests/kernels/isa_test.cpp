#include "kernels/isa.hpp"

#include <gtest/gtest.h>

namespace openrknn {
namespace {

TEST(IsaNames, StandForInstructionSetsOfTheMachine) {
  for (const Isa isa : kEveryIsa) {
    const auto named = isa_by_name(isa_name(isa));
    EXPECT_EQ(named.has_value(), isa_supported(isa)) << isa_name(isa);
    EXPECT_EQ(named.value_or(isa), isa);
  }
  EXPECT_EQ(isa_by_name("scalar"), Isa::kScalar);
  for (const char* name : {"", "avx", "AVX2", "vnni"}) EXPECT_FALSE(isa_by_name(name)) << name;
}

TEST(IsaNames, Avx512MeansTheBestThatThereIs) {
  if (!isa_supported(Isa::kAvx512)) GTEST_SKIP() << "this machine lacks AVX-512";
  const Isa vnni = isa_supported(Isa::kAvx512Vnni) ? Isa::kAvx512Vnni : Isa::kAvx512;
  EXPECT_EQ(isa_by_name("avx512"), isa_supported(Isa::kAvx512Vbmi) ? Isa::kAvx512Vbmi : vnni);
  EXPECT_EQ(isa_by_name("avx512bw"), Isa::kAvx512);
}

TEST(IsaNames, EveryDotProductStandsOnVectorsThatTheMachineHas) {
  for (const Isa isa : kEveryIsa) {
    EXPECT_EQ(without_dot(without_dot(isa)), without_dot(isa));
    EXPECT_GE(isa_supported(without_dot(isa)), isa_supported(isa)) << isa_name(isa);
  }
}

}  // namespace
}  // namespace openrknn
