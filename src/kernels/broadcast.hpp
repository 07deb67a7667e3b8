// Loops over operands under numpy broadcasting: axes joined where they run on in every operand, rows handed out to
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "core/shape.hpp"

namespace openrknn {

template <size_t N>
struct BroadcastLoop {
  int64_t extent = 1;
  std::array<int64_t, N> steps{};  // in elements, per operand; 0 where it is repeated
};

// Outermost first, at least one loop, the result row-major. Every operand broadcasts to `result` (checked by the
// caller).
template <size_t N>
std::vector<BroadcastLoop<N>> broadcast_loops(const Shape& result, const std::array<const Shape*, N>& operands) {
  std::vector<BroadcastLoop<N>> loops;
  for (int axis = 0; axis < result.rank(); ++axis) {
    BroadcastLoop<N> loop{result[axis], {}};
    if (loop.extent == 1) continue;
    for (size_t k = 0; k < N; ++k) {
      const Shape& s = *operands[k];
      const int own = axis - (result.rank() - s.rank());
      if (own >= 0 && s[own] != 1) loop.steps[k] = s.strides()[static_cast<size_t>(own)];
    }
    bool joins = !loops.empty();
    for (size_t k = 0; k < N && joins; ++k) joins = loops.back().steps[k] == loop.steps[k] * loop.extent;
    if (joins) {
      loops.back() = {loops.back().extent * loop.extent, loop.steps};
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) loops.push_back({1, {}});
  return loops;
}

// Calls row(result offset, operand offsets, count, operand steps) for stretches that cover the result, in parallel.
template <size_t N, typename F>
void for_each_row(const std::vector<BroadcastLoop<N>>& loops, F&& row) {
  constexpr int64_t kStretch = 16384;  // elements: enough to pay for a task
  const BroadcastLoop<N>& inner = loops.back();
  const size_t outer = loops.size() - 1;
  int64_t rows = 1;
  for (size_t l = 0; l < outer; ++l) rows *= loops[l].extent;
  if (rows == 0 || inner.extent == 0) return;
  const int64_t stretches = ceil_div(inner.extent, kStretch);
  const int64_t grain = std::max<int64_t>(1, kStretch / inner.extent);
  parallel_for(rows * stretches, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % stretches * kStretch;
      std::array<int64_t, N> offsets{};
      for (size_t k = 0; k < N; ++k) offsets[k] = first * inner.steps[k];
      int64_t rest = i / stretches;
      const int64_t to = rest * inner.extent + first;
      for (size_t l = outer; l-- > 0;) {
        const int64_t at = rest % loops[l].extent;
        rest /= loops[l].extent;
        for (size_t k = 0; k < N; ++k) offsets[k] += at * loops[l].steps[k];
      }
      row(to, offsets, std::min(kStretch, inner.extent - first), inner.steps);
    }
  });
}

// to[i] = f(a[i], b[i]) under broadcasting.
template <typename A, typename B, typename R, typename F>
void broadcast_binary(const Shape& result, const A* a, const Shape& a_shape, const B* b, const Shape& b_shape, R* to,
                      F f) {
  const auto row = [=](int64_t at, const std::array<int64_t, 2>& o, int64_t n, const std::array<int64_t, 2>& step) {
    const A* pa = a + o[0];
    const B* pb = b + o[1];
    R* out = to + at;
    if (step[0] != 0 && step[1] != 0) {
      for (int64_t i = 0; i < n; ++i) out[i] = f(pa[i], pb[i]);
    } else if (step[0] != 0) {
      const B only = *pb;
      for (int64_t i = 0; i < n; ++i) out[i] = f(pa[i], only);
    } else if (step[1] != 0) {
      const A only = *pa;
      for (int64_t i = 0; i < n; ++i) out[i] = f(only, pb[i]);
    } else {
      std::fill_n(out, n, f(*pa, *pb));
    }
  };
  for_each_row(broadcast_loops<2>(result, {&a_shape, &b_shape}), row);
}

}  // namespace openrknn
