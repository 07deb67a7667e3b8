// An ONNX file as a Graph: which part of it, with which inputs, and what of it cannot be imported.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "import/importer.hpp"
#include "import/onnx_load.hpp"
#include "import/onnx_nodes.hpp"
#include "import/onnx_upgrade.hpp"
#include "ops/registry.hpp"

namespace openrknn::import {
namespace {

// The type that the file declares for a tensor. An open dimension has an extent of -1, with its symbol when it has one.
struct DeclaredType {
  DType dtype = DType::kUndefined;
  bool has_shape = false;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;
};

std::string to_string(const DeclaredType& type) {
  if (!type.has_shape) return "unknown";
  std::string text = "[";
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += type.dims[i] >= 0 ? std::to_string(type.dims[i]) : type.symbols[i].empty() ? "?" : type.symbols[i];
  }
  return text + "]";
}

DeclaredType declared_type(const onnx::TypeProto::TensorType& proto) {
  DeclaredType type;
  type.dtype = dtype_from_onnx(proto.elem_type()).value_or(DType::kUndefined);
  type.has_shape = proto.has_shape();
  for (const auto& dim : proto.shape().dim()) {
    // Exporters write 0 and -1 for "open" as well as leaving the extent out.
    const bool known = dim.value_case() == onnx::ShapeProto::Dimension::kDimValue && dim.dim_value() > 0;
    type.dims.push_back(known ? dim.dim_value() : -1);
    type.symbols.push_back(dim.dim_param());
  }
  return type;
}

class OnnxImporter {
 public:
  OnnxImporter(onnx::ModelProto model, const std::string& path, const ImportOptions& options)
      : model_(std::move(model)),
        path_(path),
        options_(options),
        reader_(path, options.memory_budget),
        builder_(result_.graph, reader_),
        nodes_(model_, path, builder_, reader_, options.max_unrolled_nodes) {}

  Result<Imported> run();

 private:
  Error malformed(std::string where, std::string why, std::string hint = "repair the model") const {
    return Error{ErrorCode::kFormat, "the model is malformed", path_ + ": " + where, std::move(why), std::move(hint)};
  }
  Status read_header();
  Status collect_names();
  Status check_option_names() const;
  Status select_outputs();
  Status add_values();
  Status add_inputs();
  Status add_input(const onnx::ValueInfoProto& info);
  Status add_cut(const std::string& name, const std::vector<int64_t>& dims);
  Result<Shape> bound_shape(const std::string& name, DeclaredType type);
  void check_declared(const onnx::NodeProto& node);
  void note_input(const std::string& name, const Status& status);
  Status report_failures() const;
  Status finish();
  const std::vector<int64_t>* option_dims(std::string_view name) const;
  const DeclaredType* declared(const std::string& name) const;

