// Layouts of the hardware, in one place: feature cubes, weight cubes, per-channel parameter streams.
// All functions are exact inverses in pairs; tests hold them against formulas written independently.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/shape.hpp"
#include "model/program.hpp"

namespace openrknn::model {

// The cube of a logical shape: rank 4 as it is; [N,C,L] -> (N,C,1,L); [N,C] -> (N,C,1,1); [C] -> (1,C,1,1); scalar ->
// (1,1,1,1); rank above 4: leading dims folded into n.
Cube cube_of(const Shape& shape);

// Byte offset of element (n, c, h, w) from the tensor's own offset.
inline int64_t element_offset(const TensorDesc& t, int64_t n, int64_t c, int64_t h, int64_t w) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  if (t.layout == Layout::kNHWC) return n * t.batch_stride + h * t.row_stride + (w * t.cube.c + c) * size;
  return n * t.batch_stride + (c / t.c2) * t.surface_stride + h * t.row_stride + (w * t.c2 + c % t.c2) * size;
}

// Sets strides for a tensor alone in its buffer and returns the bytes it needs (unaligned). `pixel_align`: planes hold
// a multiple of so many pixels (1 = dense); `width_align` (kNHWC): rows hold a multiple of so many pixels.
int64_t set_dense_strides(TensorDesc& tensor, int pixel_align, int width_align);

// Is `part` the channels of `whole` from `channel` on, at their own place (a Concat operand that was written there)?
inline bool lies_inside(const TensorDesc& part, const TensorDesc& whole, int64_t channel) {
  return part.buffer != kNone && part.buffer == whole.buffer && part.layout == Layout::kNC1HWC2 &&
         whole.layout == Layout::kNC1HWC2 && part.c2 == whole.c2 && channel % whole.c2 == 0 &&
         part.row_stride == whole.row_stride && part.surface_stride == whole.surface_stride &&
         part.batch_stride == whole.batch_stride && part.cube.n == whole.cube.n && part.cube.h == whole.cube.h &&
         part.cube.w == whole.cube.w && part.offset == whole.offset + channel / whole.c2 * whole.surface_stride;
}

// Gathers a tensor from `base` (start of its buffer or blob, its own offset not yet added) into row-major elements of
// its logical shape, and the reverse. Padding lanes are written as zero bytes... of the zero point for int8.
void unpack_tensor(const TensorDesc& tensor, const std::byte* base, void* plain);
void pack_tensor(const TensorDesc& tensor, const void* plain, std::byte* base);

// Weight cubes. `plain` is [oc][ic][kh][kw] (depthwise: [c][1][kh][kw]) of weight_dtype. Padding lanes of int8 hold
// the weight zero point of their output channel, of fp16 zero. Sizes and order: spec in docs/ARITHMETIC.md.
int64_t packed_weight_bytes(const Convolution& conv);
std::vector<std::byte> pack_weights(const Convolution& conv, std::span<const std::byte> plain);
std::vector<std::byte> unpack_weights(const Convolution& conv, std::span<const std::byte> packed);
// Channels [oc, oc + ocs) in the order of the kernels: [ocs][kh][kw][ic], depthwise [kh][kw][ocs]. `packed` starts at
// the group of output channel `first` (a whole cube: 0). The plain weights are the front of `storage`, which only
// grows: fresh memory for each of many tensors would cost as much as unpacking.
std::span<const std::byte> unpack_weights_taps_first(const Convolution& conv, std::span<const std::byte> packed,
                                                     int64_t oc, int64_t ocs, int64_t first,
                                                     std::vector<std::byte>& storage);
std::vector<std::byte> unpack_weights_taps_first(const Convolution& conv, std::span<const std::byte> packed, int64_t oc,
                                                 int64_t ocs, int64_t first = 0);
// Byte range of the packed cube that output channels [oc, oc + ocs) occupy; oc is a multiple of the kernel group.
std::pair<int64_t, int64_t> weight_range(const Convolution& conv, int64_t oc, int64_t ocs);

// Per-channel stream of int8 tasks. Int16 profiles: groups of 8 channels in 64 bytes (A int32 x8, B int16 x8, C int16
// x8); Q14 profiles: groups of 4 in 32 bytes (A int32 x4, B int16 x4, C uint16 x4). The last group is zero-padded.
struct ChannelParams {
  std::vector<int32_t> bias;               // A
  std::vector<int32_t> minus_weight_zero;  // B
  std::vector<int32_t> multiplier;         // C
};
std::vector<std::byte> pack_params(const NumericsProfile& profile, const ChannelParams& params);
ChannelParams unpack_params(const NumericsProfile& profile, std::span<const std::byte> packed, int64_t channels);
int64_t packed_param_bytes(const NumericsProfile& profile, int64_t channels);

}  // namespace openrknn::model
