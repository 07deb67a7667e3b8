// BMP: uncompressed, 1 to 32 bits a pixel, with or without colour masks, either row order.
#include <fmt/core.h>

#include <array>
#include <bit>
#include <vector>

#include "base/checked.hpp"
#include "io/image_formats.hpp"

namespace openrknn::io {
namespace {

constexpr uint32_t kRgb = 0;
constexpr uint32_t kBitFields = 3;
constexpr uint32_t kAlphaBitFields = 6;

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  uint32_t u8(size_t at) const { return at < bytes_.size() ? static_cast<uint32_t>(bytes_[at]) : 0; }
  uint32_t u16(size_t at) const { return u8(at) | (u8(at + 1) << 8); }
  uint32_t u32(size_t at) const { return u16(at) | (u16(at + 2) << 16); }

 private:
  std::span<const std::byte> bytes_;
};

struct Header {
  size_t pixels_at = 0;
  size_t palette_at = 0;
  size_t palette_entry = 4;  // bytes
  size_t palette_count = 0;
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0;
  std::array<uint32_t, 3> masks{};  // red, green, blue
};

Result<Header> read_header(const Bytes& bytes, const std::string& name) {
  Header h;
  if (bytes.size() < 26) return image_error(name, "the BMP header is cut short");
  h.pixels_at = bytes.u32(10);
  const size_t info = bytes.u32(14);
  uint32_t compression = kRgb;
  uint32_t colours = 0;
  if (info == 12) {  // OS/2
    h.width = static_cast<int64_t>(bytes.u16(18));
    h.height = static_cast<int64_t>(bytes.u16(20));
    h.bits = bytes.u16(24);
    h.palette_entry = 3;
  } else if (info >= 40 && info <= 256 && bytes.size() >= 14 + info) {
    h.width = static_cast<int32_t>(bytes.u32(18));
    h.height = static_cast<int32_t>(bytes.u32(22));
    h.bits = bytes.u16(28);
    compression = bytes.u32(30);
    colours = bytes.u32(46);
  } else {
    return image_error(name, fmt::format("a BMP header of {} bytes is not known", info));
  }
  h.top_down = h.height < 0;
  if (h.top_down) h.height = -h.height;
  OPENRKNN_CHECK_OK(check_extents(h.width, h.height, name));
  h.palette_at = 14 + info;
  if (h.bits == 16) h.masks = {0x7C00, 0x03E0, 0x001F};
  if (h.bits == 32) h.masks = {0xFF0000, 0x00FF00, 0x0000FF};
  if ((compression == kBitFields || compression == kAlphaBitFields) && (h.bits == 16 || h.bits == 32)) {
    h.masks = {bytes.u32(54), bytes.u32(58), bytes.u32(62)};
  } else if (compression != kRgb) {
    return image_error(name, fmt::format("BMP compression {} is not supported", compression));
  }
  if (h.bits != 1 && h.bits != 4 && h.bits != 8 && h.bits != 16 && h.bits != 24 && h.bits != 32)
    return image_error(name, fmt::format("BMP with {} bits a pixel is not supported", h.bits));
  if (h.bits <= 8)
    h.palette_count = colours == 0 ? size_t{1} << h.bits : std::min<size_t>(colours, size_t{1} << h.bits);
  return h;
}

// The bits under a mask, stretched to 8.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift;
  return static_cast<uint8_t>(((pixel & mask) >> shift) * uint64_t{255} / most);
}

void read_pixel(const Bytes& bytes, const Header& h, size_t row_at, size_t x, uint8_t* rgb) {
  if (h.bits <= 8) {
    const size_t bit = x * h.bits;
    const uint32_t byte = bytes.u8(row_at + bit / 8);
    const uint32_t index = (byte >> (8 - h.bits - bit % 8)) & ((1U << h.bits) - 1U);
    if (index >= h.palette_count) return;  // black
    const size_t entry = h.palette_at + index * h.palette_entry;
    for (size_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(bytes.u8(entry + 2 - c));
  } else if (h.bits == 24) {
    for (size_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(bytes.u8(row_at + 3 * x + 2 - c));
  } else {
    const uint32_t pixel = h.bits == 16 ? bytes.u16(row_at + 2 * x) : bytes.u32(row_at + 4 * x);
    for (size_t c = 0; c < 3; ++c) rgb[c] = masked(pixel, h.masks[c]);
  }
}

}  // namespace

Result<Decoded> decode_bmp(std::span<const std::byte> data, const std::string& name) {
  const Bytes bytes(data);
  OPENRKNN_TRY(const Header h, read_header(bytes, name));
  const int64_t stride = align_up(ceil_div(h.width * static_cast<int64_t>(h.bits), 8), 4);
  const int64_t needed = stride * h.height;
  // The last row may lack its padding.
  const int64_t least = needed - stride + ceil_div(h.width * static_cast<int64_t>(h.bits), 8);
  if (h.pixels_at > bytes.size() || least > static_cast<int64_t>(bytes.size() - h.pixels_at)) {
    return image_error(name, fmt::format("{} x {} pixels of {} bits need {} bytes, the file has fewer: it is cut short",
                                         h.width, h.height, h.bits, least));
  }
  Decoded decoded;
  decoded.image = {h.width, h.height, 3, std::vector<uint8_t>(static_cast<size_t>(h.width * h.height * 3))};
  for (int64_t y = 0; y < h.height; ++y) {
    const int64_t row = h.top_down ? y : h.height - 1 - y;
    const size_t row_at = h.pixels_at + static_cast<size_t>(row * stride);
    for (int64_t x = 0; x < h.width; ++x) {
      read_pixel(bytes, h, row_at, static_cast<size_t>(x),
                 &decoded.image.pixels[static_cast<size_t>(y * h.width + x) * 3]);
    }
  }
  return decoded;
}

}  // namespace openrknn::io
