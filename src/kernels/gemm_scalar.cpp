// The baseline: NEON on aarch64, one float at a time elsewhere (x86-64 without FMA calls the C library's fma, which is
// slow and exact).
#include "kernels/gemm_kernels.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace openrknn {
namespace {

#if defined(__aarch64__)

using Vec = float32x4_t;
constexpr int kWidth = 4;
constexpr int kRows = 8;  // 8 x 3 sums, 3 operands and a broadcast in 32 registers

static inline Vec load(const float* p) { return vld1q_f32(p); }
static inline void store(float* p, Vec v) { vst1q_f32(p, v); }
static inline Vec broadcast(float x) { return vdupq_n_f32(x); }
static inline Vec multiply_add(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }

#else

struct Vec {
  float lane[4];
};
constexpr int kWidth = 4;
constexpr int kRows = 4;

static inline Vec load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
static inline void store(float* p, const Vec& v) {
  for (int i = 0; i < 4; ++i) p[i] = v.lane[i];
}
static inline Vec broadcast(float x) { return {{x, x, x, x}}; }
static inline Vec multiply_add(const Vec& a, const Vec& b, const Vec& c) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
  return r;
}

#endif

#include "kernels/gemm_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_scalar() {
  static const GemmKernels table = {kRows, kWidth, kVectors, tile, taps, copy_line};
  return table;
}

}  // namespace openrknn
