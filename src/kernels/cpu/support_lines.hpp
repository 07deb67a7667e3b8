// Visits the lines of a tensor along one axis (or a run of axes) as contiguous arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"

namespace openrknn::cpu {

// A tensor seen as [outer][n][inner]: there are outer * inner lines of n elements, `inner` apart.
struct Lines {
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
};

// Calls body(line, to): `line` is the line's n elements; `to` its n_out results. Lines that are not contiguous are
// gathered, some neighbours at a time so that memory is read in runs.
template <typename In, typename Out, typename Body>
void map_lines(const Lines& shape, int64_t n_out, const In* from, Out* to, const Body& body) {
  const int64_t n = shape.n;
  if (shape.inner == 1) {
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, n));
    parallel_for(shape.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(from + i * n, to + i * n_out);
    });
    return;
  }
  const int64_t tile = std::clamp<int64_t>(262144 / std::max<int64_t>(1, n), 1, std::min<int64_t>(64, shape.inner));
  const int64_t tiles = (shape.inner + tile - 1) / tile;
  parallel_for(shape.outer * tiles, 1, [&](int64_t begin, int64_t end) {
    std::vector<In> lines(static_cast<size_t>(tile * n));
    std::vector<Out> results(static_cast<size_t>(n_out));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tiles * tile;
      const int64_t count = std::min(tile, shape.inner - first);
      const In* source = from + task / tiles * n * shape.inner + first;
      Out* target = to + task / tiles * n_out * shape.inner + first;
      for (int64_t k = 0; k < n; ++k) {
        for (int64_t i = 0; i < count; ++i) lines[static_cast<size_t>(i * n + k)] = source[k * shape.inner + i];
      }
      for (int64_t i = 0; i < count; ++i) {
        body(lines.data() + i * n, results.data());
        for (int64_t k = 0; k < n_out; ++k) target[k * shape.inner + i] = results[static_cast<size_t>(k)];
      }
    }
  });
}

}  // namespace openrknn::cpu
