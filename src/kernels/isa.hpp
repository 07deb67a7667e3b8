// The instruction set that fast kernels use: chosen once at run time. Every choice gives the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace openrknn {

enum class Isa : uint8_t {
  kScalar,  // what the compiler's baseline has: SSE2 on x86-64, NEON on aarch64
  kAvx2,    // AVX2 and FMA
  kAvx512,  // AVX-512 F, BW, DQ and VL
};

// Aligned to its size, so that an atomic of it needs no library.
struct alignas(8) IsaChoice {
  Isa isa = Isa::kScalar;
  bool vnni = false;  // loops with vpdpbusd (AVX-512 VNNI) may be used
  bool operator==(const IsaChoice&) const = default;
};

// What OPENRKNN_ISA asks for by a name: scalar, avx2, avx512 (with VNNI where the machine has it), avx512bw (never
// VNNI) or avx512vnni (VNNI must be there). Nothing for a name that is unknown or beyond the machine.
std::optional<IsaChoice> isa_by_name(std::string_view name);
// The best of this machine, or the one that the environment variable OPENRKNN_ISA names; a name that is unknown or
// beyond the machine is ignored with a warning.
Isa isa();
// What the machine can run, whatever OPENRKNN_ISA says.
bool isa_supported(Isa isa);
std::string_view isa_name(Isa isa);
// AVX-512 VNNI (vpdpbusd) is there, kAvx512 is in use, and the choice allows VNNI.
bool has_avx512_vnni();
// For tests: overrides the choice; the machine must support it. An instruction set alone comes with VNNI where there
// is.
void force_isa(Isa isa);
void force_isa(IsaChoice choice);

}  // namespace openrknn
