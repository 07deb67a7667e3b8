// Small ONNX models made in the tests: built through the generated classes, written to a folder of their own.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "import/importer.hpp"
#include "onnx.pb.h"
#include "support/temp_folder.hpp"

namespace openrknn::import {

namespace pb = openrknn::onnx;

using test_support::TempFolder;

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 13) {
    model_.set_ir_version(8);
    auto* set = model_.add_opset_import();
    set->set_version(opset);
    graph().set_name("test");
  }
  pb::ModelProto& model() { return model_; }
  pb::GraphProto& graph() { return *model_.mutable_graph(); }

  static void set_type(pb::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& dims,
                       int type = 1) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const int64_t d : dims) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (d >= 0) dim->set_dim_value(d);
      if (d < 0) dim->set_dim_param("N" + std::to_string(-d));
    }
  }
  // A negative extent -k is the symbol "Nk".
  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& dims, int type = 1) {
    set_type(*graph().add_input(), name, dims, type);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  ModelBuilder& declare(const std::string& name, const std::vector<int64_t>& dims, int type = 1) {
    set_type(*graph().add_value_info(), name, dims, type);
    return *this;
  }
  static void set_floats(pb::TensorProto& t, const std::string& name, const std::vector<int64_t>& dims,
                         const std::vector<float>& values) {
    t.set_name(name);
    t.set_data_type(1);
    for (const int64_t d : dims) t.add_dims(d);
    for (const float v : values) t.add_float_data(v);
  }
  static void set_ints(pb::TensorProto& t, const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<int64_t>& values) {
    t.set_name(name);
    t.set_data_type(7);
    for (const int64_t d : dims) t.add_dims(d);
    for (const int64_t v : values) t.add_int64_data(v);
  }
  ModelBuilder& floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    set_floats(*graph().add_initializer(), name, dims, values);
    return *this;
  }
  ModelBuilder& ints(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
    set_ints(*graph().add_initializer(), name, dims, values);
    return *this;
  }
  // The node stays addressable for attributes until the next one is added.
  pb::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::string& name = "") {
    auto* n = graph().add_node();
    fill(*n, op, inputs, outputs, name);
    return *n;
  }
  static void fill(pb::NodeProto& n, const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::string& name = "") {
    n.set_op_type(op);
    if (!name.empty()) n.set_name(name);
    for (const auto& i : inputs) n.add_input(i);
    for (const auto& o : outputs) n.add_output(o);
  }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  pb::ModelProto model_;
};

inline void set_int(pb::NodeProto& n, const std::string& name, int64_t value) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(2);
  a->set_i(value);
}
inline void set_float(pb::NodeProto& n, const std::string& name, float value) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(1);
  a->set_f(value);
}
inline void set_string(pb::NodeProto& n, const std::string& name, const std::string& value) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(3);
  a->set_s(value);
}
inline void set_ints(pb::NodeProto& n, const std::string& name, const std::vector<int64_t>& values) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(7);
  for (const int64_t v : values) a->add_ints(v);
}
inline void set_floats(pb::NodeProto& n, const std::string& name, const std::vector<float>& values) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(6);
  for (const float v : values) a->add_floats(v);
}

// Writes and imports.
inline Result<Imported> import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
  TempFolder folder;
  return import_onnx(folder.write("model.onnx", bytes), options);
}
inline Result<Imported> import_built(const ModelBuilder& builder, const ImportOptions& options = {}) {
  return import_bytes(builder.bytes(), options);
}

}  // namespace openrknn::import
