// The body of rows_scalar.cpp, rows_avx2.cpp and rows_avx512.cpp: plain loops that the compiler vectorises. Everything
// is in an unnamed namespace and no library header with inline functions is included, so that no function compiled for
// a newer processor can be linked into code for an older one.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/npu/half_scalar.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

// Adding and taking away 1.5 * 2^52 rounds |x| < 2^51 to an integer, ties to even.
constexpr double kRoundMagic = 6755399441055744.0;
inline double round_even(double x) { return (x + kRoundMagic) - kRoundMagic; }
inline double clamp(double x, double low, double high) {
  const double y = x < low ? low : x;
  return y > high ? high : y;
}
// Limits of int32 are integers inside these bounds, so that clamping before rounding changes nothing.
inline double round_to_s32(double x) { return clamp(round_even(clamp(x, -0x1p40, 0x1p40)), -0x1p31, 0x1p31 - 1); }
inline int32_t round_s32(double x) { return static_cast<int32_t>(round_to_s32(x)); }

void channel_row(int64_t n, const int32_t* acc, const int32_t* bias, const int32_t* b, const int32_t* sums,
                 int64_t sums_step, const int32_t* c, double scale, double scale_negative, int32_t* v) {
  if (b == nullptr || sums == nullptr) {
    for (int64_t i = 0; i < n; ++i) {
      const double p = (static_cast<double>(acc[i]) + static_cast<double>(bias[i])) * static_cast<double>(c[i]);
      v[i] = round_s32(p * (p >= 0 ? scale : scale_negative));
    }
  } else if (sums_step == 0) {
    const auto sum = static_cast<double>(*sums);
    for (int64_t i = 0; i < n; ++i) {
      const double t = static_cast<double>(acc[i]) + static_cast<double>(bias[i]) + static_cast<double>(b[i]) * sum;
      const double p = t * static_cast<double>(c[i]);
      v[i] = round_s32(p * (p >= 0 ? scale : scale_negative));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const double t = static_cast<double>(acc[i]) + static_cast<double>(bias[i]) +
                       static_cast<double>(b[i]) * static_cast<double>(sums[i]);
      const double p = t * static_cast<double>(c[i]);
      v[i] = round_s32(p * (p >= 0 ? scale : scale_negative));
    }
  }
}

void operand_row(int64_t n, const int8_t* x, double offset, double factor, bool add, int32_t* v) {
  if (add) {
    for (int64_t i = 0; i < n; ++i) {
      const double e = round_to_s32((static_cast<double>(x[i]) + offset) * factor);
      const double sum = static_cast<double>(v[i]) + e;
      v[i] = static_cast<int32_t>(clamp(sum, -0x1p31, 0x1p31 - 1));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) v[i] = round_s32((static_cast<double>(x[i]) + offset) * factor);
  }
}

void table_index_row(int64_t n, const int32_t* v, double factor, double limit, int32_t* x) {
  for (int64_t i = 0; i < n; ++i) {
    const double at = clamp(static_cast<double>(v[i]) * factor, -limit, limit);
    x[i] = static_cast<int32_t>(round_even(at) + limit);
  }
}

// The clamped product lies below 2^22, so that fp32 rounds it as doubles would. A NaN (infinity times a zero scale)
// becomes index 0. The last of the 512 pieces of a half ends at fraction 32.
constexpr float kFloatRoundMagic = 12582912.0F;  // 1.5 * 2^23
inline float half_table_value(const int16_t* table, float x, float index_scale, float out_scale, int form) {
  constexpr float kLimit = 16384.0F;
  if (x != x) return x;
  float at = x * index_scale;
  at = at != at ? 0.0F : at < -kLimit ? -kLimit : at > kLimit ? kLimit : at;
  const auto index = static_cast<int32_t>((at + kFloatRoundMagic) - kFloatRoundMagic);
  const int32_t d = index < 0 ? index + 16384 : index;
  const int32_t i = d >> 5 < 511 ? d >> 5 : 511;
  const int16_t* piece = table + (index < 0 ? 0 : 513) + i;
  const int32_t y = piece[0] + (((piece[1] - piece[0]) * (d - 32 * i)) >> 5);
  const float value = static_cast<float>(y) * out_scale;
  if (form == 0) return value;
  return form == 1 ? x * value : (x > 0 ? x : 0.0F) + value;
}

