// Tiles of 16 bytes square in registers. Interleaving the first with the second half of the registers, element by
// element, rotates the index of an element (row bits, then column bits) by one bit; as often as a row has bits, that
// exchanges rows and columns. The last tiles overlap their neighbours and write the same elements again.
#include "kernels/transpose.hpp"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace openrknn {
namespace {

constexpr int64_t kBlock = 64;  // rows and columns of source and destination that stay in the first cache

struct Matrix {
  const std::byte* from;
  int64_t from_step, rows, columns;
  std::byte* to;
  int64_t to_step;
};

template <typename T>
void transpose_elements(const Matrix& m) {
  for (int64_t r0 = 0; r0 < m.rows; r0 += kBlock) {
    const int64_t r1 = std::min(m.rows, r0 + kBlock);
    for (int64_t c = 0; c < m.columns; ++c) {
      const std::byte* from = m.from + c * static_cast<int64_t>(sizeof(T));
      std::byte* to = m.to + c * m.to_step;
      for (int64_t r = r0; r < r1; ++r)
        std::memcpy(to + r * static_cast<int64_t>(sizeof(T)), from + r * m.from_step, sizeof(T));
    }
  }
}

#if defined(__SSE2__)
template <int kBytes>
__m128i load_bytes(const std::byte* p) {
  if constexpr (kBytes == 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  if constexpr (kBytes == 8) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  int word = 0;
  std::memcpy(&word, p, kBytes);
  return _mm_cvtsi32_si128(word);
}

template <int kBytes>
void store_bytes(__m128i v, std::byte* p) {
  if constexpr (kBytes == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
  } else if constexpr (kBytes == 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), v);
  } else {
    const int word = _mm_cvtsi128_si32(v);
    std::memcpy(p, &word, kBytes);
  }
}

template <size_t kSize>
void interleave(__m128i a, __m128i b, __m128i* to) {
  if constexpr (kSize == 1) {
    to[0] = _mm_unpacklo_epi8(a, b);
    to[1] = _mm_unpackhi_epi8(a, b);
  } else if constexpr (kSize == 2) {
    to[0] = _mm_unpacklo_epi16(a, b);
    to[1] = _mm_unpackhi_epi16(a, b);
  } else {
    to[0] = _mm_unpacklo_epi32(a, b);
    to[1] = _mm_unpackhi_epi32(a, b);
  }
}

template <typename T, int kRows, int kColumns>
void transpose_tile(const Matrix& m, int64_t row, int64_t column) {
  constexpr int kSide = 16 / sizeof(T);
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const std::byte* from = m.from + row * m.from_step + column * kSize;
  __m128i v[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i)
    v[i] = i < kRows ? load_bytes<kColumns * kSize>(from + i * m.from_step) : _mm_setzero_si128();
#pragma GCC unroll 4
  for (int bit = 1; bit < kSide; bit *= 2) {
    __m128i next[kSide];
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) interleave<sizeof(T)>(v[i], v[i + kSide / 2], next + 2 * i);
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) v[i] = next[i];
  }
  std::byte* to = m.to + column * m.to_step + row * kSize;
#pragma GCC unroll 16
  for (int i = 0; i < kColumns; ++i) store_bytes<kRows * kSize>(v[i], to + i * m.to_step);
}

template <typename T, int kRows, int kColumns>
void transpose_tiles(const Matrix& m) {
  for (int64_t r0 = 0; r0 < m.rows; r0 += kBlock) {
    const int64_t r1 = std::min(m.rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < m.columns; c0 += kBlock) {
      const int64_t c1 = std::min(m.columns, c0 + kBlock);
      for (int64_t r = r0; r < r1; r += kRows) {
        for (int64_t c = c0; c < c1; c += kColumns)
          transpose_tile<T, kRows, kColumns>(m, std::min(r, m.rows - kRows), std::min(c, m.columns - kColumns));
      }
    }
  }
}

