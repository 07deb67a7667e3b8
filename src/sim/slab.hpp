// Cuts the input of a block of results, padding filled in, for kernels that know no borders.
#pragma once

#include <vector>

#include "sim/view.hpp"

namespace openrknn::sim {

// The input rows and columns that may be read: a whole image, or what a tile has brought to the convolution buffer.
struct Source {
  const View* view;
  int64_t n;              // image of the view
  int64_t top, left;      // coordinates of the view's first pixel in the image
  int64_t rows, columns;  // that the view holds
};

// A rectangle of the padded (and, for a transposed convolution, dilated) input; coordinates of the image, so that
// negative ones lie in the padding.
struct Rectangle {
  int64_t top, left, rows, columns;
  int64_t channel, channels;
  int64_t dilate_h = 1, dilate_w = 1;  // only multiples are real
  std::byte fill[2]{};                 // an element of padding, little end first
};

struct Slab {
  const std::byte* pixels;
  int64_t lanes;      // elements from pixel to pixel
  int64_t slack = 0;  // bytes that may be read behind the last pixel
};

// The rectangle in place when it is real throughout and its rows follow each other; else a copy in `storage`.
Slab cut(const Source& source, const Rectangle& rectangle, std::vector<std::byte>& storage);

}  // namespace openrknn::sim
