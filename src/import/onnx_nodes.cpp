#include "import/onnx_nodes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "import/onnx_contrib.hpp"
#include "import/onnx_upgrade.hpp"
#include "ops/registry.hpp"

namespace openrknn::import {
namespace {

constexpr int64_t kMostNodes = 1'000'000;  // after functions are written out: a small file must not grow without bound

bool is_onnx_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}\n{}\n{}", is_onnx_domain(domain) ? "" : domain, name, overload);
}

// TensorProto.AttributeProto.AttributeType
enum class AttributeType {
  kUndefined = 0,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs,
  kSparseTensor,
  kSparseTensors,
  kType,
  kTypes
};

// Files of the first IR versions leave the type out.
AttributeType type_of(const onnx::AttributeProto& a) {
  if (a.type() > 0 && a.type() <= static_cast<int>(AttributeType::kTypes)) return static_cast<AttributeType>(a.type());
  if (a.has_g()) return AttributeType::kGraph;
  if (a.has_t()) return AttributeType::kTensor;
  if (a.has_s()) return AttributeType::kString;
  if (a.has_f()) return AttributeType::kFloat;
  if (a.has_i()) return AttributeType::kInt;
  if (a.floats_size() > 0) return AttributeType::kFloats;
  if (a.ints_size() > 0) return AttributeType::kInts;
  if (a.strings_size() > 0) return AttributeType::kStrings;
  return AttributeType::kUndefined;
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& a) { return a.has_g() || a.graphs_size() > 0; });
}

// Attributes that say nothing about inference: leaving them out does not change the meaning.
bool is_without_meaning(std::string_view op, const std::string& name, const Attribute& value) {
  const auto* number = std::get_if<int64_t>(&value);
  if (name == "momentum" || name == "seed" || name == "saturate" || name == "round_mode") return op != "QuantizeLinear";
  if (name == "training_mode" || name == "is_test") return number != nullptr && (name == "is_test" || *number == 0);
  if (name == "storage_order" || name == "select_last_index") return number != nullptr && *number == 0;
  return name == "stash_type" || name == "consumed_inputs";
}

// An attribute that the operator table does not know might change the result: it is refused, not ignored.
Status check_attributes(NodeDraft& draft) {
  const ops::OpDef* def = ops::registry().find(draft.op);
  if (def == nullptr) return {};
  std::vector<std::string> unknown;
  std::vector<std::string> dropped;
  for (const auto& entry : draft.attributes) {  // no structured binding: clang 14 cannot capture one
    const std::string& name = entry.first;
    const Attribute& value = entry.second;
    const bool known = std::any_of(def->attributes.begin(), def->attributes.end(),
                                   [&](const ops::AttrSpec& spec) { return spec.name == name; });
    if (!known) (is_without_meaning(draft.op, name, value) ? dropped : unknown).push_back(name);
  }
  for (const auto& name : dropped) draft.attributes.erase(name);
  if (unknown.empty()) return {};
  return refusal(fmt::format("attribute {} is not supported", join_names(unknown)));
}

// Results beyond those that the operator has at inference (a mask, running statistics) may stand in the file as long as
// nobody reads them; neither are optional ones computed for nobody.
void forget_unused_results(NodeDraft& draft, const onnx::NodeProto& node, const Scope& scope) {
  const ops::OpDef* def = ops::registry().find(draft.op);
  if (def == nullptr || def->max_outputs < 0) return;
  for (auto i = static_cast<size_t>(def->min_outputs); i < draft.outputs.size(); ++i) {
    if (!scope.used.contains(node.output(static_cast<int>(i)))) draft.outputs[i].clear();
  }
}

}  // namespace

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& a : node.attribute()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}

NodeImporter::NodeImporter(const onnx::ModelProto& model, std::string file, GraphBuilder& builder, TensorReader& reader,
                           int64_t most_unrolled)
    : model_(model), file_(std::move(file)), builder_(builder), reader_(reader), most_unrolled_(most_unrolled) {
  for (const auto& f : model_.functions()) functions_.emplace(function_key(f.domain(), f.name(), f.overload()), &f);
}

std::map<std::string, int64_t, std::less<>> NodeImporter::opsets_of(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSet>& sets) {
  std::map<std::string, int64_t, std::less<>> opsets;
  for (const auto& set : sets) opsets[is_onnx_domain(set.domain()) ? "" : set.domain()] = set.version();
  return opsets;
}

