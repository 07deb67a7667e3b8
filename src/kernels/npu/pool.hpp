// The pooling unit over arrays: what arithmetic.hpp says of one window, on the calling thread.
#pragma once

#include <cstdint>

namespace openrknn::npu {

// A slab as in conv.hpp: NHWC, `stride` elements a pixel, padding filled in by the caller: the least value (int8 -128,
// fp16 0xFC00) for max, the padding value for average, which counts it.
struct PoolShape {
  int64_t in_w;      // pixels a row of the slab
  int64_t channels;  // of this call
  int64_t in_stride, out_stride;
  int64_t kernel_h, kernel_w, stride_h, stride_w;
  int64_t out_h, out_w;
};
void max_pool_s8(const PoolShape& shape, const int8_t* input, int8_t* output);
void average_pool_s8(const PoolShape& shape, const int8_t* input, int8_t* output);
// NaN never wins; of zeros of both signs the first stays.
void max_pool_f16(const PoolShape& shape, const uint16_t* input, uint16_t* output);
// fp32: the sum over the window, row by row, then * (1 / kernel_w) then * (1 / kernel_h), both reciprocals as halves;
// one rounding to fp16. The order is a guess.
void average_pool_f16(const PoolShape& shape, const uint16_t* input, uint16_t* output);

}  // namespace openrknn::npu
