// Where a convolution's results go: from pixels counted over a part of the result to rows of views.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/view.hpp"

namespace openrknn::sim {

struct OutputPart {
  int64_t n, h, hs, w, ws;
};

// Where the results of a part go. Rows that follow each other without a gap are one long row.
struct Target {
  View y, residual;
  bool has_residual;
  OutputPart part;
  int64_t row;  // pixels from row to row of the part
  int64_t top;  // first row, as the views count

  Target(const View& to, const View* other, const OutputPart& p)
      : y(to),
        residual(other != nullptr ? *other : View{}),
        has_residual(other != nullptr),
        part(p),
        row(p.ws),
        top(p.h) {
    if (!joins(y) || (has_residual && !(joins(residual) && residual.cube == y.cube))) return;
    join(y);
    if (has_residual) join(residual);
    row = part.hs * part.ws;
    top = 0;
  }

  // Calls f(part, first) for pixels [pixel, pixel + pixels), counted over the rows of the part.
  template <typename F>
  void for_rows(int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, F&& f) const {
    for (int64_t p = pixel; p < pixel + pixels;) {
      const int64_t n = std::min(row - p % row, pixel + pixels - p);
      f(in_row(p, n, channel, channels), p - pixel);
      p += n;
    }
  }
  // Where they lie, if they are of one row.
  Part in_row(int64_t pixel, int64_t pixels, int64_t channel, int64_t channels) const {
    return {part.n, top + pixel / row, part.w + pixel % row, pixels, channel, channels};
  }

  // Whether they are, and kernels may read residuals and write results where these lie.
  bool direct(int64_t pixel, int64_t pixels) const {
    const bool in_place = !has_residual || (residual.single() && residual.cube == y.cube);
    return y.direct() && in_place && pixel % row + pixels <= row;
  }

 private:
  bool joins(const View& v) const { return v.direct() && part.ws == v.cube.w && v.row == v.cube.w * v.pixel; }
  void join(View& v) const {
    v.base += part.h * v.row;
    v.cube.w = part.hs * v.cube.w;
    v.cube.h = 1;
    v.row = v.cube.w * v.pixel;
  }
};

}  // namespace openrknn::sim
