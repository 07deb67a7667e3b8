// Any bytes as a picture: an error, or as many pixels as it says.
#include "fuzz/target.hpp"
#include "io/image.hpp"

using namespace openrknn;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto image = io::parse_image(fuzz::bytes(data, size), "input");
  if (!image.ok()) return 0;
  if (static_cast<int64_t>(image->pixels.size()) != image->width * image->height * image->channels) {
    fuzz::fail("another number of pixels than the picture says");
  }
  const io::Image tiny = io::resize(*image, 5, 3);
  if (tiny.pixels.size() != 5U * 3U * static_cast<size_t>(image->channels)) fuzz::fail("resized to another size");
  return 0;
}
