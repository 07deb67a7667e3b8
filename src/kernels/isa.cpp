#include "kernels/isa.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/log.hpp"

namespace openrknn {
namespace {

#if defined(__x86_64__)
bool has_avx_vnni() {
  // Leaf 7, subleaf 1: compilers of today do not all know this feature by name.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1U << 4)) != 0;
}

bool machine_supports(Isa isa) {
  // All processors with AVX2 have F16C, by which not every compiler asks.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvxVnni:
      return avx2 && has_avx_vnni();
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx512Vnni:
      return avx512 && __builtin_cpu_supports("avx512vnni");
    case Isa::kAvx512Vbmi:
      return avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
    case Isa::kNeonDot:
      break;
  }
  return false;
}
#elif defined(__aarch64__) && defined(__linux__)
bool machine_supports(Isa isa) {
  return isa == Isa::kScalar || (isa == Isa::kNeonDot && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0);
}
#else
bool machine_supports(Isa isa) { return isa == Isa::kScalar; }
#endif

std::string supported_names() {
  std::string names;
  for (const Isa isa : kEveryIsa) {
    if (isa_supported(isa)) names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  return names;
}

Isa detect() {
  Isa best = Isa::kScalar;  // they stand in order
  for (const Isa isa : kEveryIsa) {
    if (isa_supported(isa)) best = isa;
  }
  const char* wanted = std::getenv("OPENRKNN_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  if (const auto named = isa_by_name(wanted)) return *named;
  log_warning("OPENRKNN_ISA={} is ignored: this machine runs {}", wanted, supported_names());
  return best;
}

std::atomic<Isa>& choice() {
  static std::atomic<Isa> value{detect()};
  return value;
}

}  // namespace

Isa isa() { return choice().load(); }

bool isa_supported(Isa isa) {
  static const auto supported = [] {
    std::array<bool, static_cast<size_t>(Isa::kNeonDot) + 1> all{};
    for (const Isa each : kEveryIsa) all[static_cast<size_t>(each)] = machine_supports(each);
    return all;
  }();
  return supported[static_cast<size_t>(isa)];
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512bw";
    case Isa::kAvx512Vnni:
      return "avx512vnni";
    case Isa::kAvx512Vbmi:
      return "avx512vbmi";
    case Isa::kNeonDot:
      return "neondot";
    case Isa::kScalar:
      break;
  }
#if defined(__aarch64__)
  return "neon";
#else
  return "scalar";
#endif
}

std::optional<Isa> isa_by_name(std::string_view name) {
  if (name == "scalar") return Isa::kScalar;
  if (name == "avx512") {
    Isa best = Isa::kAvx512;
    for (const Isa isa : {Isa::kAvx512Vnni, Isa::kAvx512Vbmi}) best = isa_supported(isa) ? isa : best;
    name = isa_name(best);
  }
  for (const Isa isa : kEveryIsa) {
    if (isa_name(isa) == name && isa_supported(isa)) return isa;
  }
  return std::nullopt;
}

Isa without_dot(Isa isa) {
  switch (isa) {
    case Isa::kAvxVnni:
      return Isa::kAvx2;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Vbmi:
      return Isa::kAvx512;
    case Isa::kNeonDot:
      return Isa::kScalar;
    case Isa::kScalar:
    case Isa::kAvx2:
    case Isa::kAvx512:
      break;
  }
  return isa;
}

bool full_width_vectors() {
#if defined(__x86_64__)
  static const bool full = [] {
    if (__builtin_cpu_is("intel")) return true;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__builtin_cpu_is("amd") || __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
    const unsigned base = (eax >> 8) & 0xF, family = base == 0xF ? base + ((eax >> 20) & 0xFF) : base;
    constexpr unsigned kZen5 = 0x1A;
    return family >= kZen5;
  }();
  return full;
#else
  return false;
#endif
}

void force_isa(Isa isa) { choice() = isa; }

}  // namespace openrknn
