// The baseline: NEON on aarch64, one float at a time elsewhere (x86-64 without FMA calls the C library's fma, which is
// slow and exact).
#include "kernels/compiled_isa.hpp"
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
static inline Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
static inline Vec subtract(Vec a, Vec b) { return vsubq_f32(a, b); }
static inline Vec multiply(Vec a, Vec b) { return vmulq_f32(a, b); }
static inline Vec divide(Vec a, Vec b) { return vdivq_f32(a, b); }
static inline Vec at_least(Vec low, Vec x) { return vbslq_f32(vcltq_f32(x, low), low, x); }
static inline Vec at_most(Vec high, Vec x) { return vbslq_f32(vcgtq_f32(x, high), high, x); }

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

static inline Vec add(const Vec& a, const Vec& b) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = a.lane[i] + b.lane[i];
  return r;
}
static inline Vec subtract(const Vec& a, const Vec& b) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = a.lane[i] - b.lane[i];
  return r;
}
static inline Vec multiply(const Vec& a, const Vec& b) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = a.lane[i] * b.lane[i];
  return r;
}
static inline Vec divide(const Vec& a, const Vec& b) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = a.lane[i] / b.lane[i];
  return r;
}
static inline Vec at_least(const Vec& low, const Vec& x) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = x.lane[i] < low.lane[i] ? low.lane[i] : x.lane[i];
  return r;
}
static inline Vec at_most(const Vec& high, const Vec& x) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.lane[i] = x.lane[i] > high.lane[i] ? high.lane[i] : x.lane[i];
  return r;
}

#endif

static inline Vec scaled(const Vec& x, double factor, double term) {
  float lanes[kWidth];
  store(lanes, x);
  for (float& lane : lanes) {
    const double product = static_cast<double>(lane) * factor;
    lane = static_cast<float>(product + term);
  }
  return load(lanes);
}

static inline Vec load_first(const float* p, int count) {
  float lanes[kWidth] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
static inline void store_first(float* p, const Vec& v, int count) {
  float lanes[kWidth];
  store(lanes, v);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

struct Edge {
  int64_t low, high;  // positions inside: [0, extent) as seen from the first lane
};
static inline Edge edge_of(int64_t at, int64_t extent) { return {-at, extent - at}; }
static inline Vec load_edge(const float* row, int64_t at, Edge edge) {
  float lanes[kWidth] = {};
  for (int64_t i = 0; i < kWidth; ++i) {
    if (i >= edge.low && i < edge.high) lanes[i] = row[at + i];
  }
  return load(lanes);
}
static inline Vec evens(const Vec& a, const Vec& b) {
  float lanes[2 * kWidth];
  store(lanes, a);
  store(lanes + kWidth, b);
  for (int i = 0; i < kWidth; ++i) lanes[i] = lanes[2 * i];
  return load(lanes);
}
static inline Vec odds(const Vec& a, const Vec& b) {
  float lanes[2 * kWidth];
  store(lanes, a);
  store(lanes + kWidth, b);
  for (int i = 0; i < kWidth; ++i) lanes[i] = lanes[2 * i + 1];
  return load(lanes);
}

template <int R>
static void store_columns(const float* rows, int n, float* c, int64_t ldc) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < R; ++i) c[j * ldc + i] = rows[i * n + j];
  }
}

#include "kernels/gemm_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_scalar() {
  static const GemmKernels table = {kCompiledIsa, kRows,     kWidth,     kVectors, tile,  taps, depth_plane, pixel_tile,
                                    channel_tile, copy_line, copy_lines, clamp,    scale, sum,  max_row,     combine};
  return table;
}

}  // namespace openrknn
