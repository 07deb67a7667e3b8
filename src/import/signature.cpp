#include "import/signature.hpp"

#include <set>

#include "import/onnx_load.hpp"
#include "import/onnx_tensor.hpp"

namespace openrknn::import {
namespace {

PortSignature port_of(const onnx::ValueInfoProto& info) {
  PortSignature port;
  port.name = info.name();
  const auto& type = info.type().tensor_type();
  if (const auto dtype = dtype_from_onnx(type.elem_type())) port.dtype = computed_dtype(*dtype);
  for (const auto& dim : type.shape().dim()) {
    // Older exporters write 0 or -1 for "any".
    port.dims.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
  }
  return port;
}

void read_ports(const onnx::GraphProto& graph, Signature& signature) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) initializers.insert(tensor.values().name());
  for (const auto& info : graph.input()) {
    if (initializers.count(info.name()) == 0) signature.inputs.push_back(port_of(info));
  }
  for (const auto& info : graph.output()) signature.outputs.push_back(port_of(info));
}

bool is_onnx_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

void read_counts(const onnx::ModelProto& model, Signature& signature) {
  for (const auto& set : model.opset_import()) {
    if (is_onnx_domain(set.domain())) signature.opset = set.version();
  }
  for (const auto& node : model.graph().node())
    ++signature.nodes[is_onnx_domain(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type()];
  for (const auto& tensor : model.graph().initializer()) {
    const auto dtype = dtype_from_onnx(tensor.data_type());
    const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const auto shape = Shape::make(dims);
    if (dtype && is_float(*dtype) && shape.ok()) signature.parameters += shape->elements();
  }
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
  signature.format = Format::kOnnx;
  read_ports(model.graph(), signature);
  read_counts(model, signature);
  return signature;
}

}  // namespace openrknn::import
