#include "kernels/npu/pool.hpp"

#include <algorithm>
#include <vector>

#include "base/checked.hpp"
#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu/kept.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kChannelBlock = 256;

float half_reciprocal(int64_t kernel) {
  // Halves of 1 / k: numerators of 16 bits scaled by 2^-16, which is what the unit's registers hold.
  uint16_t bits = 0;
  const float reciprocal = 1.0F / static_cast<float>(kernel);
  row_kernels().narrow(1, &reciprocal, &bits);
  float value = 0.0F;
  row_kernels().widen(1, &bits, &value);
  return value;
}

template <typename T>
const T* window_pixel(const PoolShape& s, const T* input, int64_t y, int64_t x, int64_t kh, int64_t kw) {
  return input + ((y * s.stride_h + kh) * s.in_w + x * s.stride_w + kw) * s.in_stride;
}

template <typename Body>
void for_pool_windows(const PoolShape& s, const Body& body) {
  for (int64_t y = 0; y < s.out_h; ++y) {
    for (int64_t x = 0; x < s.out_w; ++x) body(y, x, (y * s.out_w + x) * s.out_stride);
  }
}

std::vector<int64_t> tap_offsets(const PoolShape& s) {
  std::vector<int64_t> offsets;
  for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
    for (int64_t kw = 0; kw < s.kernel_w; ++kw) offsets.push_back((kh * s.in_w + kw) * s.in_stride);
  }
  return offsets;
}

// Whether it is cheaper to take the largest of each column first: whole rows fill vectors, channels of a pixel may not.
bool columns_first(const PoolShape& s) {
  constexpr int64_t kVector = 64;
  const int64_t pieces = s.channels / kVector + s.channels % kVector / 16 + (s.channels % 16 + 7) / 8;
  const int64_t apart = s.kernel_h * s.kernel_w * pieces;
  return s.stride_w * s.kernel_h * ceil_div(s.in_stride, kVector) + s.kernel_w * pieces < apart;
}

}  // namespace

void max_pool_s8(const PoolShape& s, const int8_t* input, int8_t* output) {
  const std::vector<int64_t> offsets = tap_offsets(s);
  const bool columns = columns_first(s);
  const int64_t row = ((s.out_w - 1) * s.stride_w + s.kernel_w - 1) * s.in_stride + s.channels;
  std::vector<int64_t> down(static_cast<size_t>(s.kernel_h));
  for (size_t i = 0; i < down.size(); ++i) down[i] = static_cast<int64_t>(i) * s.in_w * s.in_stride;
  Kept<int8_t> largest(static_cast<size_t>(columns ? row : 0));
  for (int64_t y = 0; y < s.out_h; ++y) {
    const int8_t* from = window_pixel(s, input, y, 0, 0, 0);
    int8_t* to = output + y * s.out_w * s.out_stride;
    if (columns) {
      row_kernels().max_s8(1, row, s.kernel_h, down.data(), from, 0, largest.data(), 0);
      row_kernels().max_s8(s.out_w, s.channels, s.kernel_w, offsets.data(), largest.data(), s.stride_w * s.in_stride,
                           to, s.out_stride);
    } else {
      row_kernels().max_s8(s.out_w, s.channels, s.kernel_h * s.kernel_w, offsets.data(), from, s.stride_w * s.in_stride,
                           to, s.out_stride);
    }
  }
}

void average_pool_s8(const PoolShape& s, const int8_t* input, int8_t* output) {
  const auto kernel_h = static_cast<int>(s.kernel_h), kernel_w = static_cast<int>(s.kernel_w);
  int32_t sums[kChannelBlock];
  for_pool_windows(s, [&](int64_t y, int64_t x, int64_t at) {
    for (int64_t c = 0; c < s.channels; c += kChannelBlock) {
      const int64_t n = std::min(kChannelBlock, s.channels - c);
      std::fill_n(sums, n, 0);
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        row_kernels().sum_s8(n, window_pixel(s, input, y, x, tap / s.kernel_w, tap % s.kernel_w) + c, sums);
      }
      for (int64_t i = 0; i < n; ++i) output[at + c + i] = average_stage(sums[i], kernel_h, kernel_w);
    }
  });
}

void max_pool_f16(const PoolShape& s, const uint16_t* input, uint16_t* output) {
  const std::vector<int64_t> offsets = tap_offsets(s);
  for (int64_t y = 0; y < s.out_h; ++y) {
    row_kernels().max_f16(s.out_w, s.channels, s.kernel_h * s.kernel_w, offsets.data(),
                          window_pixel(s, input, y, 0, 0, 0), s.stride_w * s.in_stride,
                          output + y * s.out_w * s.out_stride, s.out_stride);
  }
}

void average_pool_f16(const PoolShape& s, const uint16_t* input, uint16_t* output) {
  const float recip_w = half_reciprocal(s.kernel_w), recip_h = half_reciprocal(s.kernel_h);
  float sums[kChannelBlock], wide[kChannelBlock];
  for_pool_windows(s, [&](int64_t y, int64_t x, int64_t at) {
    for (int64_t c = 0; c < s.channels; c += kChannelBlock) {
      const int64_t n = std::min(kChannelBlock, s.channels - c);
      std::fill_n(sums, n, 0.0F);
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        row_kernels().widen(n, window_pixel(s, input, y, x, tap / s.kernel_w, tap % s.kernel_w) + c, wide);
        for (int64_t i = 0; i < n; ++i) sums[i] += wide[i];
      }
      for (int64_t i = 0; i < n; ++i) sums[i] = sums[i] * recip_w * recip_h;
      row_kernels().narrow(n, sums, output + at + c);
    }
  });
}

}  // namespace openrknn::npu
