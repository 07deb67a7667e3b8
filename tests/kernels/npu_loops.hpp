// Tests that run for each set of convolution loops.
#pragma once

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

// Those of this machine.
inline std::vector<Loops> supported_loops() {
  std::vector<Loops> loops;
  for (const Isa isa : kEveryIsa) {
    if (isa_supported(isa)) loops.push_back({std::string(isa_name(isa)), isa});
  }
#if defined(__x86_64__)
  if (isa_supported(Isa::kAvx512Vnni)) loops.push_back({"avxvnni_as_avx512vnni", Isa::kAvx512Vnni, &kAvxVnniLoops});
#endif
  return loops;
}

inline std::vector<std::string> names_of(const std::vector<Loops>& loops) {
  std::vector<std::string> names;
  for (const Loops& each : loops) names.push_back(each.name);
  return names;
}

// In force for as long as this lives.
class UseLoops {
 public:
  explicit UseLoops(const Loops& loops) {
    force_isa(loops.isa);
    force_conv_kernels(loops.kernels);
  }
  UseLoops(const UseLoops&) = delete;
  UseLoops& operator=(const UseLoops&) = delete;
  ~UseLoops() {
    force_isa(before_);
    force_conv_kernels(nullptr);
  }

 private:
  Isa before_ = isa();
};

}  // namespace openrknn::npu::testing
