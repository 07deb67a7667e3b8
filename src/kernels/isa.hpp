// The instruction set that fast kernels use: chosen once at run time. Every choice gives the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace openrknn {

enum class Isa : uint8_t {
  kScalar,      // what the compiler's baseline has: SSE2 on x86-64, NEON on aarch64
  kAvx2,        // AVX2, FMA and F16C
  kAvxVnni,     // and vpdpbusd of 256 bits
  kAvx512,      // AVX2 and AVX-512 F, BW, DQ and VL
  kAvx512Vnni,  // and vpdpbusd of 512 bits
  kAvx512Vbmi,  // and permutations of bytes
  kNeonDot,     // NEON with sdot
};
// Those of the architecture.
#if defined(__x86_64__)
inline constexpr std::array kEveryIsa{Isa::kScalar, Isa::kAvx2,       Isa::kAvxVnni,
                                      Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Vbmi};
#elif defined(__aarch64__)
inline constexpr std::array kEveryIsa{Isa::kScalar, Isa::kNeonDot};
#else
inline constexpr std::array kEveryIsa{Isa::kScalar};
#endif

// The best of this machine, or the one that the environment variable OPENRKNN_ISA names; a name that is unknown or
// beyond the machine is ignored with a warning.
Isa isa();
// What the machine can run, whatever OPENRKNN_ISA says.
bool isa_supported(Isa isa);
// scalar (aarch64: neon), avx2, avxvnni, avx512bw, avx512vnni, avx512vbmi, neondot.
std::string_view isa_name(Isa isa);
// By these names, and avx512: the best of these that the machine has. Nothing for a name that is unknown or beyond
// the machine.
std::optional<Isa> isa_by_name(std::string_view name);
// The same vectors without dot products and permutations of bytes: all that most loops tell apart.
Isa without_dot(Isa isa);
// Whether the processor computes vectors of 512 bits as fast as such of 256 (Intel's, AMD's from Zen 5 on): byte
// products then cost half as much beside everything else.
bool full_width_vectors();
// For tests: overrides the choice; the machine must support it.
void force_isa(Isa isa);

}  // namespace openrknn