  onnx::ModelProto model_;
  std::string path_;
  const ImportOptions& options_;
  Imported result_;
  TensorReader reader_;
  GraphBuilder builder_;
  NodeImporter nodes_;
  Scope scope_;
  std::map<std::string, DeclaredType, std::less<>> declared_;
  std::map<std::string, int64_t, std::less<>> symbols_;  // extents that options.inputs gives to symbols
  NameSet known_;                                        // every tensor of the graph
  std::vector<std::string> outputs_;
  std::vector<int> order_;
  std::vector<Error> input_errors_;  // reported together with the nodes that cannot be imported
  bool shapes_overridden_ = false;   // an input has another shape than the file says: declared inner shapes are void
};

const std::vector<int64_t>* OnnxImporter::option_dims(std::string_view name) const {
  for (const auto& [input, dims] : options_.inputs) {
    if (input == name) return &dims;
  }
  return nullptr;
}

const DeclaredType* OnnxImporter::declared(const std::string& name) const {
  const auto it = declared_.find(name);
  return it == declared_.end() ? nullptr : &it->second;
}

Status OnnxImporter::read_header() {
  result_.format = Format::kOnnx;
  result_.graph.name = model_.graph().name();
  result_.graph.source_file = path_;
  scope_.opsets = NodeImporter::opsets_of(model_.opset_import());
  if (!scope_.opsets.contains("") && model_.ir_version() >= 3 && model_.graph().node_size() > 0 &&
      scope_.opsets.empty()) {
    return malformed("opset_import", "the model does not say which opset it uses", "export it again");
  }
  result_.opset = scope_.opsets.contains("") ? scope_.opsets.at("") : 1;
  if (result_.opset < 1) return malformed("opset_import", fmt::format("opset {} does not exist", result_.opset));
  if (result_.opset < kOldestOpset) {
    result_.warnings.push_back(
        fmt::format("opset {} is older than {}, the oldest that is supported: operators are read with the meaning of "
                    "opset {} where the two are not told apart; convert the model to a newer opset",
                    result_.opset, kOldestOpset, kOldestOpset));
  }
  if (result_.opset > kNewestOpset) {
    result_.warnings.push_back(fmt::format(
        "opset {} is newer than {}, the newest that is known: operators are read with the meaning of opset {}",
        result_.opset, kNewestOpset, kNewestOpset));
  }
  return {};
}

Status OnnxImporter::collect_names() {
  const onnx::GraphProto& graph = model_.graph();
  auto added = NodeImporter::add_initializers(graph, scope_);
  if (!added.ok()) return added.error().within(path_);
  auto producers = producers_of(graph.node());
  if (!producers.ok()) return producers.error().within(path_);
  for (const auto& [name, node] : *producers) {
    known_.insert(name);
    if (scope_.initializers.contains(name))
      return malformed(fmt::format("tensor '{}'", name), "a node produces it and an initializer has its name");
  }
  NameSet inputs;
  for (const auto& input : graph.input()) {
    if (!inputs.insert(input.name()).second)
      return malformed(fmt::format("input '{}'", input.name()), "two inputs have this name");
    if (producers->contains(input.name()))
      return malformed(fmt::format("input '{}'", input.name()), "a node produces a tensor of this name");
    known_.insert(input.name());
  }
  for (const auto& [name, tensor] : scope_.initializers) known_.insert(name);
  for (const auto& [name, tensor] : scope_.sparse_initializers) known_.insert(name);
  for (const auto* list : {&graph.value_info(), &graph.output(), &graph.input()}) {
    for (const auto& info : *list) {
      if (info.type().value_case() == onnx::TypeProto::kTensorType)
        declared_[info.name()] = declared_type(info.type().tensor_type());
    }
  }
  return {};
}

Status OnnxImporter::check_option_names() const {
  const std::vector<std::string> known(known_.begin(), known_.end());
  const auto check = [&](const std::string& name, std::string_view option) -> Status {
    if (known_.contains(name)) return {};
    const auto near = near_names(name, known);
    std::vector<std::string> own;
    const bool output = option == "--output";
    for (const auto& value : output ? model_.graph().output() : model_.graph().input()) {
      if (!scope_.initializers.contains(value.name())) own.push_back(value.name());
    }
    return Error{
        ErrorCode::kNotFound, "no such tensor in the model", path_, fmt::format("{} names '{}'", option, name),
        !near.empty() ? fmt::format("did you mean {}?", join_names(near))
        : output ? fmt::format("the model's outputs are {}; a tensor between nodes may be named too", join_names(own))
                 : fmt::format("the model's inputs are {}", join_names(own))};
  };
  for (const auto& [name, dims] : options_.inputs) OPENRKNN_CHECK_OK(check(name, "--input"));
  for (const auto& [name, value] : options_.input_values) OPENRKNN_CHECK_OK(check(name, "--input-value"));
  for (const auto& name : options_.outputs) OPENRKNN_CHECK_OK(check(name, "--output"));
  return {};
}

Status OnnxImporter::select_outputs() {
  outputs_ = options_.outputs;
  if (outputs_.empty()) {
    for (const auto& output : model_.graph().output()) outputs_.push_back(output.name());
  }
  const bool cut = !options_.outputs.empty();
  std::vector<std::string> once;
  for (const std::string& name : outputs_) {
    if (!known_.contains(name)) return malformed(fmt::format("output '{}'", name), "no node produces it");
    if (std::find(once.begin(), once.end(), name) == once.end()) {
      once.push_back(name);
    } else if (cut) {
      return Error{ErrorCode::kInvalidArgument, "an output is named twice", path_,
                   fmt::format("--output names '{}' more than once", name), "name it once"};
    } else {
      // The same tensor again: results are told apart by name, so one is all there is to give.
      result_.warnings.push_back(
          fmt::format("output '{}' is listed more than once in the model; it is given once", name));
    }
  }
  outputs_ = std::move(once);
  NameSet given;
  for (const auto& [name, dims] : options_.inputs) given.insert(name);
  for (const auto& [name, value] : options_.input_values) given.insert(name);
  auto order = order_nodes(model_.graph().node(), outputs_, given);
  if (!order.ok()) return order.error().within(path_);
  order_ = std::move(*order);
  NodeImporter::note_uses(model_.graph().node(), order_, outputs_, scope_);
  return {};
}

// Constants that the user gives in place of inputs or inner tensors.
Status OnnxImporter::add_values() {
  for (const auto& entry : options_.input_values) {  // no structured binding: clang 14 cannot capture one
    const std::string& name = entry.first;
    const Tensor& value = entry.second;
    const DeclaredType* type = declared(name);
    const auto wrong = [&](const std::string& why) {
      return Error{ErrorCode::kInvalidArgument, "the given value does not fit",
                   fmt::format("{}: tensor '{}'", path_, name), why, "give a value of the declared type and shape"};
    };
    Tensor tensor = value;
    if (type != nullptr && type->dtype != DType::kUndefined && computed_dtype(type->dtype) != value.dtype()) {
      tensor = cast(value.view(), computed_dtype(type->dtype));
      if (is_float(value.dtype()) && is_integer(tensor.dtype()))
        return wrong(fmt::format("{} is given, {} declared", dtype_name(value.dtype()), dtype_name(type->dtype)));
    }
    if (type != nullptr && type->has_shape) {
      bool fits = type->dims.size() == static_cast<size_t>(tensor.shape().rank());
      for (size_t i = 0; fits && i < type->dims.size(); ++i)
        fits = type->dims[i] < 0 || type->dims[i] == tensor.shape()[static_cast<int>(i)];
      if (!fits)
        return wrong(fmt::format("shape {} is given, {} declared", tensor.shape().to_string(), to_string(*type)));
    }
    OPENRKNN_CHECK_OK(reader_.charge(static_cast<int64_t>(tensor.bytes()), name));
    scope_.initializers.erase(name);
    scope_.values[name] = builder_.add_constant(name, std::move(tensor));
  }
  return {};
}

Result<Shape> OnnxImporter::bound_shape(const std::string& name, DeclaredType type) {
  const std::vector<int64_t>* given = option_dims(name);
  if (given != nullptr) {
    if (type.has_shape && given->size() != type.dims.size()) {
      return Error{ErrorCode::kInvalidArgument, "the given shape does not fit",
                   fmt::format("{}: input '{}'", path_, name),
                   fmt::format("{} dimensions are given, the model declares {}", given->size(), to_string(type)),
                   "give as many dimensions as the model has"};
    }
    for (size_t i = 0; i < given->size() && type.has_shape; ++i) {
      if (type.dims[i] < 0 || type.dims[i] == (*given)[i]) continue;
      shapes_overridden_ = true;
      result_.warnings.push_back(
          fmt::format("input '{}': dimension {} is {} in the model and {} as given; the given one is used", name, i,
                      type.dims[i], (*given)[i]));
    }
    type.dims = *given;
    type.has_shape = true;
  }
  const std::string how = fmt::format("give its shape: --input {}:D,D,...", name);
  if (!type.has_shape)
    return Error{ErrorCode::kShape, "an input has no shape", fmt::format("{}: input '{}'", path_, name),
                 "the model declares none", how};
  for (size_t i = 0; i < type.dims.size() && given == nullptr; ++i) {
    const auto symbol = symbols_.find(type.symbols[i]);
    if (type.dims[i] < 0 && symbol != symbols_.end()) type.dims[i] = symbol->second;
    if (type.dims[i] >= 0) continue;
    return Error{ErrorCode::kShape, "an input has an open dimension", fmt::format("{}: input '{}'", path_, name),
                 fmt::format("dimension {} of {} is open{}", i, to_string(type),
                             type.symbols[i].empty() ? "" : fmt::format(" ('{}')", type.symbols[i])),
                 how};
  }
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (type.dims[i] <= 0 && !(type.dims[i] == 0 && options_.allow_empty))
      return Error{ErrorCode::kInvalidArgument, "an input has an empty dimension",
                   fmt::format("{}: input '{}'", path_, name), fmt::format("dimension {} is {}", i, type.dims[i]), how};
  }
  auto shape = Shape::make(type.dims);
  if (!shape.ok()) return shape.error().within(fmt::format("{}: input '{}'", path_, name));
  const int64_t bytes =
      shape->elements() * static_cast<int64_t>(std::max<size_t>(dtype_size(computed_dtype(type.dtype)), 1));
  if (bytes > options_.memory_budget) {
    return Error{ErrorCode::kResource, "an input is too large", fmt::format("{}: input '{}'", path_, name),
                 fmt::format("shape {} needs {} bytes, the memory budget is {}", shape->to_string(), bytes,
                             options_.memory_budget),
                 "give a smaller shape, or allow more with --memory-budget"};
  }
  return shape;
}

