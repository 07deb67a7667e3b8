// Source models to Graphs. One file per framework behind this header.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "ir/graph.hpp"

namespace openrknn::import {

constexpr int64_t kDefaultUnrolledNodes = 20'000;

struct ImportOptions {
  // Shapes of inputs, by name: binds open dimensions; a name that is an inner tensor cuts the graph there.
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
  std::map<std::string, Tensor, std::less<>> input_values;  // inputs that become constants
  bool allow_empty = false;                                 // `inputs` may give extents of 0
  std::vector<std::string> outputs;                         // cut here; empty: the model's own
  // Loop and Scan are written out, iteration by iteration, into at most so many nodes.
  int64_t max_unrolled_nodes = kDefaultUnrolledNodes;
  // Limit on one tensor and on all constants together, bytes: a small hostile file must not ask for more.
  int64_t memory_budget = openrknn::memory_budget();
};

enum class Format { kOnnx, kTflite, kTensorflow, kCaffe, kDarknet, kTorchscript, kUnknown };

struct Imported {
  Graph graph;  // shapes inferred, shape arithmetic folded, ops::verify passes
  Format format = Format::kUnknown;
  int64_t opset = 0;                  // of ONNX's own domain
  std::vector<std::string> warnings;  // non-finite weights, ...
  // Outputs that the file declares as float16 or float64 but that are computed in float32: what a golden run gives them
  // back as. (bfloat16 stays float32: numpy has no such type.)
  std::map<std::string, DType, std::less<>> declared_outputs;
};

Format detect_format(const std::string& path);
// Finds the format from the content, then the name. Everything that cannot be imported is reported at once.
Result<Imported> import_model(const std::string& path, const ImportOptions& options);
Result<Imported> import_onnx(const std::string& path, const ImportOptions& options);

}  // namespace openrknn::import
