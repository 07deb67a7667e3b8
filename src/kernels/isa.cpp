#include "kernels/isa.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include "base/log.hpp"

namespace openrknn {
namespace {

Isa detect() {
  const Isa best = isa_supported(Isa::kAvx512) ? Isa::kAvx512 : isa_supported(Isa::kAvx2) ? Isa::kAvx2 : Isa::kScalar;
  const char* wanted = std::getenv("OPENRKNN_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  for (const Isa candidate : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_name(candidate) == wanted && isa_supported(candidate)) return candidate;
  }
  log_warning("OPENRKNN_ISA={} is ignored: this machine runs {}", wanted,
              best == Isa::kAvx512 ? "scalar, avx2, avx512"
              : best == Isa::kAvx2 ? "scalar, avx2"
                                   : "scalar");
  return best;
}

std::atomic<Isa>& choice() {
  static std::atomic<Isa> value{detect()};
  return value;
}

}  // namespace

Isa isa() { return choice(); }

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
#if defined(__x86_64__)
  return isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

void force_isa(Isa isa) { choice() = isa; }

}  // namespace openrknn
