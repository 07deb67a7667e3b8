// Tests that run once for each set of convolution loops: NpuLoops is their fixture, all_loops() its parameters.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/isa.hpp"
#include "kernels/npu/conv_dispatch.hpp"

namespace openrknn::npu::testing {

#if defined(__x86_64__)
// The loops of AVX-VNNI in the encoding of AVX-512 VNNI, which more machines run.
extern const ConvKernels kAvxVnniLoops;
#endif

// The loops for one instruction set, or those above in the place of its own.
struct Loops {
  std::string name;
  Isa isa;
  const ConvKernels* kernels = nullptr;
};

class NpuLoops : public ::testing::TestWithParam<Loops> {
 protected:
  void SetUp() override {
    if (!isa_supported(GetParam().isa)) GTEST_SKIP() << "this machine lacks " << GetParam().name;
    force_isa(GetParam().isa);
    force_conv_kernels(GetParam().kernels);
  }
  void TearDown() override {
    force_isa(before_);
    force_conv_kernels(nullptr);
  }
  Isa before_ = isa();
};

inline auto all_loops() {
  std::vector<Loops> loops;
  for (const Isa isa : kEveryIsa) loops.push_back({std::string(isa_name(isa)), isa});
#if defined(__x86_64__)
  loops.push_back({"avxvnni_as_avx512vnni", Isa::kAvx512Vnni, &kAvxVnniLoops});
#endif
  return ::testing::ValuesIn(loops);
}

inline std::string loops_name(const ::testing::TestParamInfo<Loops>& loops) { return loops.param.name; }

inline int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

}  // namespace openrknn::npu::testing
