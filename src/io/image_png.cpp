#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "io/image_formats.hpp"

namespace openrknn::io {
namespace {

// libpng reports errors by jumping. Nothing with a destructor is created between setjmp and the calls that may jump.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const unsigned char* data = nullptr;
  size_t size = 0;
  size_t at = 0;
  char message[128] = {};
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& decoder = *static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(decoder.message, text, sizeof decoder.message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto& decoder = *static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > decoder.size - decoder.at) png_error(png, "the data are cut short");
  std::memcpy(to, decoder.data + decoder.at, count);
  decoder.at += count;
}

// Every kind of PNG becomes 8-bit RGB: 16 bits lose their low byte, palettes are looked up, alpha is dropped.
bool start(Decoder& d) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_set_read_fn(d.png, &d, read_bytes);
  png_read_info(d.png, d.info);
  const int color = png_get_color_type(d.png, d.info);
  const int depth = png_get_bit_depth(d.png, d.info);
  if (depth == 16) png_set_strip_16(d.png);
  // Transparent entries of a palette become an alpha channel as well.
  const bool transparent = png_get_valid(d.png, d.info, PNG_INFO_tRNS) != 0;
  if ((color & PNG_COLOR_MASK_ALPHA) != 0 || transparent) png_set_strip_alpha(d.png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(d.png);
  if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(d.png);
  if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(d.png);
  png_set_interlace_handling(d.png);
  png_read_update_info(d.png, d.info);
  return true;
}

bool read_rows(Decoder& d, png_bytepp rows) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_read_image(d.png, rows);
  png_read_end(d.png, nullptr);
  return true;
}

int orientation_of(const Decoder& d) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(d.png, d.info, &size, &exif) == 0) return 1;
  return exif_orientation({exif, size});
}

}  // namespace

Result<Decoded> decode_png(std::span<const std::byte> bytes, const std::string& name) {
  Decoder decoder;
  decoder.data = reinterpret_cast<const unsigned char*>(bytes.data());
  decoder.size = bytes.size();
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, on_error, on_warning);
  if (decoder.png == nullptr) return image_error(name, "libpng cannot start");
  struct Cleanup {
    Decoder& d;
    ~Cleanup() { png_destroy_read_struct(&d.png, &d.info, nullptr); }
  } cleanup{decoder};
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) return image_error(name, "libpng cannot start");
  if (!start(decoder)) return image_error(name, fmt::format("PNG: {}", decoder.message));
  Decoded decoded;
  decoded.image.width = png_get_image_width(decoder.png, decoder.info);
  decoded.image.height = png_get_image_height(decoder.png, decoder.info);
  OPENRKNN_CHECK_OK(check_extents(decoded.image.width, decoded.image.height, name));
  decoded.orientation = orientation_of(decoder);
  const size_t row_bytes = png_get_rowbytes(decoder.png, decoder.info);
  if (row_bytes != static_cast<size_t>(decoded.image.width) * 3)
    return image_error(name, "PNG: this combination of colour type and depth is not supported");
  decoded.image.pixels.resize(row_bytes * static_cast<size_t>(decoded.image.height));
  std::vector<png_bytep> rows(static_cast<size_t>(decoded.image.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = decoded.image.pixels.data() + y * row_bytes;
  if (!read_rows(decoder, rows.data())) return image_error(name, fmt::format("PNG: {}", decoder.message));
  return decoded;
}

}  // namespace openrknn::io
