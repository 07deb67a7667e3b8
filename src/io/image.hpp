// Pictures: JPEG (libjpeg-turbo), PNG (libpng), BMP, found by content. Pixels are RGB, 8 bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace openrknn::io {

struct Image {
  int64_t width = 0, height = 0;
  int64_t channels = 3;         // 3 (RGB) or 1 (grey)
  std::vector<uint8_t> pixels;  // [height][width][channels]
};

// Always 3 channels, RGB; alpha is dropped, grey is repeated, EXIF orientation applied. Errors name the file and the
// reason.
Result<Image> read_image(const std::string& path);
Result<Image> parse_image(std::span<const std::byte> bytes, const std::string& name);
// Bilinear, bit-equal to cv2.resize INTER_LINEAR (11-bit coefficients).
Image resize(const Image& image, int64_t width, int64_t height);
// Grey by luma, as cv2.cvtColor RGB2GRAY: (4899 R + 9617 G + 1868 B + 8192) >> 14.
Image to_grey(const Image& image);
Image swap_red_blue(const Image& image);
bool looks_like_image(std::string_view path);  // by extension: jpg, jpeg, png, bmp

}  // namespace openrknn::io
