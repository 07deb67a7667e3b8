// What this processor's multipliers reach when nothing else is to be done, measured: the denominator of bench/kernels.
#pragma once

namespace openrknn::bench {

// Multiply-adds a second of one core, by the instructions that the kernels in force use.
struct Peak {
  double int8 = 0;  // sums of products of bytes (VNNI), else of pairs of int16
  double fp32 = 0;  // fused multiply-adds of floats
  double fp64 = 0;  // of doubles, which the fp16 convolutions use
};
const Peak& peak();

}  // namespace openrknn::bench
