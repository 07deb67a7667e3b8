#include "io/image.hpp"

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace openrknn::io {
namespace {

Result<Image> parse(const std::string& bytes) {
  return parse_image(std::as_bytes(std::span(bytes.data(), bytes.size())), "test picture");
}

Image pattern(int64_t width, int64_t height) {
  Image image{width, height, 3, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>((i * 37 + (i * i) % 251) & 255);
  return image;
}

uint64_t fnv(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3ULL;
  return hash;
}

std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

// A BMP of given depth; rows are given as they lie in the file, without padding.
std::string bmp(int32_t width, int32_t height, int bits, const std::string& palette,
                const std::vector<std::string>& rows, uint32_t compression = 0) {
  std::string data;
  for (const auto& row : rows) data += row + std::string((4 - row.size() % 4) % 4, '\0');
  const auto offset = static_cast<uint32_t>(54 + palette.size());
  const uint32_t colours = bits <= 8 ? static_cast<uint32_t>(palette.size() / 4) : 0;
  return "BM" + little(offset + data.size(), 4) + little(0, 4) + little(offset, 4) + little(40, 4) +
         little(static_cast<uint32_t>(width), 4) + little(static_cast<uint32_t>(height), 4) + little(1, 2) +
         little(static_cast<uint64_t>(bits), 2) + little(compression, 4) + little(0, 4) + little(0, 8) +
         little(colours, 4) + little(0, 4) + palette + data;
}

std::string jpeg(const Image& image, const std::string& exif = "") {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  for (int64_t y = 0; y < image.height; ++y) {
    auto* row = const_cast<uint8_t*>(&image.pixels[static_cast<size_t>(y * image.width * 3)]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(data), size);
  jpeg_destroy_compress(&info);
  std::free(data);
  return bytes;
}

std::string png(const void* pixels, uint32_t width, uint32_t height, uint32_t format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr);
  bytes.resize(size);
  return bytes;
}

std::string exif_with_orientation(int value, bool little_endian) {
  if (little_endian)
    return std::string("Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0", 24) + static_cast<char>(value) +
           std::string(7, '\0');
  return std::string("Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0", 25) + static_cast<char>(value) +
         std::string(6, '\0');
}

TEST(Bmp, ReadsEveryDepth) {
  const std::string palette = std::string("\x30\x20\x10\0\x60\x50\x40\0", 8);  // blue, green, red
  const std::vector<uint8_t> expected{0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x40, 0x50, 0x60, 0x10, 0x20, 0x30};
  // Rows go from the bottom up.
  for (const auto& [bits, rows] : std::vector<std::pair<int, std::vector<std::string>>>{
           {1, {"\x80", "\x40"}}, {4, {"\x10", "\x01"}}, {8, {std::string("\1\0", 2), std::string("\0\1", 2)}}}) {
    const auto image = parse(bmp(2, 2, bits, palette, rows));
    ASSERT_TRUE(image.ok()) << image.error().message();
    EXPECT_EQ(image->pixels, expected) << bits;
  }
  const auto full = parse(bmp(2, -2, 24, "", {"\x30\x20\x10\x60\x50\x40", "\x60\x50\x40\x30\x20\x10"}));  // top down
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->pixels, expected);
  const auto wide = parse(bmp(1, 1, 32, "", {std::string("\x30\x20\x10\0", 4)}));
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(wide->pixels, (std::vector<uint8_t>{0x10, 0x20, 0x30}));
  const auto packed = parse(bmp(2, 1, 16, "", {little(0x7C00, 2) + little(0x03E0, 2)}));
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->pixels, (std::vector<uint8_t>{255, 0, 0, 0, 255, 0}));
}

TEST(Bmp, RefusesWhatItCannotRead) {
  const std::string good = bmp(3, 2, 24, "", {std::string(9, 'a'), std::string(9, 'b')});
  ASSERT_TRUE(parse(good).ok());
  for (size_t length = 0; length + 3 < good.size(); ++length)
    EXPECT_FALSE(parse(good.substr(0, length)).ok()) << length;
  EXPECT_FALSE(parse(bmp(3, 2, 24, "", {"", ""}, 1)).ok());                // run length encoding
  EXPECT_FALSE(parse(bmp(0x7FFFFFFF, 0x7FFFFFFF, 24, "", {"abc"})).ok());  // more than the limit
  EXPECT_FALSE(parse(bmp(0, 1, 24, "", {})).ok());
  EXPECT_FALSE(parse(bmp(1, 1, 7, "", {"abc"})).ok());
}

TEST(Png, ReadsEveryKind) {
  const Image image = pattern(5, 4);
  const auto rgb = parse(png(image.pixels.data(), 5, 4, PNG_FORMAT_RGB));
  ASSERT_TRUE(rgb.ok()) << rgb.error().message();
  EXPECT_EQ(rgb->pixels, image.pixels);
  std::vector<uint8_t> rgba;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    rgba.insert(rgba.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(i),
                image.pixels.begin() + static_cast<std::ptrdiff_t>(i) + 3);
    rgba.push_back(static_cast<uint8_t>(i));
  }
  const auto with_alpha = parse(png(rgba.data(), 5, 4, PNG_FORMAT_RGBA));
  ASSERT_TRUE(with_alpha.ok());
  EXPECT_EQ(with_alpha->pixels, image.pixels);
  const std::vector<uint8_t> grey{1, 2, 3, 4};
  const auto repeated = parse(png(grey.data(), 2, 2, PNG_FORMAT_GRAY));
  ASSERT_TRUE(repeated.ok());
  EXPECT_EQ(repeated->pixels, (std::vector<uint8_t>{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
}

TEST(Png, TransparentPalettesLoseTheirAlpha) {
  const std::vector<uint8_t> colours{255, 0, 0, 255, 0, 128, 255, 100}, indices{1, 0};
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 2;
  image.height = 1;
  image.format = PNG_FORMAT_RGBA_COLORMAP;
  image.colormap_entries = 2;
  std::string bytes(4096, '\0');
  png_alloc_size_t size = bytes.size();
  ASSERT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0, indices.data(), 0, colours.data()), 0);
  bytes.resize(size);
  const auto read = parse(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->pixels, (std::vector<uint8_t>{0, 128, 255, 255, 0, 0}));
}

TEST(Png, RefusesDamagedFiles) {
  const std::string good = png(pattern(9, 7).pixels.data(), 9, 7, PNG_FORMAT_RGB);
  for (size_t length = 0; length + 12 < good.size(); ++length)
    EXPECT_FALSE(parse(good.substr(0, length)).ok()) << length;
  for (size_t i = 8; i < good.size(); ++i) {  // any answer will do, but an answer
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    (void)parse(damaged).ok();
  }
}

TEST(Jpeg, AppliesOrientation) {
  // Four flat quarters survive compression: red, green / blue, white.
  Image image{16, 32, 3, std::vector<uint8_t>(16 * 32 * 3)};
  const auto quarter = [](int64_t x, int64_t y) { return (y >= 16 ? 2 : 0) + (x >= 8 ? 1 : 0); };
  const uint8_t colours[4][3] = {{250, 0, 0}, {0, 250, 0}, {0, 0, 250}, {250, 250, 250}};
  for (int64_t y = 0; y < 32; ++y) {
    for (int64_t x = 0; x < 16; ++x)
      std::copy(colours[quarter(x, y)], colours[quarter(x, y)] + 3, &image.pixels[static_cast<size_t>(y * 16 + x) * 3]);
  }
  // Which quarter is shown at top left, top right, bottom left, bottom right.
  const int expected[9][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                              {0, 2, 1, 3}, {2, 0, 3, 1}, {3, 1, 2, 0}, {1, 3, 0, 2}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little_endian : {true, false}) {
      const auto upright = parse(jpeg(image, exif_with_orientation(orientation, little_endian)));
      ASSERT_TRUE(upright.ok()) << upright.error().message();
      EXPECT_EQ(upright->width, orientation < 5 ? 16 : 32);
      EXPECT_EQ(upright->height, orientation < 5 ? 32 : 16);
      for (int corner = 0; corner < 4; ++corner) {
        const int64_t x = corner % 2 == 0 ? 1 : upright->width - 2;
        const int64_t y = corner < 2 ? 1 : upright->height - 2;
        const uint8_t* p = &upright->pixels[static_cast<size_t>(y * upright->width + x) * 3];
        const uint8_t* wanted = colours[expected[orientation][corner]];
        for (int c = 0; c < 3; ++c)
          EXPECT_NEAR(p[c], wanted[c], 6) << "orientation " << orientation << " corner " << corner;
      }
    }
  }
}

