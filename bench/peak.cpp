#include "peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/isa.hpp"

namespace openrknn::bench {
namespace {

constexpr int kSums = 24;  // independent ones: enough to hide the latency
constexpr int kRounds = 20000;

// The best of several measurements of `products` multiply-adds by `loop`.
template <typename Loop>
double best_rate(double products, const Loop& loop) {
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, products / seconds.count());
  }
  return best;
}

#if defined(__x86_64__)
// A loop over kSums sums in registers; the empty instruction uses each, so that nothing is left out.
#define OPENRKNN_PEAK_LOOP(Vector, any_register, zero, step)                 \
  Vector sums[kSums];                                                        \
  _Pragma("GCC unroll 24") for (int k = 0; k < kSums; ++k) sums[k] = (zero); \
  for (int i = 0; i < kRounds; ++i) {                                        \
    _Pragma("GCC unroll 24") for (int k = 0; k < kSums; ++k) {               \
      sums[k] = (step);                                                      \
      asm volatile("" : any_register(sums[k]));                              \
    }                                                                        \
  }

__attribute__((target("avx512f,avx512bw,avx512vnni"))) void bytes_vnni() {
  const __m512i w = _mm512_set1_epi8(3);
  OPENRKNN_PEAK_LOOP(__m512i, "+v", _mm512_setzero_si512(), _mm512_dpbusd_epi32(sums[k], w, w))
}
__attribute__((target("avx512f,avx512bw"))) void pairs_avx512() {
  const __m512i w = _mm512_set1_epi16(3);
  OPENRKNN_PEAK_LOOP(__m512i, "+v", _mm512_setzero_si512(), _mm512_add_epi32(sums[k], _mm512_madd_epi16(w, w)))
}
__attribute__((target("avx2"))) void pairs_avx2() {
  const __m256i w = _mm256_set1_epi16(3);
  OPENRKNN_PEAK_LOOP(__m256i, "+x", _mm256_setzero_si256(), _mm256_add_epi32(sums[k], _mm256_madd_epi16(w, w)))
}
__attribute__((target("avx512f"))) void floats_avx512() {
  const __m512 w = _mm512_set1_ps(0.5F);
  OPENRKNN_PEAK_LOOP(__m512, "+v", w, _mm512_fmadd_ps(sums[k], w, w))
}
__attribute__((target("avx2,fma"))) void floats_avx2() {
  const __m256 w = _mm256_set1_ps(0.5F);
  OPENRKNN_PEAK_LOOP(__m256, "+x", w, _mm256_fmadd_ps(sums[k], w, w))
}
__attribute__((target("avx512f"))) void doubles_avx512() {
  const __m512d w = _mm512_set1_pd(0.5);
  OPENRKNN_PEAK_LOOP(__m512d, "+v", w, _mm512_fmadd_pd(sums[k], w, w))
}
__attribute__((target("avx2,fma"))) void doubles_avx2() {
  const __m256d w = _mm256_set1_pd(0.5);
  OPENRKNN_PEAK_LOOP(__m256d, "+x", w, _mm256_fmadd_pd(sums[k], w, w))
}

Peak measure() {
  constexpr double kSteps = double{kSums} * kRounds;
  const bool bytes = isa() == Isa::kAvx512Vnni || isa() == Isa::kAvx512Vbmi;
  if (without_dot(isa()) == Isa::kAvx512) {
    return {bytes ? best_rate(64 * kSteps, bytes_vnni) : best_rate(32 * kSteps, pairs_avx512),
            best_rate(16 * kSteps, floats_avx512), best_rate(8 * kSteps, doubles_avx512)};
  }
  if (isa() != Isa::kAvx2) return {};
  return {best_rate(16 * kSteps, pairs_avx2), best_rate(8 * kSteps, floats_avx2), best_rate(4 * kSteps, doubles_avx2)};
}
#else
Peak measure() { return {}; }
#endif

}  // namespace

const Peak& peak() {
  static const Peak measured = measure();
  return measured;
}

}  // namespace openrknn::bench