void half_table_row(int64_t n, const int16_t* table, float index_scale, float out_scale, int form, float* v) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512 x = _mm512_loadu_ps(v + i);
    const __m512 scaled = _mm512_mul_ps(x, _mm512_set1_ps(index_scale));
    const __mmask16 number = _mm512_cmp_ps_mask(scaled, scaled, _CMP_ORD_Q);
    const __m512 limited = _mm512_max_ps(_mm512_min_ps(_mm512_maskz_mov_ps(number, scaled), _mm512_set1_ps(16384.0F)),
                                         _mm512_set1_ps(-16384.0F));
    const __m512i index = _mm512_cvtps_epi32(limited);
    const __mmask16 below = _mm512_cmplt_epi32_mask(index, _mm512_setzero_si512());
    const __m512i d = _mm512_mask_add_epi32(index, below, index, _mm512_set1_epi32(16384));
    const __m512i piece = _mm512_min_epi32(_mm512_srli_epi32(d, 5), _mm512_set1_epi32(511));
    const __m512i fraction = _mm512_sub_epi32(d, _mm512_slli_epi32(piece, 5));
    const __m512i at =
        _mm512_mask_add_epi32(_mm512_add_epi32(piece, _mm512_set1_epi32(513)), below, piece, _mm512_setzero_si512());
    const __m512i pair = _mm512_i32gather_epi32(at, table, 2);
    const __m512i left = _mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16), right = _mm512_srai_epi32(pair, 16);
    const __m512i step = _mm512_srai_epi32(_mm512_mullo_epi32(_mm512_sub_epi32(right, left), fraction), 5);
    __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(left, step)), _mm512_set1_ps(out_scale));
    if (form == 1) y = _mm512_mul_ps(x, y);
    if (form == 2) y = _mm512_add_ps(_mm512_max_ps(x, _mm512_setzero_ps()), y);
    _mm512_mask_storeu_ps(v + i, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), y);
  }
#elif defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(v + i);
    const __m256 scaled = _mm256_mul_ps(x, _mm256_set1_ps(index_scale));
    const __m256 number = _mm256_cmp_ps(scaled, scaled, _CMP_ORD_Q);
    const __m256 limited = _mm256_max_ps(_mm256_min_ps(_mm256_and_ps(number, scaled), _mm256_set1_ps(16384.0F)),
                                         _mm256_set1_ps(-16384.0F));
    const __m256i index = _mm256_cvtps_epi32(limited);
    const __m256i below = _mm256_srai_epi32(index, 31);
    const __m256i d = _mm256_add_epi32(index, _mm256_and_si256(below, _mm256_set1_epi32(16384)));
    const __m256i piece = _mm256_min_epi32(_mm256_srli_epi32(d, 5), _mm256_set1_epi32(511));
    const __m256i fraction = _mm256_sub_epi32(d, _mm256_slli_epi32(piece, 5));
    const __m256i at = _mm256_add_epi32(piece, _mm256_andnot_si256(below, _mm256_set1_epi32(513)));
    const __m256i pair = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), at, 2);
    const __m256i left = _mm256_srai_epi32(_mm256_slli_epi32(pair, 16), 16), right = _mm256_srai_epi32(pair, 16);
    const __m256i step = _mm256_srai_epi32(_mm256_mullo_epi32(_mm256_sub_epi32(right, left), fraction), 5);
    __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(left, step)), _mm256_set1_ps(out_scale));
    if (form == 1) y = _mm256_mul_ps(x, y);
    if (form == 2) y = _mm256_add_ps(_mm256_max_ps(x, _mm256_setzero_ps()), y);
    _mm256_storeu_ps(v + i, _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, x, _CMP_ORD_Q)));
  }
