// From a file to a parsed ModelProto, with every way of not being an ONNX file told apart.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "onnx.pb.h"

namespace openrknn::import {

// Maps a model file. Errors: not there, a folder, empty, a Git LFS pointer instead of the model, a web page.
Result<MappedFile> open_model_file(const std::string& path);
// Refuses files that are not ONNX, files cut short, and models without a graph.
Result<onnx::ModelProto> load_onnx(const std::string& path);

}  // namespace openrknn::import
