// Sums over contiguous floats in double. The order is fixed: 16 lanes, element i to lane i % 16, lanes then added
// pairwise (i and i + 8, i and i + 4, ...); vector code of any width does the same.
#pragma once

#include <cstdint>

namespace openrknn::cpu {

template <typename Term>
double lane_sum(int64_t n, Term term) {
  double lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int64_t l = 0; l < 16; ++l) lanes[l] += term(i + l);
  }
  for (; i < n; ++i) lanes[i % 16] += term(i);
  for (int64_t half = 8; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace openrknn::cpu