#endif
  for (; i < n; ++i) v[i] = half_table_value(table, v[i], index_scale, out_scale, form);
}

void prelu_row(int64_t n, const int16_t* slopes, int64_t slope_step, double scale, int32_t* v) {
  for (int64_t i = 0; i < n; ++i) {
    const double slope = static_cast<double>(slopes[i * slope_step]);
    const int32_t negative = round_s32(static_cast<double>(v[i]) * slope * scale);
    v[i] = v[i] < 0 ? negative : v[i];
  }
}

void clamp_row(int64_t n, int32_t low, int32_t high, int32_t* v) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t x = v[i] < low ? low : v[i];
    v[i] = x > high ? high : x;
  }
}

void output_row(int64_t n, const int32_t* v, double factor, double inside, double outside, int8_t* y) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = clamp(static_cast<double>(v[i]) * factor, -0x1p20, 0x1p20) + inside;
    y[i] = static_cast<int8_t>(static_cast<int32_t>(clamp(round_even(x) + outside, -128, 127)));
  }
}

void quantize_row(int64_t n, const float* x, float scale, int32_t zero, int8_t* y) {
  constexpr float kFloatMagic = 12582912.0F;  // 1.5 * 2^23: rounds |z| < 2^22 to an integer, ties to even
  const auto low = static_cast<float>(-128 - zero), high = static_cast<float>(127 - zero);
  for (int64_t i = 0; i < n; ++i) {
    const float r = x[i] / scale;
    float z = r == r ? r : 0.0F;
    z = z < low ? low : z;
    z = z > high ? high : z;
    y[i] = static_cast<int8_t>(static_cast<int32_t>((z + kFloatMagic) - kFloatMagic) + zero);
  }
}

void dequantize_row(int64_t n, const int8_t* x, float scale, int32_t zero, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<int32_t>(x[i]) - zero) * scale;
}

void widen_row(int64_t n, const uint16_t* x, float* v) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(v + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(v + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < n; ++i) v[i] = half_to_float_scalar(x[i]);
}

// Returns 1 when a finite value becomes infinite.
inline int64_t narrow_one(float v, uint16_t* y) {
  *y = float_to_half_scalar(v);
  const float magnitude = v < 0 ? -v : v;
  return magnitude >= 65520.0F && magnitude <= 3.402823466e38F ? 1 : 0;
}

int64_t narrow_row(int64_t n, const float* v, uint16_t* y) {
  int64_t i = 0;
  int64_t overflows = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(v + i);
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
    const __m256 large = _mm256_cmp_ps(magnitude, _mm256_set1_ps(65520.0F), _CMP_NLT_UQ);  // NaN too
    const __m128i halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), halves);
    if (_mm256_movemask_ps(large) == 0) continue;
    for (int64_t k = i; k < i + 8; ++k) overflows += narrow_one(v[k], y + k);
  }
#endif
  for (; i < n; ++i) overflows += narrow_one(v[i], y + i);
  return overflows;
}

inline float half_output_value(const HalfOutput& o, float v, int64_t c) {
  const float sum = o.bias != nullptr ? v + o.bias[c] : v;
  const float x = sum < o.low ? o.low : sum;
  return x > o.high ? o.high : x;
}

void half_output_rows(const HalfOutput& o) {
  const float* v = o.v;
  uint16_t* y = o.y;
  for (int64_t p = 0; p < o.pixels; ++p, v += o.channels, y += o.y_stride) {
    int64_t c = 0;
#if defined(__F16C__)
    // Maximum and minimum give their second operand where it is no number.
    const __m256 low = _mm256_set1_ps(o.low), high = _mm256_set1_ps(o.high);
    for (; c + 8 <= o.channels; c += 8) {
      __m256 x = _mm256_loadu_ps(v + c);
      if (o.bias != nullptr) x = _mm256_add_ps(x, _mm256_loadu_ps(o.bias + c));
      x = _mm256_min_ps(high, _mm256_max_ps(low, x));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + c),
                       _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
      if (_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)) == 0) continue;
      for (int64_t k = c; k < c + 8; ++k) narrow_one(half_output_value(o, v[k], k), y + k);  // one NaN for all
    }
