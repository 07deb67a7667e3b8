// What a source model takes, before anything is bound: names, types and dims of its inputs.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/dtype.hpp"
#include "import/importer.hpp"

namespace openrknn::import {

struct InputSignature {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;  // -1: open
};

struct Signature {
  Format format = Format::kUnknown;
  std::vector<InputSignature> inputs;  // in the model's order; initializers are no inputs
};

Result<Signature> read_signature(const std::string& path);

}  // namespace openrknn::import