Status OnnxImporter::add_input(const onnx::ValueInfoProto& info) {
  const std::string& name = info.name();
  const std::string where = fmt::format("{}: input '{}'", path_, name);
  if (info.has_type() && info.type().value_case() != onnx::TypeProto::kTensorType) {
    return Error{ErrorCode::kUnsupported, "an input is not supported", where,
                 "it is no tensor (a sequence, map or optional value)", "cut the graph behind it"};
  }
  const DeclaredType* type = declared(name);
  if (type == nullptr || type->dtype == DType::kUndefined) {
    return Error{ErrorCode::kUnsupported, "an input is not supported", where,
                 fmt::format("its elements have type {}", onnx_type_name(info.type().tensor_type().elem_type())),
                 "cut the graph behind it"};
  }
  OPENRKNN_TRY(const Shape shape, bound_shape(name, *type));
  if (computed_dtype(type->dtype) != type->dtype) reader_.note_promotion();
  scope_.initializers.erase(name);
  scope_.sparse_initializers.erase(name);
  scope_.values[name] = result_.graph.add_input(name, computed_dtype(type->dtype), shape);
  return {};
}

// An inner tensor becomes an input.
Status OnnxImporter::add_cut(const std::string& name, const std::vector<int64_t>& dims) {
  const DeclaredType* known = declared(name);
  DeclaredType type;
  type.dtype = known != nullptr && known->dtype != DType::kUndefined ? known->dtype : DType::kFloat32;
  type.symbols.resize(dims.size());
  OPENRKNN_TRY(const Shape shape, bound_shape(name, type));
  scope_.values[name] = result_.graph.add_input(name, computed_dtype(type.dtype), shape);
  return {};
}

