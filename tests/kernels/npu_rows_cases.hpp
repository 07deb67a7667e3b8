// What the properties of RowKernels share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/kernel_tables.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu::testing {

using openrknn::testing::any_extent;
using openrknn::testing::Cases;
using openrknn::testing::Memory;
using openrknn::testing::pick;
using openrknn::testing::Property;
using openrknn::testing::Rng;
using openrknn::testing::TableOf;

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

}  // namespace openrknn::npu::testing
