// Exact 3x3 convolutions of int8 in a quarter of the products: Winograd's F(4x4, 3x3) over integers modulo 2^32
// (docs/ARITHMETIC.md "Winograd in integers"). Only for whole numbers whose results are known to fit.
#pragma once

#include "kernels/npu/conv.hpp"

namespace openrknn::npu {

// Why a convolution of this shape is computed directly; nullptr when this way is faster. out_h, out_w: of the whole
// result, of which a call may compute a part.
// cheap_bytes: the processor's byte products cost less than the transforms save (bytes_are_cheap).
const char* winograd_refusal(const ConvShape& shape, int64_t out_h, int64_t out_w, bool cheap_bytes);
bool bytes_are_cheap();

// Weights [oc][3][3][in_channels], counted as w + minus_zero[oc] (nullptr: as they are) with |w + minus_zero| <= 256.
// Empty when some result might not fit 25 bits.
WinogradFilters pack_winograd_s8(const ConvShape& shape, const int8_t* weights, const int32_t* minus_zero);

// As conv_s8, without sums over the windows.
void winograd_s8(const ConvShape& shape, const int8_t* input, const WinogradFilters& filters,
                 const AccumulatorSink<int32_t>& sink);

}  // namespace openrknn::npu
