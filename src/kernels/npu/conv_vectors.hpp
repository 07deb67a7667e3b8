// The few vector operations that conv_integer_loops.hpp needs, for the instruction set this file is compiled for.
// OPENRKNN_HALF_WIDTH: vectors of 256 bits where there are such of 512.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace openrknn::npu {
namespace {

#if defined(__AVX512BW__) && !defined(OPENRKNN_HALF_WIDTH)
struct Ints {
  static constexpr int kLanes = 16;
  __m512i v;
  static Ints zero() { return {_mm512_setzero_si512()}; }
  static Ints load(const void* p) { return {_mm512_loadu_si512(p)}; }
  static Ints broadcast(const void* p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return {_mm512_set1_epi32(x)};
  }
  static Ints load_s8(const int8_t* p) {
    return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  void store(int32_t* p) const { _mm512_storeu_si512(p, v); }
  void store(int32_t* p, int64_t n) const {  // the first n < kLanes
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1U << n) - 1), v);
  }
  Ints operator+(Ints o) const { return {_mm512_add_epi32(v, o.v)}; }
  Ints operator-(Ints o) const { return {_mm512_sub_epi32(v, o.v)}; }
  Ints operator*(Ints o) const { return {_mm512_mullo_epi32(v, o.v)}; }  // of values that fit 16 bits
  Ints times(Ints o) const { return *this * o; }                         // of any, modulo 2^32
  // this + products of a group of w (this panel) and x (broadcast).
#if defined(__AVX512VNNI__)
  static constexpr bool kBytes = true;
  static constexpr int kWeightOffset = 128;
  Ints dot(Ints w, Ints x) const { return {_mm512_dpbusd_epi32(v, w.v, x.v)}; }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm512_dpwssd_epi32(v, w.v, x.v)}; }
#else
  static constexpr bool kBytes = false;
  static constexpr int kWeightOffset = 0;
  Ints dot(Ints w, Ints x) const { return dot_pairs(w, x); }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm512_add_epi32(v, _mm512_madd_epi16(w.v, x.v))}; }
#endif
  template <int kBits>
  Ints left() const {
    return {_mm512_slli_epi32(v, kBits)};
  }
  template <int kBits>
  Ints right() const {
    return {_mm512_srai_epi32(v, kBits)};
  }
  static constexpr int kSumBytes = 32;
  static Ints sum_s8(const int8_t* p) {  // any lanes whose total is the sum of kSumBytes values
    const __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_madd_epi16(wide, _mm512_set1_epi16(1))};
  }
};
#elif defined(__AVX2__)
struct Ints {
  static constexpr int kLanes = 8;
  __m256i v;
  static Ints zero() { return {_mm256_setzero_si256()}; }
  static Ints load(const void* p) { return {_mm256_loadu_si256(static_cast<const __m256i*>(p))}; }
  static Ints broadcast(const void* p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return {_mm256_set1_epi32(x)};
  }
  static Ints load_s8(const int8_t* p) {
    return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
  }
  void store(int32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  void store(int32_t* p, int64_t n) const {
    int32_t lanes[kLanes];
    store(lanes);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
  Ints operator+(Ints o) const { return {_mm256_add_epi32(v, o.v)}; }
  Ints operator-(Ints o) const { return {_mm256_sub_epi32(v, o.v)}; }
  Ints operator*(Ints o) const { return {_mm256_mullo_epi32(v, o.v)}; }
  Ints times(Ints o) const { return *this * o; }
#if defined(__AVXVNNI__)
  static constexpr bool kBytes = true;
  static constexpr int kWeightOffset = 128;
  Ints dot(Ints w, Ints x) const { return {_mm256_dpbusd_avx_epi32(v, w.v, x.v)}; }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm256_dpwssd_avx_epi32(v, w.v, x.v)}; }
#elif defined(__AVX512VNNI__)  // the same instructions in the other encoding
  static constexpr bool kBytes = true;
  static constexpr int kWeightOffset = 128;
  Ints dot(Ints w, Ints x) const { return {_mm256_dpbusd_epi32(v, w.v, x.v)}; }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm256_dpwssd_epi32(v, w.v, x.v)}; }