Status NodeImporter::add_initializers(const onnx::GraphProto& graph, Scope& scope) {
  const auto duplicate = [](const std::string& name) {
    return Error{ErrorCode::kFormat, "the model is malformed", fmt::format("tensor '{}'", name),
                 "two initializers have this name", "repair the model"};
  };
  for (const auto& tensor : graph.initializer()) {
    if (!scope.initializers.emplace(tensor.name(), &tensor).second) return duplicate(tensor.name());
  }
  for (const auto& tensor : graph.sparse_initializer()) {
    const std::string& name = tensor.values().name();
    if (scope.initializers.contains(name) || !scope.sparse_initializers.emplace(name, &tensor).second)
      return duplicate(name);
  }
  return {};
}

void NodeImporter::note_uses(const NodeList& nodes, const std::vector<int>& order,
                             const std::vector<std::string>& results, Scope& scope) {
  scope.used.insert(results.begin(), results.end());
  for (const int index : order) {
    for (auto& name : reads_of(nodes[index])) scope.used.insert(std::move(name));
  }
}

void NodeImporter::note_failure(std::string text, ErrorCode code) {
  failure_codes_.insert(code);
  if (known_failures_.insert(text).second) failures_.push_back(std::move(text));
}

void NodeImporter::bind(const std::string& name, ValueId value, Scope& scope) {
  if (!name.empty() && value.valid()) scope.values.insert_or_assign(name, value);
}

void NodeImporter::bind_unknown(const onnx::NodeProto& node, Scope& scope) {
  for (const auto& name : node.output()) {
    if (!name.empty() && !scope.values.contains(name)) bind(name, builder_.add_unknown(scope.prefix + name), scope);
  }
}

void NodeImporter::bind_unknown(const std::string& name, Scope& scope) {
  scope.initializers.erase(name);
  bind(name, builder_.add_unknown(scope.prefix + name), scope);
}

ValueId NodeImporter::add_constant(const std::string& name, Tensor tensor) {
  if (has_non_finite(tensor)) non_finite_.push_back(name);
  return builder_.add_constant(name, std::move(tensor));
}

Result<std::optional<ValueId>> NodeImporter::find(const std::string& name, Scope& scope) {
  if (const auto it = scope.values.find(name); it != scope.values.end()) return std::optional(it->second);
  if (scope.absent.contains(name)) return std::optional(ValueId{});
  std::optional<Result<Tensor>> read;
  if (const auto it = scope.initializers.find(name); it != scope.initializers.end())
    read = reader_.read(*it->second, name);
  if (const auto it = scope.sparse_initializers.find(name); it != scope.sparse_initializers.end())
    read = reader_.read_sparse(*it->second, name);
  if (read) {
    if (!read->ok()) return read->error();
    const ValueId id = add_constant(scope.prefix + name, std::move(**read));
    bind(name, id, scope);
    return std::optional(id);
  }
  if (scope.outer != nullptr) return find(name, *scope.outer);
  return std::optional<ValueId>();
}

Result<std::vector<ValueId>> NodeImporter::read_operands(const onnx::NodeProto& node, Scope& scope) {
  std::vector<ValueId> operands;
  for (const auto& name : node.input()) {
    if (name.empty()) {
      operands.push_back({});
      continue;
    }
    OPENRKNN_TRY(const auto value, find(name, scope));
    if (!value)
      return refusal(fmt::format("it reads '{}', which no node produces and which is no input or initializer", name),
                     ErrorCode::kFormat);
    operands.push_back(*value);
  }
  return operands;
}

