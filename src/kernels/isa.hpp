// The instruction set that fast kernels use: chosen once at run time. Every choice gives the same bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace openrknn {

enum class Isa : uint8_t {
  kScalar,  // what the compiler's baseline has: SSE2 on x86-64, NEON on aarch64
  kAvx2,    // AVX2 and FMA
  kAvx512,  // AVX-512 F, BW, DQ and VL
};

// The best of this machine, or the one that the environment variable OPENRKNN_ISA (scalar, avx2, avx512) names; a name
// that is unknown or beyond the machine is ignored with a warning.
Isa isa();
// What the machine can run, whatever OPENRKNN_ISA says.
bool isa_supported(Isa isa);
std::string_view isa_name(Isa isa);
// AVX-512 VNNI (vpdpbusd) is there and kAvx512 is in use.
bool has_avx512_vnni();
// For tests: overrides the choice of isa(); the machine must support it.
void force_isa(Isa isa);

}  // namespace openrknn
