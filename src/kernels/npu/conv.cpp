#include "kernels/npu/conv.hpp"

#include "base/parallel.hpp"
#include "kernels/npu/conv_reference.hpp"

namespace openrknn::npu {
namespace {

// The part of the convolution that computes output rows [first, last).
ConvShape rows_of(const ConvShape& shape, int64_t first, int64_t last) {
  ConvShape part = shape;
  part.out_h = last - first;
  part.in_h = shape.in_h - first * shape.stride_h;
  return part;
}

template <typename Body>
void for_rows(const ConvShape& shape, const Body& body) {
  parallel_for(shape.out_h, 1, [&](int64_t first, int64_t last) {
    const int64_t skipped_input = first * shape.stride_h * shape.in_w * shape.channels;
    body(rows_of(shape, first, last), skipped_input, first * shape.out_w);
  });
}

}  // namespace

void conv_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums) {
  for_rows(shape, [&](const ConvShape& part, int64_t skip, int64_t pixel) {
    reference::conv_s8(part, input + skip, weights, accumulators + pixel * shape.out_channels,
                       window_sums == nullptr ? nullptr : window_sums + pixel);
  });
}

void depthwise_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums) {
  for_rows(shape, [&](const ConvShape& part, int64_t skip, int64_t pixel) {
    reference::depthwise_s8(part, input + skip, weights, accumulators + pixel * shape.in_channels,
                            window_sums == nullptr ? nullptr : window_sums + pixel * shape.in_channels);
  });
}

void conv_f16(const ConvShape& shape, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators) {
  for_rows(shape, [&](const ConvShape& part, int64_t skip, int64_t pixel) {
    reference::conv_f16(part, slice, group, input + skip, weights, accumulators + pixel * shape.out_channels);
  });
}

void depthwise_f16(const ConvShape& shape, const uint16_t* input, const uint16_t* weights, float* accumulators) {
  for_rows(shape, [&](const ConvShape& part, int64_t skip, int64_t pixel) {
    reference::depthwise_f16(part, input + skip, weights, accumulators + pixel * shape.in_channels);
  });
}

}  // namespace openrknn::npu