Status OnnxImporter::add_inputs() {
  OPENRKNN_CHECK_OK(add_values());
  for (const auto& [name, dims] : options_.inputs) {
    const DeclaredType* type = declared(name);
    if (type == nullptr || type->dims.size() != dims.size()) continue;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (type->dims[i] < 0 && !type->symbols[i].empty()) symbols_.emplace(type->symbols[i], dims[i]);
    }
  }
  NameSet model_inputs;
  const bool is_cut =
      !options_.outputs.empty() || std::any_of(options_.inputs.begin(), options_.inputs.end(), [&](const auto& i) {
        return std::none_of(model_.graph().input().begin(), model_.graph().input().end(),
                            [&](const auto& m) { return m.name() == i.first; });
      });
  for (const auto& info : model_.graph().input()) {
    const std::string& name = info.name();
    model_inputs.insert(name);
    const bool named = option_dims(name) != nullptr;
    if (scope_.values.contains(name) ||
        (!named && (scope_.initializers.contains(name) || scope_.sparse_initializers.contains(name))))
      continue;
    if (is_cut && !named && !scope_.used.contains(name)) continue;  // it feeds only what was cut off
    note_input(name, add_input(info));
  }
  for (const auto& [name, dims] : options_.inputs) {
    if (!model_inputs.contains(name) && !scope_.values.contains(name)) note_input(name, add_cut(name, dims));
  }
  return {};
}

void OnnxImporter::note_input(const std::string& name, const Status& status) {
  if (status.ok()) return;
  input_errors_.push_back(status.error());
  nodes_.bind_unknown(name, scope_);
}

// What the file says about a result must be what its operator gives.
void OnnxImporter::check_declared(const onnx::NodeProto& node) {
  if (shapes_overridden_) return;
  for (const auto& name : node.output()) {
    const DeclaredType* type = declared(name);
    const auto it = scope_.values.find(name);
    if (type == nullptr || !type->has_shape || it == scope_.values.end()) continue;
    const Shape* shape = builder_.shape(it->second);
    if (shape == nullptr) continue;
    bool agrees = static_cast<size_t>(shape->rank()) == type->dims.size();
    for (size_t i = 0; agrees && i < type->dims.size(); ++i)
      agrees = type->dims[i] < 0 || type->dims[i] == (*shape)[static_cast<int>(i)];
    if (!agrees) {
      nodes_.note_failure(fmt::format("node '{}' ({}): the file declares shape {} for '{}', the operator gives {}",
                                      label_of(node), node.op_type(), to_string(*type), name, shape->to_string()),
                          ErrorCode::kFormat);
    }
  }
}

