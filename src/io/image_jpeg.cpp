#include <fmt/core.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <vector>

// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>
// jerror.h needs jpeglib.h before it.
#include <jerror.h>

#include "io/image_formats.hpp"

namespace openrknn::io {
namespace {

// libjpeg reports errors by a function that must not return: it jumps back into the function that set `back`. Nothing
// with a destructor is created between setjmp and the calls that may jump.
struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = {};
  bool cut_short = false;
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  info->err->format_message(info, decoder.message);
  std::longjmp(decoder.back, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER))
    decoder_of(info).cut_short = true;
}

void ignore_text(j_common_ptr) {}

bool start(Decoder& d, const unsigned char* data, size_t size) {
  if (setjmp(d.back) != 0) return false;
  d.info.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = on_error;
  d.errors.emit_message = on_message;
  d.errors.output_message = ignore_text;
  d.info.client_data = &d;
  jpeg_create_decompress(&d.info);
  d.info.client_data = &d;
  jpeg_mem_src(&d.info, data, size);
  jpeg_save_markers(&d.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&d.info, TRUE);
  const bool four = d.info.jpeg_color_space == JCS_CMYK || d.info.jpeg_color_space == JCS_YCCK;
  d.info.out_color_space = four ? JCS_CMYK : JCS_RGB;
  return true;
}

bool read_rows(Decoder& d, unsigned char* pixels, size_t row_bytes) {
  if (setjmp(d.back) != 0) return false;
  jpeg_start_decompress(&d.info);
  while (d.info.output_scanline < d.info.output_height) {
    JSAMPROW row = pixels + row_bytes * d.info.output_scanline;
    jpeg_read_scanlines(&d.info, &row, 1);
  }
  jpeg_finish_decompress(&d.info);
  return true;
}

int orientation_of(const Decoder& d) {
  for (auto* marker = d.info.marker_list; marker != nullptr; marker = marker->next) {
    const std::span<const unsigned char> data(marker->data, marker->data_length);
    const bool is_exif =
        data.size() > 6 && data[0] == 'E' && data[1] == 'x' && data[2] == 'i' && data[3] == 'f' && data[4] == 0;
    if (is_exif) return exif_orientation(data.subspan(6));
  }
  return 1;
}

// Files store CMYK inverted, as Adobe does: white is 255 everywhere.
std::vector<uint8_t> rgb_of_cmyk(const std::vector<uint8_t>& cmyk) {
  std::vector<uint8_t> rgb(cmyk.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const int k = cmyk[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<uint8_t>(k - (((255 - cmyk[4 * i + c]) * k) >> 8));
  }
  return rgb;
}

}  // namespace

Result<Decoded> decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  Decoder decoder;
  struct Cleanup {
    Decoder& d;
    ~Cleanup() {
      if (d.info.err != nullptr) jpeg_destroy_decompress(&d.info);
    }
  } cleanup{decoder};
  if (!start(decoder, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    return image_error(name, fmt::format("JPEG: {}", decoder.message));
  Decoded decoded;
  decoded.image.width = decoder.info.image_width;
  decoded.image.height = decoder.info.image_height;
  OPENRKNN_CHECK_OK(check_extents(decoded.image.width, decoded.image.height, name));
  decoded.orientation = orientation_of(decoder);
  const bool four = decoder.info.out_color_space == JCS_CMYK;
  const size_t row_bytes = static_cast<size_t>(decoded.image.width) * (four ? 4 : 3);
  decoded.image.pixels.resize(row_bytes * static_cast<size_t>(decoded.image.height));
  if (!read_rows(decoder, decoded.image.pixels.data(), row_bytes))
    return image_error(name, fmt::format("JPEG: {}", decoder.message));
  if (decoder.cut_short) return image_error(name, "the JPEG data are cut short or damaged");
  if (four) decoded.image.pixels = rgb_of_cmyk(decoded.image.pixels);
  return decoded;
}

}  // namespace openrknn::io
