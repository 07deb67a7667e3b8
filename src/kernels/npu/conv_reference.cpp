#include "kernels/npu/conv_reference.hpp"

#include <algorithm>
#include <bit>

#include "base/half.hpp"

namespace openrknn::npu::reference {
namespace {

// Offset of the pixel that tap (kh, kw) of output pixel p reads.
int64_t pixel_offset(const ConvShape& s, int64_t p, int64_t kh, int64_t kw) {
  const int64_t y = p / s.out_w * s.stride_h + kh * s.dilation_h;
  const int64_t x = p % s.out_w * s.stride_w + kw * s.dilation_w;
  return (y * s.in_w + x) * s.channels;
}

// Which NaN an operation makes differs between processors; the result does not.
float canonical(float x) { return x != x ? std::bit_cast<float>(0x7FC00000U) : x; }

}  // namespace

void conv_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums) {
  const int64_t taps = s.kernel_h * s.kernel_w;
  for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
    int32_t window = 0;
    std::fill_n(accumulators + p * s.out_channels, s.out_channels, 0);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int8_t* x = input + pixel_offset(s, p, tap / s.kernel_w, tap % s.kernel_w);
      for (int64_t ic = 0; ic < s.in_channels; ++ic) window += x[ic];
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        const int8_t* w = weights + (oc * taps + tap) * s.in_channels;
        int32_t sum = 0;
        for (int64_t ic = 0; ic < s.in_channels; ++ic) sum += x[ic] * w[ic];
        accumulators[p * s.out_channels + oc] += sum;
      }
    }
    if (window_sums != nullptr) window_sums[p] = window;
  }
}

void depthwise_s8(const ConvShape& s, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums) {
  const int64_t channels = s.in_channels;
  for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = 0, window = 0;
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        const int8_t x = input[pixel_offset(s, p, tap / s.kernel_w, tap % s.kernel_w) + c];
        sum += x * weights[tap * channels + c];
        window += x;
      }
      accumulators[p * channels + c] = sum;
      if (window_sums != nullptr) window_sums[p * channels + c] = window;
    }
  }
}

void conv_f16(const ConvShape& s, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators) {
  const int64_t taps = s.kernel_h * s.kernel_w;
  for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      float sum = 0.0F;
      for (int64_t first = 0; first < s.in_channels; first += slice) {
        const int64_t last = std::min(first + slice, s.in_channels);
        for (int64_t tap = 0; tap < taps; ++tap) {
          const uint16_t* x = input + pixel_offset(s, p, tap / s.kernel_w, tap % s.kernel_w);
          const uint16_t* w = weights + (oc * taps + tap) * s.in_channels;
          for (int64_t ic = first; ic < last; ic += group)
            sum += exact_dot_f16(x + ic, w + ic, std::min(group, last - ic));
        }
      }
      accumulators[p * s.out_channels + oc] = canonical(sum);
    }
  }
}

void depthwise_f16(const ConvShape& s, const uint16_t* input, const uint16_t* weights, float* accumulators) {
  const int64_t channels = s.in_channels;
  for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0.0F;
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        // A product of halves has 22 bits: exact in fp32.
        const float x = half_to_float(input[pixel_offset(s, p, tap / s.kernel_w, tap % s.kernel_w) + c]);
        sum += x * half_to_float(weights[tap * channels + c]);
      }
      accumulators[p * channels + c] = canonical(sum);
    }
  }
}

}  // namespace openrknn::npu::reference