// What the user can do depends on the kinds of failures.
std::string hint_for(std::set<ErrorCode> codes) {
  std::vector<std::string> hints;
  if (codes.erase(ErrorCode::kNotFound) > 0) hints.emplace_back("put the missing data files beside the model");
  if (codes.erase(ErrorCode::kFormat) + codes.erase(ErrorCode::kShape) + codes.erase(ErrorCode::kInvalidArgument) > 0)
    hints.emplace_back("repair the model, or export it again: what the file says of these nodes cannot be");
  if (codes.erase(ErrorCode::kResource) > 0) hints.emplace_back("give smaller shapes, or fewer steps of loops");
  if (!codes.empty())
    hints.emplace_back("cut the graph before them (--output NAME), or export the model with other operators");
  std::string text;
  for (const std::string& hint : hints) text += (text.empty() ? "" : "; ") + hint;
  return text;
}

Status OnnxImporter::report_failures() const {
  const auto& failures = nodes_.failures();
  if (failures.empty() && input_errors_.empty()) return {};
  if (failures.empty() && input_errors_.size() == 1) return input_errors_[0];
  const auto counted = [](size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  std::string lines;
  for (const Error& error : input_errors_) {
    const bool has_path = error.where.starts_with(path_ + ": ");
    lines += fmt::format("\n  {}: {}; {}", has_path ? error.where.substr(path_.size() + 2) : error.where, error.why,
                         error.hint);
  }
  for (const auto& line : failures) lines += "\n  " + line;
  const std::string inputs = input_errors_.empty() ? "" : counted(input_errors_.size(), "input");
  const std::string nodes = failures.empty() ? "" : counted(failures.size(), "node");
  return Error{input_errors_.empty() ? ErrorCode::kUnsupported : input_errors_[0].code,
               fmt::format("{}{}{} cannot be imported", inputs, inputs.empty() || nodes.empty() ? "" : " and ", nodes),
               path_, lines + "\n", failures.empty() ? "" : hint_for(nodes_.failure_codes())};
}

Status OnnxImporter::finish() {
  Graph& graph = result_.graph;
  for (const auto& name : outputs_) {
    auto value = nodes_.find(name, scope_);
    if (!value.ok()) return value.error().within(path_);
    if (!*value) return malformed(fmt::format("output '{}'", name), "no node produces it");
    graph.add_output(**value);
    const DeclaredType* type = declared(name);
    const bool narrowed = type != nullptr && (type->dtype == DType::kFloat16 || type->dtype == DType::kFloat64);
    if (narrowed && graph.value(**value).dtype == DType::kFloat32)
      result_.declared_outputs.emplace(graph.value(**value).name, type->dtype);
  }
  builder_.remove_dead();
  if (reader_.promoted()) result_.warnings.push_back("float16, bfloat16 and float64 tensors are computed in float32");
  if (!nodes_.non_finite().empty()) {
    result_.warnings.push_back(fmt::format("infinities or NaNs in the constants {}", join_names(nodes_.non_finite())));
  }
  return ops::verify(graph);
}

Result<Imported> OnnxImporter::run() {
  OPENRKNN_CHECK_OK(read_header());
  OPENRKNN_CHECK_OK(collect_names());
  OPENRKNN_CHECK_OK(check_option_names());
  OPENRKNN_CHECK_OK(select_outputs());
  OPENRKNN_CHECK_OK(add_inputs());
  nodes_.import_nodes(model_.graph().node(), order_, scope_,
                      [this](const onnx::NodeProto& node) { check_declared(node); });
  OPENRKNN_CHECK_OK(report_failures());
  OPENRKNN_CHECK_OK(finish());
  return std::move(result_);
}

}  // namespace

Result<Imported> import_onnx(const std::string& path, const ImportOptions& options) {
  OPENRKNN_TRY(auto model, load_onnx(path));
  OnnxImporter importer(std::move(model), path, options);
  return importer.run();
}

}  // namespace openrknn::import
