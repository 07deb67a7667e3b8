// Convolution accumulators on a slab: pixels in NHWC order with every padding already filled in, so that the kernel
// itself knows no borders. The simulator cuts slabs from whole tensors (fast mode) or from one tile's buffer (strict
// mode).
#pragma once

#include <cstdint>

namespace openrknn::npu {

struct ConvShape {
  int64_t in_h, in_w;    // of the slab, padding included
  int64_t channels;      // lanes a pixel of the slab (real channels rounded up; extra lanes hold anything)
  int64_t in_channels;   // real input channels (direct) or channels (depthwise)
  int64_t out_channels;  // of this call
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t out_h, out_w;  // (in - ((k - 1) * d + 1)) / stride + 1, or fewer
};

// Integer products, exact (callers keep K below 2^17 products). Weights [oc][kh][kw][in_channels], int8.
// accumulators [out_h * out_w][out_channels] = sum x * w.
// window_sums [out_h * out_w] = sum x over the window (all real channels); nullptr when no weight zero point needs it.
void conv_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums);
// Depthwise: weights [kh][kw][channels of the call]; window sums per channel [pixels][channels].
void depthwise_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums);

// fp16: exact sums of up to `group` products of one slice at one tap, one rounding to fp32, fp32 additions in the order
// slice, kh, kw. Weights [oc][kh][kw][in_channels] as fp16 bits, the input as fp16 bits.
void conv_f16(const ConvShape& shape, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators);
// Depthwise: one product a step, fp32 additions in the order kh, kw. Weights [kh][kw][channels].
void depthwise_f16(const ConvShape& shape, const uint16_t* input, const uint16_t* weights, float* accumulators);

// The sum of exactly n <= 64 products of halves, rounded once to fp32 (ties to even); infinities and NaN as IEEE.
float exact_dot_f16(const uint16_t* a, const uint16_t* b, int64_t n);

}  // namespace openrknn::npu
