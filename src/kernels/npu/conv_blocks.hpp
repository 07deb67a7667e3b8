// The inner loops of conv.cpp, compiled once per instruction set. Plain data only: see rows_loops.hpp for why.
#pragma once

#include <stdint.h>

namespace openrknn::npu {

// A run of output pixels times a run of weight panels. A panel holds `lanes` output channels: [tap][group][lane][4
// bytes]; the 4 bytes are 4 int8 channels plus 128 (vnni: unsigned times signed products) or 2 int16 channels (others).
struct IntegerBlock {
  const uint8_t* input;         // elements of 1 (vnni) or 2 bytes, lanes of a pixel padded to whole groups
  const int64_t* pixel_offset;  // bytes from `input` to each window
  int64_t pixels;
  const int64_t* tap_offset;  // bytes from a window to each tap
  int64_t taps;
  int64_t groups;
  const uint8_t* weights;  // of the first panel
  int64_t out_channels;    // valid ones from the first panel on
  int32_t* output;         // [pixel][out_stride]
  int64_t out_stride;
  const int32_t* subtrahend;  // per pixel; nullptr: none
};

// One group of products: `n` channels of one slice at one tap.
struct HalfStep {
  int64_t x;          // elements from a window to its first channel
  int64_t chunk;      // index of these channels among all groups of a pixel
  int64_t tap_pixel;  // pixels from a window to the tap
  int64_t n;
  int64_t w;  // elements from a filter's start to its first weight
};

// What decides whether doubles hold a group's sum exactly: all values are multiples of 2^(top - span), below 2^top.
// kInexactSpan marks infinities and NaN.
struct HalfStats {
  uint8_t span;
  int8_t top;
};
constexpr int kSpecialSpan = 255;

// A run of output pixels times `half_channels` output channels.
struct HalfBlock {
  const double* input;           // the slab, as doubles
  const uint16_t* input_bits;    // the slab itself, same offsets
  const HalfStats* input_stats;  // [slab pixel][chunks]
  int64_t chunks;
  const int64_t* pixel_offset;  // elements from the slab's start to each window
  const int64_t* pixel_index;   // the same in pixels
  int64_t pixels;
  const HalfStep* steps;
  int64_t step_count;
  const double* weights;          // [step][n][half_channels]
  const HalfStats* weight_stats;  // [step], of all channels of the block
  const uint16_t* weight_bits;    // filter of the first channel
  int64_t filter_size;
  int64_t out_channels;  // valid ones
  float* output;         // [pixel][out_stride]
  int64_t out_stride;
  float (*exact)(const uint16_t* a, const uint16_t* b, int64_t n);
};

// One row of output pixels of a depthwise convolution.
struct DepthwiseRow {
  int64_t pixels;
  int64_t pixel_step;         // elements from one window to the next
  const int64_t* tap_offset;  // elements
  int64_t taps;
  int64_t channels;
};

struct ConvKernels {
  int integer_lanes;   // output channels a panel
  int integer_panels;  // panels that one call does best
  bool integer_bytes;  // int8 groups of 4 plus 128, not int16 groups of 2
  void (*integer)(const IntegerBlock&);
  int32_t (*dot)(int64_t n, const int8_t* w, const int16_t* x);
  void (*depthwise_s8)(const DepthwiseRow&, const int8_t* x, const int32_t* w, int32_t* y, int32_t* sums);
  int half_channels;
  void (*half)(const HalfBlock&);
  void (*depthwise_f16)(const DepthwiseRow&, const float* x, const float* w, float* y);
};

extern const ConvKernels kConvKernelsScalar;
#if defined(__x86_64__)
extern const ConvKernels kConvKernelsAvx2;
extern const ConvKernels kConvKernelsAvx512;
extern const ConvKernels kConvKernelsVnni;
#endif

}  // namespace openrknn::npu
