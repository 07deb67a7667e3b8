// Reading and writing parts of rows as dense pixels, in place where they already lie so.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/view.hpp"

namespace openrknn::sim {

// Storage of at least `count` elements; it only grows.
template <typename T>
T* reserve(std::vector<T>& storage, int64_t count) {
  if (storage.size() < static_cast<size_t>(count)) storage.resize(static_cast<size_t>(count));
  return storage.data();
}

// The elements of a part, `stride` apart from pixel to pixel. Operands with extents of 1 repeat.
template <typename T>
const T* load(const View& v, const Part& part, std::vector<T>& storage, int64_t& stride) {
  const bool whole = part.w + part.ws <= v.cube.w && part.c + part.cs <= v.cube.c;
  if (v.single() && whole) {
    stride = v.stride();
    return reinterpret_cast<const T*>(v.at(v.cube.n == 1 ? 0 : part.n, v.cube.h == 1 ? 0 : part.h, part.w)) + part.c;
  }
  stride = part.cs;
  T* to = reserve(storage, part.ws * part.cs);
  gather(v, part, to, stride);
  return to;
}

// Calls write(y, stride) with where the part's results belong, or with storage that is scattered afterwards.
template <typename T, typename F>
void store(const View& v, const Part& part, F&& write) {
  if (v.direct()) return write(reinterpret_cast<T*>(v.at(part.n, part.h, part.w)) + part.c, v.stride());
  std::vector<T> row(static_cast<size_t>(part.ws * part.cs));
  write(row.data(), part.cs);
  scatter(v, part, row.data(), part.cs);
}

// Views of one elementwise task, the result first; the others are of its extents, or of one pixel. Where the pixels of
// all rows and images follow each other, they become one row: short rows cost more than what is done with them.
// by_value: a result depends on neither position nor channel, so that padding lanes may be counted as channels where
// all have the same and nobody looks at them (fast mode).
void join_pixels(std::span<View> views, bool by_value);

// Calls body(part) for all of a cube over threads, in parts of at most about `values` values of one row.
void for_parts(const model::Cube& cube, int64_t values, const std::function<void(const Part&)>& body);

}  // namespace openrknn::sim