template <typename T, int kRows>
void transpose_columns(const Matrix& m) {
  constexpr int kSide = 16 / sizeof(T);
  if (m.columns >= kSide) return transpose_tiles<T, kRows, kSide>(m);
  if (m.columns >= kSide / 2) return transpose_tiles<T, kRows, kSide / 2>(m);
  if (m.columns >= kSide / 4) return transpose_tiles<T, kRows, kSide / 4>(m);
  if constexpr (kSide == 16) {
    if (m.columns >= 2) return transpose_tiles<T, kRows, 2>(m);
  }
  transpose_elements<T>(m);
}

// Two pixels of 4 bytes in each half, the last byte of each idle, as 6 bytes.
__m128i close_gaps(__m128i x) {
  const __m128i first = _mm_set1_epi64x(0xFFFFFF), second = _mm_set1_epi64x(0xFFFFFF000000);
  return _mm_or_si128(_mm_and_si128(x, first), _mm_and_si128(_mm_srli_epi64(x, 8), second));
}

// Three lines to pixels of 3 bytes that lie together, as pictures have them. Stores of 8 bytes write 2 of the next
// pixels, which follow; only the last of all must not.
void interleave_three_lines(const Matrix& m) {
  constexpr int64_t kPixels = 16, kStore = 6;
  for (int64_t c = 0; c < m.columns; c += kPixels) {
    const int64_t first = std::min(c, m.columns - kPixels);
    const __m128i zero = _mm_setzero_si128();
    const __m128i r = load_bytes<16>(m.from + first), g = load_bytes<16>(m.from + m.from_step + first),
                  b = load_bytes<16>(m.from + 2 * m.from_step + first);
    const __m128i rg[2] = {_mm_unpacklo_epi8(r, g), _mm_unpackhi_epi8(r, g)};
    const __m128i b0[2] = {_mm_unpacklo_epi8(b, zero), _mm_unpackhi_epi8(b, zero)};
    const __m128i pixels[4] = {_mm_unpacklo_epi16(rg[0], b0[0]), _mm_unpackhi_epi16(rg[0], b0[0]),
                               _mm_unpacklo_epi16(rg[1], b0[1]), _mm_unpackhi_epi16(rg[1], b0[1])};
    std::byte* to = m.to + first * 3;
    for (int k = 0; k < 4; ++k, to += 2 * kStore) {
      const __m128i packed = close_gaps(pixels[k]);
      store_bytes<8>(packed, to);
      const __m128i high = _mm_unpackhi_epi64(packed, packed);
      if (k < 3 || first + kPixels < m.columns) {
        store_bytes<8>(high, to + kStore);
      } else {
        std::byte last[8];
        store_bytes<8>(high, last);
        std::memcpy(to + kStore, last, kStore);
      }
    }
  }
}

template <typename T>
void transpose_typed(const Matrix& m) {
  constexpr int kSide = 16 / sizeof(T);
  if (sizeof(T) == 1 && m.rows == 3 && m.to_step == 3 && m.columns >= kSide) return interleave_three_lines(m);
  if (m.rows >= kSide) return transpose_columns<T, kSide>(m);
  if (m.rows >= kSide / 2) return transpose_columns<T, kSide / 2>(m);
  if (m.rows >= kSide / 4) return transpose_columns<T, kSide / 4>(m);
  if constexpr (kSide == 16) {
    if (m.rows >= 2) return transpose_columns<T, 2>(m);
  }
  transpose_elements<T>(m);
}
#else
template <typename T>
void transpose_typed(const Matrix& m) {
  transpose_elements<T>(m);
}
#endif

}  // namespace

void transpose_matrix(const void* from, int64_t from_step, int64_t rows, int64_t columns, void* to, int64_t to_step,
                      size_t element_size) {
  const Matrix m{static_cast<const std::byte*>(from), from_step, rows, columns, static_cast<std::byte*>(to), to_step};
  switch (element_size) {
    case 1:
      return transpose_typed<uint8_t>(m);
    case 2:
      return transpose_typed<uint16_t>(m);
    case 4:
      return transpose_typed<uint32_t>(m);
    case 8:
      return transpose_elements<uint64_t>(m);
    default:
      return;
  }
}

}  // namespace openrknn