#else
  static constexpr bool kBytes = false;
  static constexpr int kWeightOffset = 0;
  Ints dot(Ints w, Ints x) const { return dot_pairs(w, x); }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm256_add_epi32(v, _mm256_madd_epi16(w.v, x.v))}; }
#endif
  template <int kBits>
  Ints left() const {
    return {_mm256_slli_epi32(v, kBits)};
  }
  template <int kBits>
  Ints right() const {
    return {_mm256_srai_epi32(v, kBits)};
  }
  static constexpr int kSumBytes = 16;
  static Ints sum_s8(const int8_t* p) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm256_madd_epi16(wide, _mm256_set1_epi16(1))};
  }
};
#elif defined(__SSE2__)
struct Ints {
  static constexpr int kLanes = 4;
  static constexpr bool kBytes = false;
  static constexpr int kWeightOffset = 0;
  __m128i v;
  static Ints zero() { return {_mm_setzero_si128()}; }
  static Ints load(const void* p) { return {_mm_loadu_si128(static_cast<const __m128i*>(p))}; }
  static Ints broadcast(const void* p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return {_mm_set1_epi32(x)};
  }
  static Ints load_s8(const int8_t* p) { return {_mm_setr_epi32(p[0], p[1], p[2], p[3])}; }
  void store(int32_t* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
  void store(int32_t* p, int64_t n) const {
    int32_t lanes[kLanes];
    store(lanes);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
  Ints operator+(Ints o) const { return {_mm_add_epi32(v, o.v)}; }
  Ints operator-(Ints o) const { return {_mm_sub_epi32(v, o.v)}; }
  Ints operator*(Ints o) const {  // of values that fit 16 bits: the high halves are sign only, so pair with zero
    const __m128i low = _mm_set1_epi32(0xFFFF);
    return {_mm_madd_epi16(_mm_and_si128(v, low), _mm_and_si128(o.v, low))};
  }
  Ints times(Ints o) const {
    const __m128i even = _mm_mul_epu32(v, o.v), odd = _mm_mul_epu32(_mm_srli_epi64(v, 32), _mm_srli_epi64(o.v, 32));
    return {_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08))};
  }
  Ints dot(Ints w, Ints x) const { return dot_pairs(w, x); }
  Ints dot_pairs(Ints w, Ints x) const { return {_mm_add_epi32(v, _mm_madd_epi16(w.v, x.v))}; }
  template <int kBits>
  Ints left() const {
    return {_mm_slli_epi32(v, kBits)};
  }
  template <int kBits>
  Ints right() const {
    return {_mm_srai_epi32(v, kBits)};
  }
  static constexpr int kSumBytes = 8;
  static Ints sum_s8(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm_madd_epi16(_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8), _mm_set1_epi16(1))};
  }
};
#elif defined(__ARM_NEON)
struct Ints {
  static constexpr int kLanes = 4;
  static constexpr int kWeightOffset = 0;
  int32x4_t v;
  static Ints zero() { return {vdupq_n_s32(0)}; }
  static Ints load(const void* p) { return {vreinterpretq_s32_u8(vld1q_u8(static_cast<const uint8_t*>(p)))}; }
  static Ints broadcast(const void* p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return {vdupq_n_s32(x)};
  }
  static Ints load_s8(const int8_t* p) {
    const int32_t x[4] = {p[0], p[1], p[2], p[3]};
    return {vld1q_s32(x)};
  }
  void store(int32_t* p) const { vst1q_s32(p, v); }
  void store(int32_t* p, int64_t n) const {
    int32_t lanes[kLanes];
    store(lanes);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
  Ints operator+(Ints o) const { return {vaddq_s32(v, o.v)}; }
  Ints operator-(Ints o) const { return {vsubq_s32(v, o.v)}; }
  Ints operator*(Ints o) const { return {vmulq_s32(v, o.v)}; }
  Ints times(Ints o) const { return *this * o; }
  static int32x4_t pairs(int16x8_t a, int16x8_t b) {
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
  }
#if defined(__ARM_FEATURE_DOTPROD)
  static constexpr bool kBytes = true;
  Ints dot(Ints w, Ints x) const { return {vdotq_s32(v, vreinterpretq_s8_s32(w.v), vreinterpretq_s8_s32(x.v))}; }
#else
  static constexpr bool kBytes = false;
  Ints dot(Ints w, Ints x) const { return dot_pairs(w, x); }
#endif
  Ints dot_pairs(Ints w, Ints x) const {
    return {vaddq_s32(v, pairs(vreinterpretq_s16_s32(w.v), vreinterpretq_s16_s32(x.v)))};
  }
  template <int kBits>
  Ints left() const {
    return {vshlq_n_s32(v, kBits)};
  }
  template <int kBits>
  Ints right() const {
    return {vshrq_n_s32(v, kBits)};
  }
  static constexpr int kSumBytes = 8;
  static Ints sum_s8(const int8_t* p) { return {pairs(vmovl_s8(vld1_s8(p)), vdupq_n_s16(1))}; }
};
#else
#error "conv_vectors.hpp: add the vector operations of this processor"
#endif

// Vectors of int16, modulo 2^16.
#if defined(__AVX512BW__) && !defined(OPENRKNN_HALF_WIDTH)
struct Shorts {
  static constexpr int kLanes = 32;
  __m512i v;
  static Shorts load_s8(const int8_t* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Shorts load_s8(const int8_t* p, int64_t n) {  // zeros behind the first n < kLanes
    return {_mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8((1U << n) - 1, p))};
  }
  void store(int16_t* p) const { _mm512_storeu_si512(p, v); }
  Shorts operator+(Shorts o) const { return {_mm512_add_epi16(v, o.v)}; }
  Shorts operator-(Shorts o) const { return {_mm512_sub_epi16(v, o.v)}; }
  template <int kBits>
  Shorts left() const {
    return {_mm512_slli_epi16(v, kBits)};
  }
};
#elif defined(__AVX2__)
struct Shorts {
  static constexpr int kLanes = 16;
  __m256i v;
  static Shorts load_s8(const int8_t* p) {
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  static Shorts load_s8(const int8_t* p, int64_t n) {
    int8_t bytes[kLanes] = {};
    memcpy(bytes, p, static_cast<size_t>(n));
    return load_s8(bytes);
  }
  void store(int16_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  Shorts operator+(Shorts o) const { return {_mm256_add_epi16(v, o.v)}; }
  Shorts operator-(Shorts o) const { return {_mm256_sub_epi16(v, o.v)}; }
  template <int kBits>
  Shorts left() const {
    return {_mm256_slli_epi16(v, kBits)};
  }
};
#elif defined(__SSE2__)
struct Shorts {
  static constexpr int kLanes = 8;
  __m128i v;
  static Shorts load_s8(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8)};
  }
  static Shorts load_s8(const int8_t* p, int64_t n) {
    int8_t bytes[kLanes] = {};
    memcpy(bytes, p, static_cast<size_t>(n));
    return load_s8(bytes);
  }
  void store(int16_t* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
  Shorts operator+(Shorts o) const { return {_mm_add_epi16(v, o.v)}; }
  Shorts operator-(Shorts o) const { return {_mm_sub_epi16(v, o.v)}; }
  template <int kBits>
  Shorts left() const {
    return {_mm_slli_epi16(v, kBits)};
  }
};
#elif defined(__ARM_NEON)
struct Shorts {
  static constexpr int kLanes = 8;
  int16x8_t v;
  static Shorts load_s8(const int8_t* p) { return {vmovl_s8(vld1_s8(p))}; }
  static Shorts load_s8(const int8_t* p, int64_t n) {
    int8_t bytes[kLanes] = {};
    memcpy(bytes, p, static_cast<size_t>(n));
    return load_s8(bytes);
  }
  void store(int16_t* p) const { vst1q_s16(p, v); }
  Shorts operator+(Shorts o) const { return {vaddq_s16(v, o.v)}; }
  Shorts operator-(Shorts o) const { return {vsubq_s16(v, o.v)}; }
  template <int kBits>
  Shorts left() const {
    return {vshlq_n_s16(v, kBits)};
  }
};
#endif

}  // namespace
}  // namespace openrknn::npu
