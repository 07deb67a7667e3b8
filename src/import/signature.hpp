// What a source model says of itself, before anything is bound or understood: names, types and dims of its inputs and
// outputs, counts of its operators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/dtype.hpp"
#include "import/importer.hpp"

namespace openrknn::import {

struct PortSignature {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;  // -1: open
};

struct Signature {
  Format format = Format::kUnknown;
  std::vector<PortSignature> inputs;  // in the model's order; initializers are no inputs
  std::vector<PortSignature> outputs;
  int64_t opset = 0;
  // Operator -> count, as in the file; one of another domain than ONNX's own is "domain.Operator".
  std::map<std::string, int64_t> nodes;
  int64_t parameters = 0;  // elements of the floating-point initializers
};

Result<Signature> read_signature(const std::string& path);

}  // namespace openrknn::import
