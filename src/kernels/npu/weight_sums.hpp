// How far accumulators can go: sums over weights, which are read once when a task is prepared.
#pragma once

#include <cstdint>

namespace openrknn::npu {

// Of what is positive and of what is negative among weights that count as w + minus_zero.
struct WeightSums {
  int64_t positive = 0, negative = 0;

  void add(const int8_t* weights, int64_t count, int32_t minus_zero);
};

}  // namespace openrknn::npu
