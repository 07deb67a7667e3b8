// Convolution accumulators on a slab: pixels in NHWC order with every padding already filled in, so that the kernel
// itself knows no borders. The simulator cuts slabs from whole tensors (fast mode) or from one tile's buffer (strict
// mode). Filters are packed once for many calls; accumulators are handed on block by block while they are in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/long_lived.hpp"
#include "kernels/npu/half_stats.hpp"

namespace openrknn::npu {

struct ConvShape {
  int64_t in_h, in_w;    // of the slab, padding included
  int64_t channels;      // lanes a pixel of the slab (real channels rounded up; extra lanes hold anything)
  int64_t in_channels;   // real input channels (direct) or channels (depthwise)
  int64_t out_channels;  // of this call
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t out_h, out_w;  // (in - ((k - 1) * d + 1)) / stride + 1, or fewer
  int64_t slack = 0;     // bytes that may be read behind the slab
};

// Finished accumulators of output pixels [pixel, pixel + pixels), counted row by row, and of some channels.
template <typename T>
struct AccumulatorBlock {
  int64_t pixel, pixels, channel, channels;
  T* values;                   // [pixels][channels]; the receiver may overwrite them
  const int32_t* window_sums;  // direct: [pixels]; depthwise: [pixels][channels]; nullptr when not asked for
};
// Called once for every block, from several threads at a time.
template <typename T>
using AccumulatorSink = std::function<void(const AccumulatorBlock<T>&)>;
// Asked before a block is computed, by kernels that can turn accumulators into results in registers: what makes its
// results, for pixels and channels like those of an AccumulatorBlock. False: the sink is to have the accumulators.
struct RequantizeCall;
using RequantizeRequest =
    std::function<bool(int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, RequantizeCall& call)>;
struct HalfOutput;
using HalfRequest =
    std::function<bool(int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, HalfOutput& output)>;

// Bytes at the boundary of a cache line.
struct alignas(64) CacheLine {
  uint8_t bytes[64];
};

using CacheLines = std::vector<CacheLine, LongLived<CacheLine>>;

struct ConvKernels;

// Transformed weights of winograd.hpp.
struct WinogradFilters {
  const ConvKernels* kernels = nullptr;
  CacheLines packed;  // [panel][point][pair of channels][lane]
  bool empty() const { return packed.empty(); }
};

// int8 filters in the order of the loops in force.
struct IntegerFilters {
  const ConvKernels* kernels = nullptr;  // whose order it is
  CacheLines packed;                     // panels; depthwise: see conv_blocks.hpp, or empty
  std::vector<int32_t> wide;             // depthwise: [tap][channel], zero points folded in
  std::vector<bool> one_addend;          // depthwise: blocks of `packed` whose weights fit one byte
  WinogradFilters winograd;              // instead of `packed`
  std::vector<int32_t> sum_factors;      // direct: what the window's sum counts, by channel; empty: not
  bool current() const;                  // packed, and for the loops in force
};
// Direct weights [oc][kh][kw][in_channels], depthwise ones [kh][kw][channels]. minus_zero: B of each output channel, so
// that the weights count as w + B; nullptr: as they are.
IntegerFilters pack_conv_s8(const ConvShape& shape, const int8_t* weights, const int32_t* minus_zero);
// The same, in Winograd's form where that is faster for a whole result of out_h x out_w (|w + B| <= 256); conv_s8 must
// not be asked for sums then.
IntegerFilters pack_fastest_conv_s8(const ConvShape& shape, const int8_t* weights, const int32_t* minus_zero,
                                    int64_t out_h, int64_t out_w);
IntegerFilters pack_depthwise_s8(const ConvShape& shape, const int8_t* weights, const int32_t* minus_zero);

// Integer products: accumulators = sum x * (w + B), exact while they fit int32 (without B: below 2^17 products). With
// `sums` also the sum of x over the window (all real channels; depthwise: per channel).
void conv_s8(const ConvShape& shape, const int8_t* input, const IntegerFilters& filters, bool sums,
             const AccumulatorSink<int32_t>& sink, const RequantizeRequest& request = {});
void depthwise_s8(const ConvShape& shape, const int8_t* input, const IntegerFilters& filters, bool sums,
                  const AccumulatorSink<int32_t>& sink, const RequantizeRequest& request = {});

// The same with everything at once: accumulators [out_h * out_w][out_channels]; window_sums may be nullptr.
void conv_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
             int32_t* window_sums);
void depthwise_s8(const ConvShape& shape, const int8_t* input, const int8_t* weights, int32_t* accumulators,
                  int32_t* window_sums);

// fp16: exact sums of up to `group` products of one slice at one tap, one rounding to fp32, fp32 additions in the order
// slice, kh, kw. Weights [oc][kh][kw][in_channels] as fp16 bits, the input as fp16 bits.
struct HalfFilters {
  const ConvKernels* kernels = nullptr;
  int64_t slice = 0, group = 0;
  std::vector<uint16_t> plain;   // as given, for sums that doubles do not decide
  std::vector<uint16_t> packed;  // direct: [block][step][channel of the step][lane]
  std::vector<HalfStats> stats;  // direct: [block][step]
  int most_span = 0;             // direct: of inputs whose sums are all exact in doubles
  std::vector<float> wide;       // depthwise
  bool current() const;
};
HalfFilters pack_conv_f16(const ConvShape& shape, int64_t slice, int64_t group, const uint16_t* weights);
HalfFilters pack_depthwise_f16(const ConvShape& shape, const uint16_t* weights);
void conv_f16(const ConvShape& shape, const uint16_t* input, const HalfFilters& filters,
              const AccumulatorSink<float>& sink, const HalfRequest& request = {});
// Depthwise: one product a step, fp32 additions in the order kh, kw. Weights [kh][kw][channels].
void depthwise_f16(const ConvShape& shape, const uint16_t* input, const HalfFilters& filters,
                   const AccumulatorSink<float>& sink, const HalfRequest& request = {});
void conv_f16(const ConvShape& shape, int64_t slice, int64_t group, const uint16_t* input, const uint16_t* weights,
              float* accumulators);
void depthwise_f16(const ConvShape& shape, const uint16_t* input, const uint16_t* weights, float* accumulators);

// The sum of exactly n <= 64 products of halves, rounded once to fp32 (ties to even); infinities and NaN as IEEE.
float exact_dot_f16(const uint16_t* a, const uint16_t* b, int64_t n);

}  // namespace openrknn::npu
