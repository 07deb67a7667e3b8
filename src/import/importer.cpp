#include "import/importer.hpp"

#include <string_view>

#include "import/onnx_load.hpp"

namespace openrknn::import {
namespace {

std::string_view format_name(Format format) {
  switch (format) {
    case Format::kOnnx:
      return "ONNX";
    case Format::kTflite:
      return "TFLite";
    case Format::kTensorflow:
      return "TensorFlow";
    case Format::kCaffe:
      return "Caffe";
    case Format::kDarknet:
      return "Darknet";
    case Format::kTorchscript:
      return "TorchScript";
    case Format::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace

Result<Imported> import_model(const std::string& path, const ImportOptions& options) {
  OPENRKNN_CHECK_OK([&]() -> Status {
    const auto file = open_model_file(path);
    return file.ok() ? Status{} : Status{file.error()};
  }());
  const Format format = detect_format(path);
  if (format == Format::kOnnx) return import_onnx(path, options);
  if (format == Format::kUnknown) {
    return Error{ErrorCode::kFormat, "cannot read the model", path,
                 "neither its content nor its name says which format it has", "give an ONNX model (.onnx)"};
  }
  return Error{ErrorCode::kUnsupported, "cannot read the model", path,
               std::string("this is a ") + std::string(format_name(format)) + " model, which has no importer yet",
               "export it as ONNX"};
}

}  // namespace openrknn::import
