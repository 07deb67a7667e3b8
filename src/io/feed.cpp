#include "io/feed.hpp"

#include <fmt/core.h>

#include <cstring>
#include <string_view>

#include "base/file.hpp"
#include "base/text.hpp"
#include "io/image.hpp"
#include "io/npy.hpp"

namespace openrknn::io {
namespace {

Error feed_error(const std::string& path, const InputSpec& spec, std::string why, std::string hint) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("cannot feed input '{}'", spec.name), path, std::move(why),
               std::move(hint)};
}

std::string layout_name(const InputSpec& spec) {
  return spec.shape.rank() != 4 ? "" : spec.nhwc ? " (NHWC)" : " (NCHW)";
}

Result<Tensor> load_array(const std::string& path, const InputSpec& spec) {
  OPENRKNN_TRY(Tensor tensor, read_npy(path));
  if (!(tensor.shape() == spec.shape)) {
    return feed_error(
        path, spec,
        fmt::format("the file has {} of {}, the model takes {} of {}{}", tensor.shape().to_string(),
                    dtype_name(tensor.dtype()), spec.shape.to_string(), dtype_name(spec.dtype), layout_name(spec)),
        "save the array in the model's own shape and layout");
  }
  if (tensor.dtype() == spec.dtype) return tensor;
  Tensor converted = cast(tensor.view(), spec.dtype);
  if (tensor.dtype() == DType::kFloat64 && spec.dtype == DType::kFloat32) return converted;
  const Tensor back = cast(converted.view(), tensor.dtype());
  if (std::memcmp(back.data(), tensor.data(), tensor.bytes()) != 0) {
    return feed_error(path, spec,
                      fmt::format("its {} values do not fit {} without loss (shape {}{})", dtype_name(tensor.dtype()),
                                  dtype_name(spec.dtype), spec.shape.to_string(), layout_name(spec)),
                      fmt::format("save the array as {}", dtype_name(spec.dtype)));
  }
  return converted;
}

// Pixels [h][w][c] as one picture of the tensor: planes for NCHW, as they are for NHWC.
std::vector<uint8_t> laid_out(const Image& image, bool nhwc) {
  if (nhwc || image.channels == 1) return image.pixels;
  std::vector<uint8_t> planes(image.pixels.size());
  const auto channels = static_cast<size_t>(image.channels);
  const size_t area = planes.size() / channels;
  for (size_t i = 0; i < area; ++i) {
    for (size_t c = 0; c < channels; ++c) planes[c * area + i] = image.pixels[i * channels + c];
  }
  return planes;
}

Result<Tensor> load_picture(const std::string& path, const InputSpec& spec) {
  if (spec.shape.rank() != 4)
    return feed_error(path, spec,
                      fmt::format("a picture needs an input of 4 dimensions, it has shape {}", spec.shape.to_string()),
                      "give an .npy file");
  const int64_t channels = spec.shape[spec.nhwc ? 3 : 1];
  const int64_t height = spec.shape[spec.nhwc ? 1 : 2];
  const int64_t width = spec.shape[spec.nhwc ? 2 : 3];
  if (channels != 1 && channels != 3) {
    return feed_error(path, spec,
                      fmt::format("the input {}{} has {} channels, pictures give 1 or 3", spec.shape.to_string(),
                                  layout_name(spec), channels),
                      "give an .npy file");
  }
  const bool holds_bytes =
      is_float(spec.dtype) || (is_integer(spec.dtype) && dtype_size(spec.dtype) > 1) || spec.dtype == DType::kUInt8;
  if (!holds_bytes)
    return feed_error(path, spec, fmt::format("values 0..255 of a picture do not fit {}", dtype_name(spec.dtype)),
                      "give an .npy file");
  if (height <= 0 || width <= 0)
    return feed_error(path, spec, fmt::format("the input's shape {} is empty", spec.shape.to_string()), "");
  OPENRKNN_TRY(Image image, read_image(path));
  if (channels == 1) image = to_grey(image);
  image = resize(image, width, height);
  if (spec.bgr) image = swap_red_blue(image);
  const auto pixels = laid_out(image, spec.nhwc);
  OPENRKNN_TRY(Tensor bytes, Tensor::make(DType::kUInt8, spec.shape));
  auto* to = static_cast<uint8_t*>(bytes.mutable_data());
  for (int64_t n = 0; n < spec.shape[0]; ++n)
    std::memcpy(to + static_cast<size_t>(n) * pixels.size(), pixels.data(), pixels.size());
  return spec.dtype == DType::kUInt8 ? bytes : cast(bytes.view(), spec.dtype);
}

}  // namespace

Result<Tensor> load_input(const std::string& path, const InputSpec& spec) {
  if (looks_like_image(path)) return load_picture(path, spec);
  if (to_lower(path).ends_with(".npy")) return load_array(path, spec);
  // Names say nothing: the content decides.
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 6));
  return head == "\x93NUMPY" ? load_array(path, spec) : load_picture(path, spec);
}

}  // namespace openrknn::io
