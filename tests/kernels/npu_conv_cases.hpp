// Random convolutions and operands that the tests of npu/conv.hpp share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu::testing {

using namespace openrknn::testing;

// Any, with about so many products at most.
inline ConvShape random_shape(Rng& rng, bool depthwise, int64_t most_products) {
  ConvShape s{};
  const bool three = one_in(rng, 3);
  s.kernel_h = three ? 3 : pick(rng, 1, 4), s.kernel_w = three ? 3 : pick(rng, 1, 4);
  s.stride_h = pick(rng, 1, 3), s.stride_w = pick(rng, 1, 3);
  s.dilation_h = pick(rng, 1, 2), s.dilation_w = pick(rng, 1, 2);
  s.in_channels = std::max<int64_t>(1, openrknn::testing::any_extent(rng, 100));
  s.out_channels = depthwise ? 1 : std::max<int64_t>(1, openrknn::testing::any_extent(rng, 70));
  s.out_h = pick(rng, 1, 4), s.out_w = pick(rng, 1, 20);
  for (int64_t* extent : {&s.out_channels, &s.out_h, &s.out_w, &s.in_channels}) {
    const int64_t products = s.kernel_h * s.kernel_w * s.in_channels * s.out_channels * s.out_h * s.out_w;
    if (products > most_products)
      *extent = std::max<int64_t>(1, std::min(*extent, *extent * most_products / products + pick(rng, 0, 1)));
  }
  s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1 + pick(rng, 0, 2);
  s.in_w = (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1 + pick(rng, 0, 2);
  s.channels = s.in_channels + (one_in(rng, 2) ? pick(rng, 0, 17) : 0);
  if (one_in(rng, 5)) s.channels = s.in_channels = pick(rng, 1, 4);  // first layers: pixels lie together
  if (depthwise) s.out_channels = s.in_channels;
  return s;
}

template <typename T>
T at(const ConvShape& s, const std::vector<T>& x, int64_t oh, int64_t ow, int64_t kh, int64_t kw, int64_t c) {
  const int64_t y = oh * s.stride_h + kh * s.dilation_h, column = ow * s.stride_w + kw * s.dilation_w;
  return x[static_cast<size_t>((y * s.in_w + column) * s.channels + c)];
}

inline std::vector<int8_t> random_bytes(Rng& rng, int64_t n) {
  std::vector<int8_t> v(static_cast<size_t>(n));
  openrknn::testing::fill(rng, v);
  return v;
}

// Sets of halves that make the group sum easy (network-like), or hard (all exponents, cancellations, ties).
inline uint16_t random_half(Rng& rng, int kind) {
  switch (kind) {
    case 0:
      return openrknn::testing::any_finite_half(rng);
    case 1:
      return static_cast<uint16_t>((rng() & 0x83FF) | ((10 + rng() % 6) << 10));  // about 2^-5 .. 2^1
    case 2:
      return static_cast<uint16_t>((rng() & 0x8000) |
                                   (rng() % 3 == 0 ? 0x7BFF : rng() % 0x401));  // extremes, subnormals
    case 3:
      return rng() % 2 ? uint16_t{0} : static_cast<uint16_t>((rng() & 0x83FF) | (15 << 10));
    case 4: {  // ties of fp32 sums, decided by products that doubles cannot hold beside them
      constexpr uint16_t kValues[] = {0x7800, 0xF800, 0x7400, 0x4800, 0xC800, 0x4400, 0x0001, 0x8001, 0};
      return kValues[rng() % 9];
    }
    default:
      return rng() % 100 == 0 ? static_cast<uint16_t>(0x7C00 | (rng() & 0x8001))
                              : openrknn::testing::any_finite_half(rng);  // inf, NaN
  }
}

}  // namespace openrknn::npu::testing
