// Matrices of elements of 1, 2, 4 or 8 bytes, transposed: what a change between pixels and lines of one channel is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrknn {

// to[c][r] = from[r][c]. Rows of `from` lie from_step bytes apart, those of `to` to_step; both matrices are disjoint
// and the rows of each do not overlap. On the calling thread.
void transpose_matrix(const void* from, int64_t from_step, int64_t rows, int64_t columns, void* to, int64_t to_step,
                      size_t element_size);

}  // namespace openrknn
