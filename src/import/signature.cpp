#include "import/signature.hpp"

#include <set>

#include "import/onnx_load.hpp"
#include "import/onnx_tensor.hpp"

namespace openrknn::import {
namespace {

std::vector<InputSignature> onnx_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) initializers.insert(tensor.values().name());
  std::vector<InputSignature> inputs;
  for (const auto& info : graph.input()) {
    if (initializers.count(info.name()) != 0) continue;
    InputSignature input;
    input.name = info.name();
    const auto& type = info.type().tensor_type();
    if (const auto dtype = dtype_from_onnx(type.elem_type())) input.dtype = computed_dtype(*dtype);
    for (const auto& dim : type.shape().dim()) {
      // Older exporters write 0 or -1 for "any".
      input.dims.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

Result<Signature> read_signature(const std::string& path) {
  OPENRKNN_CHECK_OK(open_model_file(path));
  Signature signature;
  signature.format = detect_format(path);
  if (signature.format != Format::kOnnx && signature.format != Format::kUnknown) {
    // The importer says what is not there yet.
    OPENRKNN_TRY(const Imported imported, import_model(path, {}));
    for (const ValueId id : imported.graph.inputs()) {
      const Value& v = imported.graph.value(id);
      signature.inputs.push_back({v.name, v.dtype, v.shape ? v.shape->to_vector() : std::vector<int64_t>{}});
    }
    return signature;
  }
  OPENRKNN_TRY(const onnx::ModelProto model, load_onnx(path));
  signature.inputs = onnx_inputs(model.graph());
  return signature;
}

}  // namespace openrknn::import