Result<Attribute> NodeImporter::read_attribute(const onnx::AttributeProto& a, const std::string& node) {
  switch (type_of(a)) {
    case AttributeType::kFloat:
      return Attribute(a.f());
    case AttributeType::kInt:
      return Attribute(int64_t{a.i()});
    case AttributeType::kString:
      return Attribute(a.s());
    case AttributeType::kFloats:
      return Attribute(std::vector<float>(a.floats().begin(), a.floats().end()));
    case AttributeType::kInts:
      return Attribute(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
    case AttributeType::kStrings:
      return Attribute(std::vector<std::string>(a.strings().begin(), a.strings().end()));
    case AttributeType::kTensor: {
      OPENRKNN_TRY(Tensor tensor, reader_.read(a.t(), fmt::format("{}.{}", node, a.name())));
      return Attribute(std::move(tensor));
    }
    default:
      return refusal(fmt::format("attribute '{}' has a kind ({}) that is not supported", a.name(), a.type()));
  }
}

Result<Attributes> NodeImporter::read_attributes(const onnx::NodeProto& node, Scope& scope) {
  Attributes attributes;
  for (const auto& own : node.attribute()) {
    const onnx::AttributeProto* source = &own;
    if (!own.ref_attr_name().empty()) {
      const auto it = scope.caller_attributes.find(own.ref_attr_name());
      if (it == scope.caller_attributes.end()) continue;  // not given by the caller: the operator's default
      source = it->second;
    }
    if (attributes.has(own.name()))
      return refusal(fmt::format("attribute '{}' is given twice", own.name()), ErrorCode::kFormat);
    OPENRKNN_TRY(Attribute value, read_attribute(*source, label_of(node)));
    attributes.set(own.name(), std::move(value));
  }
  return attributes;
}

Status NodeImporter::import_constant(const onnx::NodeProto& node, Scope& scope) {
  if (node.output_size() != 1 || node.attribute_size() != 1)
    return refusal("a Constant has one output and one attribute", ErrorCode::kFormat);
  const std::string name = scope.prefix + node.output(0);
  Tensor tensor;
  if (node.attribute(0).has_sparse_tensor()) {
    OPENRKNN_TRY(tensor, reader_.read_sparse(node.attribute(0).sparse_tensor(), name));
  } else {
    OPENRKNN_TRY(const Attributes attributes, read_attributes(node, scope));
    if (attributes.empty()) return refusal("the Constant has no value", ErrorCode::kFormat);
    const Attribute& value = attributes.begin()->second;
    if (const auto* t = std::get_if<Tensor>(&value)) tensor = *t;
    if (const auto* i = std::get_if<int64_t>(&value)) tensor = Tensor::scalar(*i);
    if (const auto* f = std::get_if<float>(&value)) tensor = Tensor::scalar(*f);
    if (const auto* i = std::get_if<std::vector<int64_t>>(&value)) tensor = Tensor::ints(*i);
    if (const auto* f = std::get_if<std::vector<float>>(&value))
      tensor = Tensor::from(Shape{static_cast<int64_t>(f->size())}, *f);
    if (!tensor.defined())
      return refusal(fmt::format("attribute '{}' of a Constant is not supported", node.attribute(0).name()));
  }
  bind(node.output(0), add_constant(name, std::move(tensor)), scope);
  return {};
}

const onnx::FunctionProto* NodeImporter::function_of(const onnx::NodeProto& node) const {
  const auto it = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return it == functions_.end() ? nullptr : it->second;
}

bool NodeImporter::is_known(const onnx::NodeProto& node) const {
  if (function_of(node) != nullptr) return true;
  if (is_contrib(node.domain(), node.op_type())) return true;
  if (!is_onnx_domain(node.domain())) return false;
  const ops::OpDef* def = ops::registry().find(node.op_type());
  return (def != nullptr && !def->own) || has_upgrade(node.op_type());
}

Status NodeImporter::import_call(const onnx::NodeProto& node, const onnx::FunctionProto& function, Scope& scope) {
  if (std::find(scope.callers.begin(), scope.callers.end(), &function) != scope.callers.end()) {
    std::string chain;
    for (const auto* caller : scope.callers) chain += caller->name() + " > ";
    return refusal(fmt::format("the function calls itself: {}{}", chain, function.name()), ErrorCode::kFormat);
  }
  if (scope.depth >= kDeepest) return refusal("functions call each other too deeply");
  OPENRKNN_TRY(const auto operands, read_operands(node, scope));
  if (node.output_size() > function.output_size() || static_cast<int>(operands.size()) > function.input_size()) {
    return refusal("operands or results differ in number from those of the function", ErrorCode::kFormat);
  }
  Scope inner;
  inner.opsets = opsets_of(function.opset_import());
  if (inner.opsets.empty()) inner.opsets = scope.opsets;  // some exporters leave them out
  inner.path = scope.path + function.name() + "/";
  inner.callers = scope.callers;
  inner.callers.push_back(&function);
  inner.in_loop = scope.in_loop;
  inner.prefix = scope.prefix + label_of(node) + "/";
  inner.depth = scope.depth + 1;
  for (int i = 0; i < function.input_size(); ++i) {
    const ValueId operand = i < static_cast<int>(operands.size()) ? operands[static_cast<size_t>(i)] : ValueId{};
    if (operand.valid()) {
      bind(function.input(i), operand, inner);
    } else {
      inner.absent.insert(function.input(i));
    }
  }
  for (const auto& a : function.attribute_proto()) inner.caller_attributes[a.name()] = &a;
  for (const auto& a : node.attribute()) {
    const onnx::AttributeProto* source = &a;
    if (!a.ref_attr_name().empty()) {
      const auto it = scope.caller_attributes.find(a.ref_attr_name());
      if (it == scope.caller_attributes.end()) continue;
      source = it->second;
    }
    inner.caller_attributes[a.name()] = source;
  }
  const std::vector<std::string> wanted(function.output().begin(), function.output().end());
  const NameSet given(function.input().begin(), function.input().end());
  OPENRKNN_TRY(const auto order, order_nodes(function.node(), wanted, given));
  note_uses(function.node(), order, wanted, inner);
  import_nodes(function.node(), order, inner);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    OPENRKNN_TRY(const auto value, find(function.output(i), inner));
    if (!value)
      return refusal(fmt::format("no node of the function produces its output '{}'", function.output(i)),
                     ErrorCode::kFormat);
    const bool is_own = builder_.graph().value(*value).producer.valid() && !given.contains(function.output(i));
    if (is_own) {
      builder_.graph().rename(*value, scope.prefix + node.output(i));
      bind(node.output(i), *value, scope);
      continue;
    }
    NodeDraft copy;
    copy.op = "Identity";
    copy.inputs = {*value};
    copy.outputs = {scope.prefix + node.output(i)};
    copy.source = {file_, {label_of(node)}};
    OPENRKNN_TRY(const auto outputs, builder_.emit(std::move(copy)));
    bind(node.output(i), outputs[0], scope);
  }
  return {};
}

