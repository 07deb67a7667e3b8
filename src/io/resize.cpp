// Bilinear resizing with the integer arithmetic of OpenCV's INTER_LINEAR on 8-bit pictures.
#include <algorithm>
#include <cmath>
#include <vector>

#include "io/image.hpp"

namespace openrknn::io {
namespace {

constexpr int kCoefficientBits = 11;

// Where one output coordinate reads: two neighbours and their weights, which sum to about 2^11.
struct Tap {
  int64_t first = 0, second = 0;
  int weight_first = 0, weight_second = 0;
};

int fixed_point(float weight) {
  return static_cast<int>(std::lrint(weight * static_cast<float>(1 << kCoefficientBits)));
}

// At the left and right border the nearest pixel counts alone; at the top and bottom the fraction stays and both rows
// are the same.
std::vector<Tap> make_taps(int64_t from, int64_t to, bool exact_border) {
  const double scale = 1.0 / (static_cast<double>(to) / static_cast<double>(from));
  std::vector<Tap> taps(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const auto position = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    auto index = static_cast<int64_t>(std::floor(position));
    float fraction = position - static_cast<float>(index);
    if (exact_border && (index < 0 || index >= from - 1)) {
      index = index < 0 ? 0 : from - 1;
      fraction = 0;
    }
    taps[static_cast<size_t>(i)] = {std::clamp<int64_t>(index, 0, from - 1),
                                    std::clamp<int64_t>(index + 1, 0, from - 1), fixed_point(1.0F - fraction),
                                    fixed_point(fraction)};
  }
  return taps;
}

// One source row, resized horizontally; elements carry 11 fraction bits.
void resize_row(const uint8_t* row, const std::vector<Tap>& taps, int64_t channels, std::vector<int>& out) {
  size_t at = 0;
  for (const Tap& tap : taps) {
    const uint8_t* a = row + tap.first * channels;
    const uint8_t* b = row + tap.second * channels;
    for (int64_t c = 0; c < channels; ++c) out[at++] = a[c] * tap.weight_first + b[c] * tap.weight_second;
  }
}

}  // namespace

Image resize(const Image& image, int64_t width, int64_t height) {
  if (image.width == width && image.height == height) return image;
  const auto columns = make_taps(image.width, width, true);
  const auto rows = make_taps(image.height, height, false);
  Image out{width, height, image.channels, std::vector<uint8_t>(static_cast<size_t>(width * height * image.channels))};
  const auto row_size = static_cast<size_t>(width * image.channels);
  std::vector<int> upper(row_size), lower(row_size);
  int64_t upper_row = -1, lower_row = -1;
  for (int64_t y = 0; y < height; ++y) {
    const Tap& tap = rows[static_cast<size_t>(y)];
    const auto source = [&](int64_t row) {
      return &image.pixels[static_cast<size_t>(row * image.width * image.channels)];
    };
    if (lower_row == tap.first && upper_row != tap.first) {  // the common step down: reuse the row
      std::swap(upper, lower);
      std::swap(upper_row, lower_row);
    }
    if (upper_row != tap.first) resize_row(source(upper_row = tap.first), columns, image.channels, upper);
    if (lower_row != tap.second) resize_row(source(lower_row = tap.second), columns, image.channels, lower);
    uint8_t* to = &out.pixels[static_cast<size_t>(y) * row_size];
    for (size_t i = 0; i < row_size; ++i) {
      const int a = (tap.weight_first * (upper[i] >> 4)) >> 16;
      const int b = (tap.weight_second * (lower[i] >> 4)) >> 16;
      to[i] = static_cast<uint8_t>((a + b + 2) >> 2);
    }
  }
  return out;
}

}  // namespace openrknn::io
