// Weights to int8: asymmetric, the range widened to 0.
#pragma once

#include <vector>

#include "core/quant_params.hpp"
#include "core/tensor.hpp"

namespace openrknn::quant {

// Parameters a channel along `axis`, or of the whole tensor for axis -1. A channel of zeros gets [-1, 1].
QuantParams weight_params(const Tensor& weights, int axis);

// round_half_even(x / scale) + zero_point, saturated to int8; NaN gives the zero point.
int8_t quantize_value(float x, double scale, int32_t zero_point);

}  // namespace openrknn::quant
