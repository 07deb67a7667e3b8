// One decoder a format, and what they share.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "io/image.hpp"

namespace openrknn::io {

// Limit on width * height: a small hostile file must not ask for gigabytes.
constexpr int64_t kMostPixels = int64_t{1} << 28;

Error image_error(const std::string& name, std::string why);
// Error for an empty picture or one beyond the limit; `format` for the message.
Status check_extents(int64_t width, int64_t height, const std::string& name);

// 3 channels, RGB, as stored; `orientation` is EXIF's (1 to 8).
struct Decoded {
  Image image;
  int orientation = 1;
};
Result<Decoded> decode_jpeg(std::span<const std::byte> bytes, const std::string& name);
Result<Decoded> decode_png(std::span<const std::byte> bytes, const std::string& name);
Result<Decoded> decode_bmp(std::span<const std::byte> bytes, const std::string& name);

// The orientation entry of a TIFF block, as EXIF stores it; 1 when there is none or the block is damaged.
int exif_orientation(std::span<const unsigned char> tiff);
Image orient(Image image, int orientation);

}  // namespace openrknn::io
