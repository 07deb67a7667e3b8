// The body of rows_scalar.cpp, rows_avx2.cpp and rows_avx512.cpp: plain loops that the compiler vectorises. Everything
// is in an unnamed namespace and no library header with inline functions is included, so that no function compiled for
// a newer processor can be linked into code for an older one.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/compiled_isa.hpp"
#include "kernels/npu/half_scalar.hpp"
#include "kernels/npu/look_up_loops.hpp"
#include "kernels/npu/requantize_loops.hpp"
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
    // Maximum and minimum give their second operand where it is no number.
#if defined(__AVX512F__)
    const __m512 floor = _mm512_set1_ps(o.low), ceiling = _mm512_set1_ps(o.high);
    for (; c + 16 <= o.channels; c += 16) {
      __m512 x = _mm512_loadu_ps(v + c);
      if (o.bias != nullptr) x = _mm512_add_ps(x, _mm512_loadu_ps(o.bias + c));
      x = _mm512_min_ps(ceiling, _mm512_max_ps(floor, x));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + c),
                          _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
      if (_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) == 0) continue;
      for (int64_t k = c; k < c + 16; ++k) narrow_one(half_output_value(o, v[k], k), y + k);  // one NaN for all
    }
#endif
#if defined(__F16C__)
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

// Halves compare as integers once the magnitudes of negative ones are turned around; zeros are made equal, and NaN is
// below everything.
template <int kHalves>
void max_any_halves(int64_t taps, const int64_t* offsets, const uint16_t* x, uint16_t* y) {
  typedef int16_t Halves __attribute__((vector_size(kHalves * 2)));
  constexpr int16_t kMagnitude = 0x7FFF, kInfinity = 0x7C00;
  constexpr auto kMinusInfinity = static_cast<int16_t>(0xFC00);
  Halves best = Halves{} + kMinusInfinity, order = Halves{} + static_cast<int16_t>(kMinusInfinity ^ kMagnitude);
  for (int64_t tap = 0; tap < taps; ++tap) {
    Halves h;
    memcpy(&h, x + offsets[tap], sizeof h);
    const Halves magnitude = h & kMagnitude;
    const Halves nan = magnitude > kInfinity;
    Halves key = (h ^ ((h >> 15) & kMagnitude)) & (magnitude != 0);
    key = (key & ~nan) | (nan & static_cast<int16_t>(INT16_MIN));
    const Halves wins = key > order;
    order = (key & wins) | (order & ~wins);
    best = (h & wins) | (best & ~wins);
  }
  memcpy(y, &best, sizeof best);
}

template <int kHalves, typename Halves>
inline bool is_zero(const Halves& v) {
  constexpr int kWords = kHalves * 2 / 8;
  uint64_t words[kWords], all = 0;
  memcpy(words, &v, sizeof words);
  for (int i = 0; i < kWords; ++i) all |= words[i];
  return all == 0;
}

// The same where no positive NaN is among them, and no negative number where the largest is zero: integers decide.
template <int kHalves>
inline void max_half_piece(int64_t taps, const int64_t* offsets, const uint16_t* x, uint16_t* y) {
  typedef int16_t Halves __attribute__((vector_size(kHalves * 2)));
  constexpr int16_t kMagnitude = 0x7FFF, kInfinity = 0x7C00;
  constexpr auto kMinusInfinity = static_cast<int16_t>(0xFC00);
  Halves order = Halves{} + static_cast<int16_t>(kMinusInfinity ^ kMagnitude), any = Halves{};
  for (int64_t tap = 0; tap < taps; ++tap) {
    Halves h;
    memcpy(&h, x + offsets[tap], sizeof h);
    const Halves key = h ^ ((h >> 15) & kMagnitude);
    order = key > order ? key : order;
    any |= h;
  }
  const Halves doubtful = (order > kInfinity) | ((order == 0) & (any >> 15));
  const Halves best = order ^ ((order >> 15) & kMagnitude);
  memcpy(y, &best, sizeof best);
  if (is_zero<kHalves>(doubtful)) return;
  max_any_halves<kHalves>(taps, offsets, x, y);
}

void max_half_row(int64_t pixels, int64_t n, int64_t taps, const int64_t* offsets, const uint16_t* x, int64_t x_step,
                  uint16_t* y, int64_t y_step) {
  for (int64_t p = 0; p < pixels; ++p, x += x_step, y += y_step) {
    int64_t c = 0;
    for (; c + 32 <= n; c += 32) max_half_piece<32>(taps, offsets, x + c, y + c);
    for (; c + 16 <= n; c += 16) max_half_piece<16>(taps, offsets, x + c, y + c);
    for (; c + 8 <= n; c += 8) max_half_piece<8>(taps, offsets, x + c, y + c);
    for (; c < n; ++c) max_any_halves<1>(taps, offsets, x + c, y + c);
  }
}

void sum_row(int64_t n, const int8_t* x, int32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

void widen_s8_row(int64_t n, const int8_t* x, int32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}

void multiply_row(int64_t n, const int8_t* a, int32_t a_offset, const int8_t* b, int32_t b_offset, int32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = (a[i] + a_offset) * (b[i] + b_offset);
}

void look_up_s8_row(int64_t n, const int8_t* x, const int8_t* table, int8_t* y) {
#if defined(__AVX512VBMI__)
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64), c = _mm512_loadu_si512(table + 128),
                d = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 valid = n - i >= 64 ? ~uint64_t{0} : (uint64_t{1} << (n - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi8(valid, x + i);
    const __m512i low = _mm512_permutex2var_epi8(a, at, b), high = _mm512_permutex2var_epi8(c, at, d);
    _mm512_mask_storeu_epi8(y + i, valid, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
#else
  for (int64_t i = 0; i < n; ++i) y[i] = table[static_cast<uint8_t>(x[i])];
#endif
}

constexpr RowKernels kLoops = {
    kCompiledIsa,   requantize_block, requantize_look_up, channel_row, operand_row,  table_index_row,
    half_table_row, prelu_row,        clamp_row,          output_row,  quantize_row, dequantize_row,
    widen_row,      narrow_row,       half_output_rows,   max_row,     max_half_row, sum_row,
    widen_s8_row,   multiply_row,     look_up_s8_row};

}  // namespace
}  // namespace openrknn::npu
