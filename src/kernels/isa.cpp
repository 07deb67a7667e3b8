#include "kernels/isa.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include "base/log.hpp"

namespace openrknn {
namespace {

bool machine_has_vnni() {
#if defined(__x86_64__)
  return isa_supported(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

IsaChoice with_vnni(Isa isa) { return {isa, isa == Isa::kAvx512 && machine_has_vnni()}; }

std::string supported_names() {
  std::string names = "scalar";
  for (const char* name : {"avx2", "avx512", "avx512bw", "avx512vnni"}) {
    if (isa_by_name(name)) names += std::string(", ") + name;
  }
  return names;
}

IsaChoice detect() {
  const Isa best = isa_supported(Isa::kAvx512) ? Isa::kAvx512 : isa_supported(Isa::kAvx2) ? Isa::kAvx2 : Isa::kScalar;
  const char* wanted = std::getenv("OPENRKNN_ISA");
  if (wanted == nullptr || *wanted == '\0') return with_vnni(best);
  if (const auto named = isa_by_name(wanted)) return *named;
  log_warning("OPENRKNN_ISA={} is ignored: this machine runs {}", wanted, supported_names());
  return with_vnni(best);
}

std::atomic<IsaChoice>& choice() {
  static std::atomic<IsaChoice> value{detect()};
  return value;
}

}  // namespace

std::optional<IsaChoice> isa_by_name(std::string_view name) {
  if (name == "avx512bw" && isa_supported(Isa::kAvx512)) return IsaChoice{Isa::kAvx512, false};
  if (name == "avx512vnni" && machine_has_vnni()) return IsaChoice{Isa::kAvx512, true};
  for (const Isa candidate : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_name(candidate) == name && isa_supported(candidate)) return with_vnni(candidate);
  }
  return std::nullopt;
}

Isa isa() { return choice().load().isa; }

bool isa_supported(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return isa_supported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
#else
  return isa == Isa::kScalar;
#endif
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kScalar:
      break;
  }
  return "scalar";
}

bool has_avx512_vnni() {
  const IsaChoice now = choice();
  return now.isa == Isa::kAvx512 && now.vnni;
}

void force_isa(Isa isa) { choice() = with_vnni(isa); }
void force_isa(IsaChoice wanted) { choice() = wanted; }

}  // namespace openrknn
