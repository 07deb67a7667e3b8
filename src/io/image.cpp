#include "io/image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "io/image_formats.hpp"

namespace openrknn::io {

Error image_error(const std::string& name, std::string why) {
  return Error{ErrorCode::kFormat, "cannot read the picture", name, std::move(why), "give a JPEG, PNG or BMP file"};
}

Status check_extents(int64_t width, int64_t height, const std::string& name) {
  if (width <= 0 || height <= 0) return image_error(name, fmt::format("it is {} x {} pixels", width, height));
  if (width > kMostPixels / height)
    return image_error(name, fmt::format("{} x {} pixels are more than the limit of {}", width, height, kMostPixels));
  return {};
}

int exif_orientation(std::span<const unsigned char> tiff) {
  constexpr unsigned kOrientationTag = 0x0112;
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  if (!little && !(tiff[0] == 'M' && tiff[1] == 'M')) return 1;
  const auto u16 = [&](size_t at) { return little ? tiff[at] | (tiff[at + 1] << 8) : (tiff[at] << 8) | tiff[at + 1]; };
  const auto u32 = [&](size_t at) {
    const auto low = static_cast<size_t>(u16(little ? at : at + 2));
    const auto high = static_cast<size_t>(u16(little ? at + 2 : at));
    return low | (high << 16);
  };
  const size_t directory = u32(4);
  if (directory > tiff.size() - 2) return 1;
  const auto entries = static_cast<size_t>(u16(directory));
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return 1;
    if (static_cast<unsigned>(u16(entry)) != kOrientationTag) continue;
    const int value = u16(entry + 8);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

namespace {

// EXIF orientation as a source position: which corner row 0 and column 0 of the upright picture come from.
struct Turn {
  bool transpose, flip_x, flip_y;
};
constexpr std::array<Turn, 9> kTurns{{{false, false, false},
                                      {false, false, false},
                                      {false, true, false},
                                      {false, true, true},
                                      {false, false, true},
                                      {true, false, false},
                                      {true, false, true},
                                      {true, true, true},
                                      {true, true, false}}};

}  // namespace

Image orient(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const Turn turn = kTurns[static_cast<size_t>(orientation)];
  Image out;
  out.channels = image.channels;
  out.width = turn.transpose ? image.height : image.width;
  out.height = turn.transpose ? image.width : image.height;
  out.pixels.resize(image.pixels.size());
  const auto channels = static_cast<size_t>(image.channels);
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t sx = turn.transpose ? y : x;
      int64_t sy = turn.transpose ? x : y;
      if (turn.flip_x) sx = image.width - 1 - sx;
      if (turn.flip_y) sy = image.height - 1 - sy;
      const auto* from = &image.pixels[static_cast<size_t>(sy * image.width + sx) * channels];
      std::copy(from, from + channels, &out.pixels[static_cast<size_t>(y * out.width + x) * channels]);
    }
  }
  return out;
}

Result<Image> parse_image(std::span<const std::byte> bytes, const std::string& name) {
  const auto is = [&](std::initializer_list<int> magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin(),
                                                      [](int a, std::byte b) { return a == static_cast<int>(b); });
  };
  if (bytes.empty()) return image_error(name, "the file is empty");
  std::optional<Result<Decoded>> decoded;
  if (is({0xFF, 0xD8, 0xFF})) decoded = decode_jpeg(bytes, name);
  if (is({0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) decoded = decode_png(bytes, name);
  if (is({'B', 'M'})) decoded = decode_bmp(bytes, name);
  if (!decoded) return image_error(name, "its content is neither JPEG nor PNG nor BMP");
  if (!decoded->ok()) return decoded->error();
  return orient(std::move((*decoded)->image), (*decoded)->orientation);
}

Result<Image> read_image(const std::string& path) {
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  return parse_image(file.bytes(), path);
}

Image to_grey(const Image& image) {
  if (image.channels == 1) return image;
  Image grey{image.width, image.height, 1, std::vector<uint8_t>(static_cast<size_t>(image.width * image.height))};
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const uint8_t* p = &image.pixels[3 * i];
    grey.pixels[i] = static_cast<uint8_t>((4899 * p[0] + 9617 * p[1] + 1868 * p[2] + 8192) >> 14);
  }
  return grey;
}

Image swap_red_blue(const Image& image) {
  Image swapped = image;
  for (size_t i = 0; swapped.channels == 3 && i + 2 < swapped.pixels.size(); i += 3)
    std::swap(swapped.pixels[i], swapped.pixels[i + 2]);
  return swapped;
}

bool looks_like_image(std::string_view path) {
  const std::string lowered = to_lower(path);
  constexpr std::array<std::string_view, 4> kSuffixes{".jpg", ".jpeg", ".png", ".bmp"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(), [&](std::string_view s) { return lowered.ends_with(s); });
}

}  // namespace openrknn::io