TEST(Jpeg, RefusesDamagedFiles) {
  const std::string good = jpeg(pattern(24, 16), exif_with_orientation(6, true));
  ASSERT_TRUE(parse(good).ok());
  for (size_t length = 0; length + 2 < good.size(); ++length)
    EXPECT_FALSE(parse(good.substr(0, length)).ok()) << length;
  for (size_t i = 2; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xAA);
    (void)parse(damaged).ok();
  }
}

TEST(Image, RefusesOtherContent) {
  for (const char* bytes : {"", "x", "GIF89a", "\xFF\xD8", "BM"}) {
    const auto image = parse(bytes);
    ASSERT_FALSE(image.ok());
    EXPECT_NE(image.error().message().find("test picture"), std::string::npos);
  }
}

TEST(Resize, EqualsOpenCv) {
  // FNV-1a of cv2.resize(pattern, (w, h)) by opencv-python-headless 5.0.0.
  struct Case {
    int64_t width, height;
    uint64_t hash;
  };
  for (const Case& c : std::vector<Case>{{7, 5, 0x4b47d020f2226103ULL},
                                         {31, 17, 0x5b683432bffd5969ULL},
                                         {26, 18, 0x585730b00f63d1aeULL},
                                         {13, 4, 0x01da9ef0495e88fcULL},
                                         {1, 1, 0x6aa9611c24a6f192ULL}}) {
    const Image out = resize(pattern(13, 9), c.width, c.height);
    EXPECT_EQ(out.width, c.width);
    EXPECT_EQ(out.height, c.height);
    EXPECT_EQ(fnv(out.pixels), c.hash) << c.width << "x" << c.height;
  }
  EXPECT_EQ(resize(pattern(13, 9), 13, 9).pixels, pattern(13, 9).pixels);
}

TEST(Image, GreyEqualsOpenCv) {
  EXPECT_EQ(fnv(to_grey(pattern(13, 9)).pixels), 0x5d2093040c98867ULL);  // cv2.cvtColor RGB2GRAY
  const Image white{2, 1, 3, {255, 255, 255, 7, 7, 7}};
  EXPECT_EQ(to_grey(white).pixels, (std::vector<uint8_t>{255, 7}));
}

TEST(Image, SwapsRedAndBlue) {
  EXPECT_EQ(swap_red_blue(Image{1, 1, 3, {1, 2, 3}}).pixels, (std::vector<uint8_t>{3, 2, 1}));
}

TEST(Image, KnowsItsSuffixes) {
  EXPECT_TRUE(looks_like_image("a/B.JPG"));
  EXPECT_TRUE(looks_like_image("x.jpeg"));
  EXPECT_FALSE(looks_like_image("x.npy"));
  EXPECT_FALSE(looks_like_image("jpg"));
}

}  // namespace
}  // namespace openrknn::io
