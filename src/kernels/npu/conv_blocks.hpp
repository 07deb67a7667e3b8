// The inner loops of conv.cpp, compiled once per instruction set. Plain data only: see rows_loops.hpp for why.
#pragma once

#include <stdint.h>

#include "kernels/npu/half_stats.hpp"
#include "kernels/npu/rows.hpp"

namespace openrknn::npu {

// A run of output pixels times a run of weight panels. A panel holds `lanes` output channels: [tap][group][lane][4
// bytes]; the 4 bytes are 4 int8 channels plus ConvKernels::weight_offset, or 2 int16 channels.
struct IntegerBlock {
  const uint8_t* input;         // elements of 1 (integer_bytes) or 2 bytes, lanes of a pixel padded to whole groups
  const int64_t* pixel_offset;  // bytes from `input` to each window
  int64_t pixels;
  const int64_t* tap_offset;  // bytes from a window to each tap
  int64_t taps;
  int64_t groups;
  const uint8_t* weights;  // of the first panel
  int64_t out_channels;    // valid ones from the first panel on
  int32_t* output;         // [pixel][out_stride]
  int64_t out_stride;
  // Less sums[pixel] * factors[channel], whole panels; nullptr: none. `pairs`: each as two int16, of which the sums'
  // add up to the sum and the factors' are both the negative factor.
  const int32_t* sums;
  const int32_t* factors;
  bool pairs;
  // Where the loops can (ConvKernels::finishes): results instead of the output, from accumulators in registers; its
  // pixels and channels are the block's.
  const RequantizeBlock* finish;
};

// The groups of one pixel: [first, first + n) channels, none across a slice.
struct HalfGroup {
  int64_t first, n;
};

// One group of products: `n` channels of one slice at one tap.
struct HalfStep {
  int64_t x;          // elements from a window to its first channel
  int64_t chunk;      // index of these channels among all groups of a pixel
  int64_t tap_pixel;  // pixels from a window to the tap
  int64_t first;      // channel
  int64_t n;
  int64_t w;  // elements from a filter's start to its first weight
};

// A run of output pixels times `half_channels` output channels.
struct HalfBlock {
  const double* input;           // the slab's real channels, as doubles
  const uint16_t* input_bits;    // the slab itself
  int64_t bits_step;             // elements of it from pixel to pixel
  const HalfStats* input_stats;  // [slab pixel][chunks]; nullptr: every sum is known to be exact
  int64_t chunks;
  const int64_t* pixel_offset;  // elements from the input's start to each window
  const int64_t* pixel_index;   // the same in pixels
  int64_t pixels;
  const HalfStep* steps;
  int64_t step_count;
  const double* weights;          // [step][n][half_channels], whole vectors in lines of the cache
  const HalfStats* weight_stats;  // [step], of all channels of the block
  const uint16_t* weight_bits;    // filter of the first channel
  int64_t filter_size;
  int64_t out_channels;  // valid ones
  float* output;         // [pixel][out_stride]
  int64_t out_stride;
  float (*exact)(const uint16_t* a, const uint16_t* b, int64_t n);
  const HalfOutput* finish;  // results instead of the output, tile by tile; nullptr: sums
};

// Pixels of one row of a depthwise convolution, and a run of channels.
struct DepthwiseRow {
  int64_t pixels;
  int64_t pixel_step;         // elements from one window to the next
  const int64_t* tap_offset;  // elements
  int64_t taps;
  int64_t channels;     // of this call; the result has rows of so many
  int64_t weight_step;  // weights from one tap to the next
  // What follows is for depthwise_bytes and depthwise_halves alone.
  int64_t column_step;     // elements from one column of the slab to the next
  int64_t shared_columns;  // the stride of windows that share the columns of neighbours, 1 or 2; bytes: of 3x3 ones, or
                           // 0: they do not
  int64_t kernel_w;        // halves: taps of a row of the kernel, 3 or 5
  const HalfOutput* half_finish;  // halves: results instead of sums; nullptr: sums
  // And this for depthwise_bytes.
  int64_t runs;             // 1; or 2 or 4 of `pixels` windows each, of at most 32 or 16 channels, that share vectors
  int64_t run_windows[4];   // windows from the first one of all to the first one of each run; runs may overlap
  int64_t run_elements[4];  // the same in elements
  bool one_addend;          // the second addends of all weights are 0
  const RequantizeBlock* finish;  // results instead of sums; no residual. nullptr: sums
};

constexpr int64_t kTapGroup = 4;
constexpr int64_t kDepthwiseSlack = 64;  // floats that depthwise_f16 may read and write behind its arrays

// Winograd's F(4x4, 3x3): 36 points of a tile of 6x6 pixels give 4x4 results.
constexpr int64_t kWinogradPoints = 36;
// A run of tiles times one or two panels of lanes: sums[point][tile][panel][lane] over the channels.
struct WinogradBlock {
  const int16_t* input;  // [point][tile][channel]
  int64_t plane, tile_step;
  int64_t tiles, groups;   // groups: pairs of channels
  const uint8_t* weights;  // of the first panel: [point][group][lane][2 int16]
  int64_t panels, panel_bytes;
  int32_t* sums;
  int64_t sum_plane;
};

struct WinogradKernels {
  int lanes;
  void (*input)(const int8_t* x, const int64_t* rows, const int64_t* columns, int64_t channels, int16_t* to,
                int64_t plane);
  void (*products)(const WinogradBlock&);
  void (*output)(const int32_t* sums, int64_t plane, int64_t channels, int32_t* y, int64_t row_step,
                 int64_t pixel_step);
};
constexpr int64_t kWinogradPad = 32;  // channels of a tile are padded to whole vectors of so many int16

struct ConvKernels {
  const char* isa;     // that these are compiled for
  int integer_lanes;   // output channels a panel
  int integer_panels;  // panels that one call does best
  bool integer_bytes;  // groups of 4 int8, not of 2 int16
  int weight_offset;   // what makes weights of bytes unsigned: 128, or 0 where products are of signed bytes
  bool finishes;       // IntegerBlock::finish
  void (*integer)(const IntegerBlock&);
  void (*sum_pixels)(int64_t pixels, int64_t step, int64_t channels, const int8_t* x, int32_t* sums);
  // sums[i] += x[i * stride + k * dilation] over the taps k.
  void (*sum_line)(int64_t n, int64_t taps, int64_t dilation, int64_t stride, const int32_t* x, int32_t* sums);
  void (*depthwise_s8)(const DepthwiseRow&, const int8_t* x, const int32_t* w, int32_t* y, int32_t* sums);
  // At most 64 channels; nullptr: not here. Of a block first 64 bytes, by lane: the bits that turn x into an unsigned
  // byte, x plus 128 or, with the filter negated, 127 less x. Then 64 starts, which take that away again, and by groups
  // of 4 taps two addends [group][addend][part][lane][4 taps], since w - zw needs 9 bits; starts and lanes in the order
  // that interleaving the bytes of 4 taps twice leaves. Windows that share columns: groups are the columns of the
  // kernel, 3 rows and nothing. Lanes are channels, or runs of 32 or 16 channels, of which the last may be missing.
  void (*depthwise_bytes)(const DepthwiseRow&, const int8_t* x, const uint8_t* w, int32_t* y);
  int half_channels;
  void (*half)(const HalfBlock&);
  // Of n neighbouring halves.
  HalfStats (*half_stats)(int64_t n, const uint16_t* x);
  // values [pixel][channels] = the first channels of `pixels` rows of `step` halves; stats [pixel][group].
  void (*half_slab)(int64_t pixels, int64_t step, int64_t channels, const HalfGroup* groups, int64_t count,
                    const uint16_t* x, double* values, HalfStats* stats);
  void (*depthwise_f16)(const DepthwiseRow&, const float* x, const float* w, float* y);
  // The same of halves, windows that share columns only; x and w must be readable up to a multiple of row_lanes
  // channels. nullptr: not here.
  void (*depthwise_halves)(const DepthwiseRow&, const uint16_t* x, const float* w, float* y);
  int row_lanes;
  WinogradKernels winograd;
};

extern const ConvKernels kConvKernelsScalar;
#if defined(__x86_64__)
extern const ConvKernels kConvKernelsAvx2;
extern const ConvKernels kConvKernelsAvxVnni;
extern const ConvKernels kConvKernelsAvx512;
extern const ConvKernels kConvKernelsAvx512Vnni;
#elif defined(__aarch64__)
extern const ConvKernels kConvKernelsNeonDot;
#endif

}  // namespace openrknn::npu
