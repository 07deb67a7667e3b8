// Tests that run once for each set of convolution loops: NpuLoops is their fixture, all_loops() its parameters.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"

namespace openrknn::npu::testing {

// The loops for one instruction set.
struct Loops {
  const char* name;
  Isa isa;
  bool vnni;
};

class NpuLoops : public ::testing::TestWithParam<Loops> {
 protected:
  void SetUp() override {
    if (!isa_supported(GetParam().isa)) GTEST_SKIP() << "this machine lacks " << GetParam().name;
    force_isa(GetParam().isa);
    allow_vnni(GetParam().vnni);
    if (GetParam().vnni && !has_avx512_vnni()) GTEST_SKIP() << "this machine lacks AVX-512 VNNI";
  }
  void TearDown() override {
    force_isa(before_);
    allow_vnni(true);
  }
  Isa before_ = isa();
};

inline auto all_loops() {
  return ::testing::Values(Loops{"scalar", Isa::kScalar, false}, Loops{"avx2", Isa::kAvx2, false},
                           Loops{"avx512", Isa::kAvx512, false}, Loops{"vnni", Isa::kAvx512, true});
}

inline std::string loops_name(const ::testing::TestParamInfo<Loops>& loops) { return loops.param.name; }

inline int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

}  // namespace openrknn::npu::testing