Status NodeImporter::import_node(const onnx::NodeProto& node, Scope& scope) {
  if (++imported_ > kMostNodes) {
    exhausted_ = true;
    return refusal(fmt::format("the model has more than {} nodes", kMostNodes), ErrorCode::kResource);
  }
  if (scope.in_loop && ++unrolled_ > most_unrolled_) return refuse_unrolling(most_unrolled_);
  if (node.output_size() == 0) return refusal("the node has no outputs", ErrorCode::kFormat);
  if (const auto* function = function_of(node)) return import_call(node, *function, scope);
  const bool contrib = is_contrib(node.domain(), node.op_type());
  if (!is_onnx_domain(node.domain()) && !contrib)
    return refusal(fmt::format("of domain '{}' this operator is not supported", node.domain()));
  if (node.op_type() == "Constant") return import_constant(node, scope);
  if (node.op_type() == "If") return import_if(node, scope);
  if (node.op_type() == "Loop") return import_loop(node, scope);
  if (node.op_type() == "Scan") return import_scan(node, scope);
  if (has_subgraph(node)) return refusal("operators with a subgraph are not supported");
  NodeDraft draft;
  draft.op = node.op_type();
  draft.name = node.name().empty() ? "" : scope.prefix + node.name();
  draft.source = {file_, {label_of(node)}};
  draft.opset = scope.opsets.contains("") ? scope.opsets.at("") : 1;
  for (const auto& name : node.output()) draft.outputs.push_back(name.empty() ? "" : scope.prefix + name);
  forget_unused_results(draft, node, scope);
  OPENRKNN_TRY(draft.inputs, read_operands(node, scope));
  OPENRKNN_TRY(draft.attributes, read_attributes(node, scope));
  if (contrib) {
    for (int i = 0; i < node.output_size(); ++i) {
      if (!scope.used.contains(node.output(i))) draft.outputs[static_cast<size_t>(i)].clear();
    }
    OPENRKNN_TRY(const auto values, expand_contrib(draft, builder_));
    for (size_t i = 0; i < values.size(); ++i) bind(node.output(static_cast<int>(i)), values[i], scope);
    return {};
  }
  const bool unknown =
      std::any_of(draft.inputs.begin(), draft.inputs.end(), [this](ValueId v) { return builder_.is_unknown(v); });
  const auto upgraded = upgrade(draft, builder_);
  if (!upgraded.ok() && !unknown)
    return upgraded.error();  // behind a failure the shapes that an upgrade needs are missing
  OPENRKNN_CHECK_OK(check_attributes(draft));
  OPENRKNN_TRY(const auto outputs, builder_.emit(std::move(draft)));
  for (size_t i = 0; i < outputs.size(); ++i) bind(node.output(static_cast<int>(i)), outputs[i], scope);
  return {};
}

void NodeImporter::import_nodes(const NodeList& nodes, const std::vector<int>& order, Scope& scope,
                                const std::function<void(const onnx::NodeProto&)>& after) {
  for (const int index : order) {
    const onnx::NodeProto& node = nodes[index];
    if (exhausted_) {
      bind_unknown(node, scope);
      continue;
    }
    const auto status = import_node(node, scope);
    if (!status.ok()) {
      const Error& error = status.error();
      const bool names_tensor = error.where.starts_with("tensor");
      note_failure(fmt::format("node '{}{}' ({}): {}{}", scope.path, label_of(node), node.op_type(),
                               names_tensor ? error.where + ": " : "", error.why),
                   error.code);
      bind_unknown(node, scope);
    }
    if (after) after(node);
  }
}

}  // namespace openrknn::import