#endif
    for (; c < o.channels; ++c) narrow_one(half_output_value(o, v[c], c), y + c);
  }
}

template <int kBytes>
inline void max_piece(int64_t taps, const int64_t* offsets, const int8_t* x, int8_t* y) {
  typedef int8_t Bytes __attribute__((vector_size(kBytes)));
  Bytes best, next;
  memcpy(&best, x + offsets[0], sizeof best);
  for (int64_t tap = 1; tap < taps; ++tap) {
    memcpy(&next, x + offsets[tap], sizeof next);
    best = next > best ? next : best;
  }
  memcpy(y, &best, sizeof best);
}

void max_row(int64_t pixels, int64_t n, int64_t taps, const int64_t* offsets, const int8_t* x, int64_t x_step,
             int8_t* y, int64_t y_step) {
  for (int64_t p = 0; p < pixels; ++p, x += x_step, y += y_step) {
    int64_t c = 0;
    for (; c + 64 <= n; c += 64) max_piece<64>(taps, offsets, x + c, y + c);
    for (; c + 16 <= n; c += 16) max_piece<16>(taps, offsets, x + c, y + c);
    for (; c + 8 <= n; c += 8) max_piece<8>(taps, offsets, x + c, y + c);
    for (; c < n; ++c) {
      int8_t best = x[offsets[0] + c];
      for (int64_t tap = 1; tap < taps; ++tap) best = x[offsets[tap] + c] > best ? x[offsets[tap] + c] : best;
      y[c] = best;
    }
  }
}

void sum_row(int64_t n, const int8_t* x, int32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

#if defined(__AVX512BW__)
// 16 values, those of `valid`: u of RequantizeBlock.
template <bool kResidual, bool kAll, bool kWide>
inline __m512i requantize_vector(const RequantizeBlock& b, __mmask16 valid, int64_t c, const int32_t* acc,
                                 const int8_t* residual) {
  const auto load = [&](const int32_t* p) { return kAll ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(valid, p); };
  const __m512i t = _mm512_add_epi32(load(acc + c), load(b.bias + c));
  const __m512 factor = kAll ? _mm512_loadu_ps(b.factor + c) : _mm512_maskz_loadu_ps(valid, b.factor + c);
  __m512 z = _mm512_fmadd_ps(_mm512_cvtepi32_ps(t), factor, _mm512_set1_ps(b.constant));
  if constexpr (kResidual) {
    const auto* from = reinterpret_cast<const __m128i*>(residual + c);
    const __m512i x = _mm512_cvtepi8_epi32(kAll ? _mm_loadu_si128(from) : _mm_maskz_loadu_epi8(valid, from));
    const __m512 e = _mm512_cvtepi32_ps(_mm512_add_epi32(x, _mm512_set1_epi32(b.residual_offset)));
    z = _mm512_fmadd_ps(_mm512_maskz_mov_ps(kAll ? 0xFFFF : valid, e), _mm512_set1_ps(b.residual_factor), z);
  }
  if constexpr (kWide) z = _mm512_min_ps(_mm512_max_ps(z, _mm512_set1_ps(-kFarthest)), _mm512_set1_ps(kFarthest));
  return _mm512_cvtps_epi32(z);
}

template <bool kResidual>
void table_rows(const RequantizeBlock& b, uint32_t limit, uint32_t* index) {
  for (int64_t p = 0; p < b.pixels; ++p, index += b.channels) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    for (int64_t c = 0; c < b.channels; c += 16) {
      const __mmask16 valid = b.channels - c >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << (b.channels - c)) - 1);
      const __m512i u = requantize_vector<kResidual, false, false>(b, valid, c, acc, residual);
      const __m512i x =
          _mm512_min_epi32(_mm512_max_epi32(u, _mm512_setzero_si512()), _mm512_set1_epi32(static_cast<int32_t>(limit)));
      if (valid == 0xFFFF) {
        _mm512_storeu_si512(index + c, x);
      } else {
        _mm512_mask_storeu_epi32(index + c, valid, x);
      }
    }
  }
}

