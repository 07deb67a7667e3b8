// Sums over contiguous floats in double. The order is fixed: 16 lanes, element i to lane i % 16, lanes then added
// pairwise (i and i + 8, i and i + 4, ...); vector code of any width does the same. Sums of the floats themselves are
// GemmKernels::sum, in the same order.
#pragma once

#include <cstdint>

namespace openrknn::cpu {

constexpr int64_t kSumLanes = 16;

template <typename Term>
double lane_sum(int64_t n, Term term) {
  double lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int64_t l = 0; l < kSumLanes; ++l) lanes[l] += term(i + l);
  }
  for (; i < n; ++i) lanes[i % kSumLanes] += term(i);
  for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace openrknn::cpu
