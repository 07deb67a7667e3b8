// Plain scalar convolutions: what the fast ones of conv.hpp must repeat byte for byte. For tests and for reading.
#pragma once

#include "kernels/npu/conv.hpp"

namespace openrknn::npu::reference {

void conv_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums);
void depthwise_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums);
void conv_f16(const ConvShape& shape, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators);
void depthwise_f16(const ConvShape& shape, const uint16_t* input, const uint16_t* weights, float* accumulators);

}  // namespace openrknn::npu::reference