inline bool any_doubt(__m512i least, int32_t margin) {
  const __m512i fraction = _mm512_and_si512(least, _mm512_set1_epi32((1 << kRequantizeBits) - 1));
  return _mm512_cmple_epi32_mask(fraction, _mm512_set1_epi32(2 * margin)) != 0;
}

// A pixel with values that fp32 does not decide.
template <bool kResidual, bool kWide>
[[gnu::noinline]] void requantize_doubtful(const RequantizeBlock& b, int64_t p) {
  const int32_t* acc = b.acc + p * b.channels;
  const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
  alignas(16) int8_t results[64];
  for (int64_t c = 0; c < b.channels; c += 16) {
    const __mmask16 valid = b.channels - c >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << (b.channels - c)) - 1);
    const __m512i u = requantize_vector<kResidual, false, kWide>(b, valid, c, acc, residual);
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_srai_epi32(u, kRequantizeBits));
    const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(b.low)), _mm_set1_epi8(b.high));
    _mm_store_si128(reinterpret_cast<__m128i*>(results + c), clamped);
    const __m512i fraction = _mm512_and_si512(u, _mm512_set1_epi32((1 << kRequantizeBits) - 1));
    uint32_t doubts = _mm512_mask_cmple_epi32_mask(valid, fraction, _mm512_set1_epi32(2 * b.margin));
    for (; doubts != 0; doubts &= doubts - 1) {
      const int64_t at = c + __builtin_ctz(doubts);
      results[at] = b.exact(b.context, p * b.channels + at);
    }
  }
  memcpy(b.y + p * b.y_stride, results, static_cast<size_t>(b.channels));
}

// Pixels of 16 * kVectors channels; the last vectors may be partly valid. Fractions are the low words of each u; the
// least words of both halves are kept, and the high ones ignored.
template <bool kResidual, bool kAll, bool kWide, int kVectors>
void requantize_pixels(const RequantizeBlock b) {  // by value: stores of bytes could change it otherwise
  const __mmask64 valid = b.channels >= 64 ? ~__mmask64{0} : (__mmask64{1} << b.channels) - 1;
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int8_t* y = b.y + p * b.y_stride;
    __m512i u[kVectors];
    __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      u[k] = requantize_vector<kResidual, kAll, kWide>(b, static_cast<__mmask16>(valid >> (16 * k)), 16 * k, acc,
                                                       residual);
      least = _mm512_min_epu16(least, u[k]);
      u[k] = _mm512_srai_epi32(u[k], kRequantizeBits);
    }
    if (__builtin_expect(any_doubt(least, b.margin), 0)) {
      requantize_doubtful<kResidual, kWide>(b, p);
      continue;
    }
    if constexpr (kVectors == 4) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __m512i bytes =
          _mm512_packs_epi16(_mm512_packs_epi32(u[0], u[1]), _mm512_packs_epi32(u[kVectors - 2], u[kVectors - 1]));
      const __m512i clamped =
          _mm512_min_epi8(_mm512_max_epi8(bytes, _mm512_set1_epi8(b.low)), _mm512_set1_epi8(b.high));
      const __m512i ordered = _mm512_permutexvar_epi32(order, clamped);
      if constexpr (kAll) {
        _mm512_storeu_si512(y, ordered);
      } else {
        _mm512_mask_storeu_epi8(y, valid, ordered);
      }
    } else {
#pragma GCC unroll 2
      for (int k = 0; k < kVectors; ++k) {
        const __m128i bytes = _mm512_cvtsepi32_epi8(u[k]);
        const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(b.low)), _mm_set1_epi8(b.high));
        if constexpr (kAll) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(y + 16 * k), clamped);
        } else {
          _mm_mask_storeu_epi8(y + 16 * k, static_cast<__mmask16>(valid >> (16 * k)), clamped);
        }
      }
    }
  }
}

