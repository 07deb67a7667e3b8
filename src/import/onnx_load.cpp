#include "import/onnx_load.hpp"

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>

#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "import/importer.hpp"

namespace openrknn::import {
namespace {

constexpr const char* kCannotRead = "cannot read the model";

Error unreadable(ErrorCode code, const std::string& path, std::string why, std::string hint) {
  return Error{code, kCannotRead, path, std::move(why), std::move(hint)};
}

std::string_view text_of(std::span<const std::byte> bytes, size_t limit) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), limit)};
}

bool looks_like_web_page(std::string_view head) {
  const std::string start = to_lower(trim(head));
  return start.starts_with("<!doctype html") || start.starts_with("<html");
}

}  // namespace

Result<MappedFile> open_model_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status)) return unreadable(ErrorCode::kNotFound, path, "there is no such file", "check the path");
  if (fs::is_directory(status))
    return unreadable(ErrorCode::kIo, path, "this is a folder", "give the model file inside it");
  if (!fs::is_regular_file(status))
    return unreadable(ErrorCode::kIo, path, "this is not a regular file", "copy the model to a file");
  OPENRKNN_TRY(auto file, MappedFile::open(path));
  if (file.bytes().empty())
    return unreadable(ErrorCode::kFormat, path, "the file is empty", "download or export it again");
  const std::string_view head = text_of(file.bytes(), 512);
  if (head.starts_with("version https://git-lfs")) {
    return unreadable(ErrorCode::kFormat, path, "this is a Git LFS pointer, not the model itself",
                      "run 'git lfs pull' in its repository");
  }
  if (looks_like_web_page(head)) {
    return unreadable(ErrorCode::kFormat, path, "this is a web page (HTML), not a model",
                      "download the file itself, not the page that shows it");
  }
  return file;
}

Result<onnx::ModelProto> load_onnx(const std::string& path) {
  OPENRKNN_TRY(const auto file, open_model_file(path));
  const auto bytes = file.bytes();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return unreadable(ErrorCode::kUnsupported, path,
                      fmt::format("the file has {} bytes, protobuf files end at 2 GiB", bytes.size()),
                      "save the weights as external data");
  }
  onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  const bool parsed = model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (!parsed) {
    return unreadable(
        ErrorCode::kFormat, path,
        fmt::format("the {} bytes are not a complete ONNX model (damaged, cut short, or another format)", bytes.size()),
        "download or export it again");
  }
  if (!model.has_ir_version() && !model.has_graph()) {
    return unreadable(ErrorCode::kFormat, path, "the file has neither an IR version nor a graph: it is no ONNX model",
                      "give an ONNX file");
  }
  if (!model.has_graph() || model.graph().output_size() == 0) {
    return unreadable(ErrorCode::kFormat, path, "the model has no graph with outputs",
                      "the file may be cut short: download or export it again");
  }
  return model;
}

}  // namespace openrknn::import
