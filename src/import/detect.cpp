#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "import/importer.hpp"
#include "import/onnx_load.hpp"

namespace openrknn::import {
namespace {

struct Suffix {
  std::string_view text;
  Format format;
};
constexpr std::array<Suffix, 12> kSuffixes{{{".onnx", Format::kOnnx},
                                            {".tflite", Format::kTflite},
                                            {".lite", Format::kTflite},
                                            {".pb", Format::kTensorflow},
                                            {".pbtxt", Format::kTensorflow},
                                            {".prototxt", Format::kCaffe},
                                            {".caffemodel", Format::kCaffe},
                                            {".cfg", Format::kDarknet},
                                            {".weights", Format::kDarknet},
                                            {".pt", Format::kTorchscript},
                                            {".pth", Format::kTorchscript},
                                            {".torchscript", Format::kTorchscript}}};

Format format_from_name(const std::string& path) {
  const std::string lowered = to_lower(path);
  for (const Suffix& suffix : kSuffixes) {
    if (lowered.ends_with(suffix.text)) return suffix.format;
  }
  return Format::kUnknown;
}

// An ONNX file usually starts with its IR version: field 1 as a one-byte varint, then another field of ModelProto.
bool starts_like_onnx(std::string_view head) {
  if (head.size() < 4 || head[0] != 0x08 || head[1] < 1 || head[1] > 0x20) return false;
  constexpr std::string_view kNextTags = "\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca";
  return kNextTags.find(head[2]) != std::string_view::npos;
}

Format format_from_text(std::string_view head) {
  const std::string_view start = trim(head);
  if (start.starts_with("[net]") || start.starts_with("[network]")) return Format::kDarknet;
  const bool has_layer =
      head.find("layer {") != std::string_view::npos || head.find("layers {") != std::string_view::npos ||
      head.find("input_dim:") != std::string_view::npos || head.find("layer{") != std::string_view::npos;
  return has_layer ? Format::kCaffe : Format::kUnknown;
}

}  // namespace

Format detect_format(const std::string& path) {
  const auto file = open_model_file(path);
  if (!file.ok()) return Format::kUnknown;
  const auto bytes = file->bytes();
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4096));
  if (head.size() >= 8 && head.substr(4, 4) == "TFL3") return Format::kTflite;
  if (head.starts_with("PK\x03\x04")) return Format::kTorchscript;
  if (starts_like_onnx(head)) return Format::kOnnx;
  const Format text = format_from_text(head);
  return text != Format::kUnknown ? text : format_from_name(path);
}

}  // namespace openrknn::import