template <bool kResidual, bool kWide>
void requantize_rows(const RequantizeBlock& b) {
  if (b.channels == 64) return requantize_pixels<kResidual, true, kWide, 4>(b);
  if (b.channels == 32) return requantize_pixels<kResidual, true, kWide, 2>(b);
  if (b.channels == 16) return requantize_pixels<kResidual, true, kWide, 1>(b);
  if (b.channels > 32) return requantize_pixels<kResidual, false, kWide, 4>(b);
  if (b.channels > 16) return requantize_pixels<kResidual, false, kWide, 2>(b);
  requantize_pixels<kResidual, false, kWide, 1>(b);
}
#else
template <bool kResidual, bool kWide>
inline int32_t requantize_value(const RequantizeBlock& b, const int32_t* acc, const int8_t* residual, int64_t c) {
  float z = static_cast<float>(acc[c] + b.bias[c]) * b.factor[c] + b.constant;
  if constexpr (kResidual) z += static_cast<float>(residual[c] + b.residual_offset) * b.residual_factor;
  if constexpr (kWide) z = z < -kFarthest ? -kFarthest : z > kFarthest ? kFarthest : z;
  return static_cast<int32_t>(z);
}

template <bool kResidual, bool kWide>
void requantize_rows(const RequantizeBlock& b) {
  constexpr int32_t kFraction = (1 << kRequantizeBits) - 1;
  int8_t results[64];
  for (int64_t p = 0; p < b.pixels; ++p) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    int32_t least = kFraction;
    for (int64_t c = 0; c < b.channels; ++c) {
      const int32_t u = requantize_value<kResidual, kWide>(b, acc, residual, c);
      const int32_t fraction = u & kFraction;
      least = fraction < least ? fraction : least;
      int32_t r = u >> kRequantizeBits;
      r = r < b.low ? b.low : r;
      results[c] = static_cast<int8_t>(r > b.high ? b.high : r);
    }
    for (int64_t c = 0; least <= 2 * b.margin && c < b.channels; ++c) {
      const int32_t fraction = requantize_value<kResidual, kWide>(b, acc, residual, c) & kFraction;
      if (fraction <= 2 * b.margin) results[c] = b.exact(b.context, p * b.channels + c);
    }
    memcpy(b.y + p * b.y_stride, results, static_cast<size_t>(b.channels));
  }
}

template <bool kResidual>
void table_rows(const RequantizeBlock& b, uint32_t limit, uint32_t* index) {
  for (int64_t p = 0; p < b.pixels; ++p, index += b.channels) {
    const int32_t* acc = b.acc + p * b.channels;
    const int8_t* residual = kResidual ? b.residual + p * b.residual_stride : nullptr;
    for (int64_t c = 0; c < b.channels; ++c) {
      float z = static_cast<float>(acc[c] + b.bias[c]) * b.factor[c] + b.constant;
      if constexpr (kResidual) z += static_cast<float>(residual[c] + b.residual_offset) * b.residual_factor;
      const auto u = static_cast<int32_t>(z);
      const auto top = static_cast<int32_t>(limit);
      index[c] = static_cast<uint32_t>(u < 0 ? 0 : u > top ? top : u);
    }
  }
}
#endif

void requantize_table(const RequantizeBlock& b, uint32_t limit, uint32_t* index) {
  if (b.residual == nullptr) {
    table_rows<false>(b, limit, index);
  } else {
    table_rows<true>(b, limit, index);
  }
}

void requantize_block(const RequantizeBlock& b) {
  if (b.residual == nullptr) {
    b.wide ? requantize_rows<false, true>(b) : requantize_rows<false, false>(b);
  } else {
    b.wide ? requantize_rows<true, true>(b) : requantize_rows<true, false>(b);
  }
}

constexpr RowKernels kLoops = {requantize_block, requantize_table, channel_row,    operand_row,
                               table_index_row,  half_table_row,   prelu_row,      clamp_row,
                               output_row,       quantize_row,     dequantize_row, widen_row,
                               narrow_row,       half_output_rows, max_row,        sum_row};

}  // namespace
}  // namespace openrknn::npu
