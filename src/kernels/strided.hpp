// Copies between strided arrays of elements of 1, 2, 4 or 8 bytes: what Transpose, Slice, Concat, Expand, ... come down
// to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/shape.hpp"

namespace openrknn {

// One axis: extent and the step, in elements, of source and destination. Steps may be 0 or negative.
struct StridedLoop {
  int64_t extent = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// Drops axes of extent 1 and joins axes that run on in both arrays; outermost first, as given.
std::vector<StridedLoop> simplified(const std::vector<StridedLoop>& loops);

// to[sum i*to] = from[sum i*from] over all i. The arrays must not overlap; every destination is written once.
void copy_strided(const void* from, void* to, const std::vector<StridedLoop>& loops, size_t element_size);

// to[i0, i1, ...] = from[table0[i0], table1[i1], ...]; `to` is row-major over the tables' sizes, entries are in range.
void copy_by_tables(const void* from, const Shape& from_shape, const std::vector<std::vector<int64_t>>& tables,
                    void* to, size_t element_size);

// Fills count elements with the one at `value`.
void fill_elements(void* to, int64_t count, const void* value, size_t element_size);

}  // namespace openrknn
