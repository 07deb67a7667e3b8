// What the properties of RowKernels share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/kernel_tables.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu::testing {

using namespace openrknn::testing;

constexpr int64_t kUsual = 300;
constexpr int64_t kMost = 150;  // values a row

// For every case `prepare` makes operands and what is wanted, and returns what checks a table.
template <typename Prepare>
void for_cases(const Property& property, const Prepare& prepare) {
  const auto tables = openrknn::testing::row_tables();
  Memory memory;
  for (Cases cases(property, names_of(tables)); cases.next();) {
    memory.reset();
    const auto check = prepare(cases.rng(), memory);
    for (const TableOf<RowKernels>& each : tables) {
      const ::testing::AssertionResult result = check(*each.table);
      if (!result) FAIL() << each.isa << ": " << result.message();
    }
  }
}

// Pixels and taps anywhere in an array of so many values; results in rows with gaps that stay.
struct Windows {
  int64_t pixels, n, x_step, y_step, values;
  std::vector<int64_t> offsets;
  explicit Windows(Rng& rng)
      : pixels(pick(rng, 0, 4)), n(any_extent(rng, 140)), x_step(pick(rng, 0, 150)), y_step(n + pick(rng, 0, 3)) {
    for (int64_t tap = pick(rng, 1, 9); tap > 0; --tap) offsets.push_back(pick(rng, 0, 300));
    values = *std::max_element(offsets.begin(), offsets.end()) + std::max<int64_t>(0, pixels - 1) * x_step + n;
  }
};

// What checks a maximum over windows of x: of all taps the one that is `larger` than those before it and than `least`;
// what lies between rows stays.
template <typename T, typename Larger, typename Max>
auto check_of_max(Rng& rng, Memory& memory, const Windows& w, const std::vector<T>& x, T least, const Larger& larger,
                  Max RowKernels::*max) {
  const std::vector<T> before(static_cast<size_t>(w.pixels * w.y_step), T{55});
  auto want = before;
  for (int64_t p = 0; p < w.pixels; ++p) {
    for (int64_t c = 0; c < w.n; ++c) {
      T best = least;
      for (const int64_t offset : w.offsets) {
        const T next = x[static_cast<size_t>(p * w.x_step + offset + c)];
        if (larger(next, best)) best = next;
      }
      want[static_cast<size_t>(p * w.y_step + c)] = best;
    }
  }
  const auto got = memory.take<T>(rng, w.pixels * w.y_step);
  return [=, x = memory.copy(rng, x)](const RowKernels& k) {
    std::copy(before.begin(), before.end(), got.begin());
    (k.*max)(w.pixels, w.n, static_cast<int64_t>(w.offsets.size()), w.offsets.data(), x.data(), w.x_step, got.data(),
             w.y_step);
    return same_values(got, want);
  };
}

}  // namespace openrknn::npu::testing
