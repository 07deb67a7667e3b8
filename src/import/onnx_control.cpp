// If, Loop and Scan. Programs have no branches and no loops, so whatever decides them must be known here: the importer
// infers shapes and folds constants node by node (graph_builder.hpp), and a condition that depends on shapes, on
// constants or on --input-value alone is a constant by the time its node is reached. No later pass could do this: a
// Graph holds no subgraphs.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "import/onnx_nodes.hpp"

namespace openrknn::import {
namespace {

// How many of the tensors that a value depends on are named.
constexpr size_t kMostNamed = 8;

std::vector<int64_t> ints_of(const onnx::NodeProto& node, std::string_view name) {
  const auto* a = attribute_of(node, name);
  return a == nullptr ? std::vector<int64_t>{} : std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

// A list of `count` axes or directions, 0 where the attribute is absent.
Result<std::vector<int64_t>> per_operand(const onnx::NodeProto& node, std::string_view name, size_t count) {
  auto values = ints_of(node, name);
  if (values.empty()) values.assign(count, 0);
  if (values.size() == count) return values;
  return refusal(fmt::format("attribute '{}' has {} elements, {} are needed", name, values.size(), count),
                 ErrorCode::kFormat);
}

Attributes with_axis(int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return attributes;
}

Tensor true_tensor() {
  Tensor tensor(DType::kBool, Shape{});
  *static_cast<uint8_t*>(tensor.mutable_data()) = 1;
  return tensor;
}

// A tensor without elements of the type that the file declares for rows of a result.
Result<Tensor> no_rows(const onnx::ValueInfoProto& row, int64_t axis) {
  const auto& type = row.type().tensor_type();
  const auto dtype = dtype_from_onnx(type.elem_type());
  std::vector<int64_t> dims;
  bool known = dtype.has_value() && type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    known = known && dim.value_case() == onnx::ShapeProto::Dimension::kDimValue && dim.dim_value() >= 0;
    dims.push_back(dim.dim_value());
  }
  if (!known || axis < 0 || axis > static_cast<int64_t>(dims.size()))
    return refusal(fmt::format("it runs no iteration, and the file does not say the shape of '{}'", row.name()));
  dims.insert(dims.begin() + axis, 0);
  OPENRKNN_TRY(const Shape shape, Shape::make(dims));
  return Tensor(computed_dtype(*dtype), shape);
}

}  // namespace

// The graph inputs that a value is computed from, for a person who wants to make it a constant.
std::string NodeImporter::sources_of(ValueId value) const {
  const Graph& graph = builder_.graph();
  std::set<ValueId> seen{value};
  std::vector<ValueId> open{value};
  std::vector<std::string> names;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (graph.is_input(id)) names.push_back(graph.value(id).name);
    if (!graph.value(id).producer.valid()) continue;
    for (const ValueId input : graph.node(graph.value(id).producer).inputs) {
      if (input.valid() && seen.insert(input).second) open.push_back(input);
    }
  }
  std::sort(names.begin(), names.end());
  if (names.size() > kMostNamed) names.resize(kMostNamed);
  if (names.empty()) return "no input decides it, but it cannot be computed here";
  return fmt::format(
      "it depends on the data of {}: give them as constants (--input-value), or cut the graph before "
      "the node (--output NAME)",
      join_names(names));
}

Status NodeImporter::refuse_unrolling(int64_t at_least) {
  exhausted_ = true;
  return refusal(fmt::format("loops are written out, which takes {} nodes or more where at most {} are allowed: allow "
                             "more (--max-unrolled N), give shorter inputs, or cut the graph before the loop",
                             at_least + 1, most_unrolled_),
                 ErrorCode::kResource);
}

// Operators of subgraphs that are not imported, so that one report holds all that is in the way.
void NodeImporter::check_operators(const onnx::GraphProto& graph, const Scope& scope) {
  for (const auto& node : graph.node()) {
    const bool is_control = node.op_type() == "If" || node.op_type() == "Loop" || node.op_type() == "Scan";
    if (!is_control && node.op_type() != "Constant" && !is_known(node)) {
      note_failure(
          fmt::format("node '{}{}' ({}): the operator is not supported", scope.path, label_of(node), node.op_type()),
          ErrorCode::kUnsupported);
    }
    for (const auto& a : node.attribute()) {  // depth is bounded by the protobuf parser's limit on nesting
      if (a.has_g()) check_operators(a.g(), scope);
    }
  }
}

Result<Body> NodeImporter::open_body(const onnx::NodeProto& node, std::string_view attribute, Scope& scope) {
  const onnx::AttributeProto* given = attribute_of(node, attribute);
  if (given == nullptr || !given->has_g())
    return refusal(fmt::format("attribute '{}' is missing", attribute), ErrorCode::kFormat);
  if (scope.depth >= kDeepest) return refusal("nested too deeply");
  Body body;
  body.graph = &given->g();
  if (body.graph->output_size() == 0) return refusal("its subgraph has no outputs", ErrorCode::kFormat);
  body.scope.outer = &scope;
  body.scope.opsets = scope.opsets;
  body.scope.caller_attributes = scope.caller_attributes;
  body.scope.callers = scope.callers;
  body.scope.prefix = scope.prefix;
  body.scope.path = scope.path + label_of(node) + "/";
  body.scope.depth = scope.depth + 1;
  body.scope.in_loop = scope.in_loop;
  OPENRKNN_CHECK_OK(add_initializers(*body.graph, body.scope));
  NameSet changing;
  for (const auto& input : body.graph->input()) changing.insert(input.name());
  for (const auto& output : body.graph->output()) body.results.push_back(output.name());
  OPENRKNN_TRY(const auto order, order_nodes(body.graph->node(), body.results, changing));
  note_uses(body.graph->node(), order, body.results, body.scope);
  for (const int index : order) {
    const auto& inner = body.graph->node(index);
    const auto reads = reads_of(inner);
    const bool changes =
        std::any_of(reads.begin(), reads.end(), [&](const std::string& name) { return changing.contains(name); });
    if (changes) changing.insert(inner.output().begin(), inner.output().end());
    (changes ? body.each_time : body.once).push_back(index);
  }
  return body;
}

// The values of the body's outputs for these inputs.
Result<std::vector<ValueId>> NodeImporter::run_body(Body& body, const std::vector<ValueId>& arguments,
                                                    int64_t iteration) {
  if (static_cast<int>(arguments.size()) != body.graph->input_size()) {
    return refusal(fmt::format("its subgraph has {} inputs, {} are passed", body.graph->input_size(), arguments.size()),
                   ErrorCode::kFormat);
  }
  const size_t failures = failures_.size();
  if (!body.entered) import_nodes(body.graph->node(), body.once, body.scope);
  body.entered = true;
  Scope run;
  run.outer = &body.scope;
  run.opsets = body.scope.opsets;
  run.caller_attributes = body.scope.caller_attributes;
  run.callers = body.scope.callers;
  run.prefix = fmt::format("{}{}/", body.scope.prefix, iteration);
  run.path = body.scope.path;
  run.depth = body.scope.depth;
  run.in_loop = body.scope.in_loop;
  run.used = body.scope.used;
  for (size_t i = 0; i < arguments.size(); ++i) bind(body.graph->input(static_cast<int>(i)).name(), arguments[i], run);
  import_nodes(body.graph->node(), body.each_time, run);
  std::vector<ValueId> results;
  for (const auto& name : body.results) {
    OPENRKNN_TRY(const auto value, find(name, run));
    if (!value)
      return refusal(fmt::format("no node of its subgraph produces the output '{}'", name), ErrorCode::kFormat);
    results.push_back(*value);
  }
  // What is wrong in one iteration is wrong in the next.
  if (failures_.size() > failures || exhausted_)
    std::fill(results.begin(), results.end(), builder_.add_unknown(run.prefix));
  return results;
}

Result<ValueId> NodeImporter::helper(const onnx::NodeProto& node, const Scope& scope, std::string_view op,
                                     std::string_view suffix, std::vector<ValueId> inputs, Attributes attributes) {
  NodeDraft draft;
  draft.op = std::string(op);
  draft.attributes = std::move(attributes);
  draft.inputs = std::move(inputs);
  draft.outputs = {fmt::format("{}{}/{}", scope.prefix, label_of(node), suffix)};
  draft.source = {file_, {label_of(node)}};
  OPENRKNN_TRY(const auto outputs, builder_.emit(std::move(draft)));
  return outputs[0];
}

// The elements of a value along an axis, without that axis.
Result<std::vector<ValueId>> NodeImporter::pieces(const onnx::NodeProto& node, const Scope& scope, ValueId value,
                                                  int64_t axis) {
  const Shape* shape = builder_.shape(value);
  if (shape == nullptr) return refusal("the shape of an operand is not known, so neither is the number of iterations");
  OPENRKNN_TRY(const int at, normalize_axis(axis, std::max(shape->rank(), 1)));
  if (shape->rank() == 0) return refusal("an operand without dimensions cannot be scanned", ErrorCode::kFormat);
  const int64_t count = (*shape)[at];
  if (count > most_unrolled_) return Result<std::vector<ValueId>>(refuse_unrolling(count).error());
  std::vector<ValueId> parts{value};
  if (count == 0) return std::vector<ValueId>{};
  if (count > 1) {
    NodeDraft split;
    split.op = "Split";
    split.attributes = with_axis(at);
    split.attributes.set("num_outputs", count);
    split.inputs = {value};
    for (int64_t i = 0; i < count; ++i)
      split.outputs.push_back(fmt::format("{}{}/part{}", scope.prefix, label_of(node), i));
    split.source = {file_, {label_of(node)}};
    OPENRKNN_TRY(parts, builder_.emit(std::move(split)));
  }
  const ValueId axes = add_constant(fmt::format("{}{}/axes", scope.prefix, label_of(node)), Tensor::ints({at}));
  for (ValueId& part : parts) {
    OPENRKNN_TRY(part, helper(node, scope, "Squeeze", "element", {part, axes}));
  }
  return parts;
}

// Values side by side along a new axis.
Result<ValueId> NodeImporter::stacked(const onnx::NodeProto& node, const Scope& scope,
                                      const std::vector<ValueId>& values, int64_t axis) {
  std::vector<ValueId> rows;
  const ValueId axes = add_constant(fmt::format("{}{}/axes", scope.prefix, label_of(node)), Tensor::ints({axis}));
  for (const ValueId value : values) {
    OPENRKNN_TRY(const ValueId row, helper(node, scope, "Unsqueeze", "row", {value, axes}));
    rows.push_back(row);
  }
  if (rows.size() == 1) return rows[0];
  return helper(node, scope, "Concat", "stacked", std::move(rows), with_axis(axis));
}

// `rows` of output `result` of the body side by side, also when there are none.
Result<ValueId> NodeImporter::stacked_or_empty(const onnx::NodeProto& node, const Scope& scope, const Body& body,
                                               size_t result, const std::vector<ValueId>& rows, int64_t axis) {
  if (!rows.empty()) return stacked(node, scope, rows, axis);
  OPENRKNN_TRY(Tensor empty, no_rows(body.graph->output(static_cast<int>(result)), axis));
  return add_constant(fmt::format("{}{}/empty", scope.prefix, label_of(node)), std::move(empty));
}

// Names `results` as the node's outputs. Copies, because a result may be a value from further out; the passes remove
// them.
Status NodeImporter::give_results(const onnx::NodeProto& node, const std::vector<ValueId>& results, Scope& scope) {
  if (results.size() < static_cast<size_t>(node.output_size()))
    return refusal(fmt::format("it has {} outputs, its subgraph gives {}", node.output_size(), results.size()),
                   ErrorCode::kFormat);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    NodeDraft copy;
    copy.op = "Identity";
    copy.name = node.name().empty() ? "" : scope.prefix + node.name();
    copy.inputs = {results[static_cast<size_t>(i)]};
    copy.outputs = {scope.prefix + node.output(i)};
    copy.source = {file_, {label_of(node)}};
    OPENRKNN_TRY(const auto outputs, builder_.emit(std::move(copy)));
    bind(node.output(i), outputs[0], scope);
  }
  return {};
}

Status NodeImporter::import_if(const onnx::NodeProto& node, Scope& scope) {
  OPENRKNN_TRY(const auto operands, read_operands(node, scope));
  if (operands.size() != 1 || !operands[0].valid()) return refusal("If takes one condition", ErrorCode::kFormat);
  const Tensor* condition = builder_.constant(operands[0]);
  if (condition == nullptr) {
    for (const auto& a : node.attribute()) {
      if (a.has_g()) check_operators(a.g(), scope);
    }
    if (!builder_.is_unknown(operands[0]))
      return refusal(fmt::format("the condition '{}' is not constant; {}", node.input(0), sources_of(operands[0])));
    bind_unknown(node, scope);
    return {};
  }
  if (condition->elements() != 1) return refusal("the condition is not one element", ErrorCode::kFormat);
  const bool taken = to_ints(condition->view())[0] != 0;
  OPENRKNN_TRY(Body body, open_body(node, taken ? "then_branch" : "else_branch", scope));
  OPENRKNN_TRY(const auto results, run_body(body, {}, 0));
  return give_results(node, results, scope);
}

// Whether another iteration follows, from the condition that the last one gave.
Result<bool> NodeImporter::loop_goes_on(const onnx::NodeProto& node, ValueId condition, int64_t iteration) const {
  if (!condition.valid()) return true;
  const Tensor* value = builder_.constant(condition);
  if (value != nullptr && value->elements() == 1) return to_ints(value->view())[0] != 0;
  const std::string which = iteration == 0
                                ? std::string("its condition")
                                : fmt::format("the condition after iteration {} of '{}'", iteration, label_of(node));
  if (value != nullptr) return refusal(which + " is not one element", ErrorCode::kFormat);
  return refusal(fmt::format("a loop is written out, and {} is not constant; {}", which, sources_of(condition)));
}

Status NodeImporter::import_loop(const onnx::NodeProto& node, Scope& scope) {
  OPENRKNN_TRY(const auto operands, read_operands(node, scope));
  if (operands.size() < 2) return refusal("Loop takes a trip count and a condition", ErrorCode::kFormat);
  OPENRKNN_TRY(Body body, open_body(node, "body", scope));
  if (std::any_of(operands.begin(), operands.begin() + 2, [this](ValueId v) { return builder_.is_unknown(v); })) {
    check_operators(*body.graph, scope);
    bind_unknown(node, scope);
    return {};
  }
  int64_t trips = INT64_MAX;
  if (operands[0].valid()) {
    const Tensor* count = builder_.constant(operands[0]);
    if (count == nullptr || count->elements() != 1) {
      check_operators(*body.graph, scope);
      return refusal(fmt::format("a loop is written out, and its trip count '{}' is not constant; {}", node.input(0),
                                 sources_of(operands[0])));
    }
    trips = to_ints(count->view())[0];
  }
  const size_t carried = operands.size() - 2;
  if (body.results.size() < carried + 1 || body.graph->input_size() != static_cast<int>(carried) + 2)
    return refusal("the inputs and outputs of its body do not fit the node", ErrorCode::kFormat);
  body.scope.in_loop = true;
  body.scope.prefix = scope.prefix + label_of(node) + "/";

  ValueId condition = operands[1];
  std::vector<ValueId> state(operands.begin() + 2, operands.end());
  std::vector<std::vector<ValueId>> rows(body.results.size() - carried - 1);
  for (int64_t i = 0; i < trips; ++i) {
    auto goes_on = loop_goes_on(node, condition, i);
    if (!goes_on.ok()) {
      if (i == 0) check_operators(*body.graph, scope);
      return goes_on.error();
    }
    if (!*goes_on) break;
    if (++unrolled_ > most_unrolled_) return refuse_unrolling(most_unrolled_);
    std::vector<ValueId> arguments{
        add_constant(fmt::format("{}{}/iteration", body.scope.prefix, i), Tensor::scalar<int64_t>(i)),
        add_constant(fmt::format("{}{}/condition", body.scope.prefix, i), true_tensor())};
    arguments.insert(arguments.end(), state.begin(), state.end());
    OPENRKNN_TRY(const auto results, run_body(body, arguments, i));
    if (builder_.is_unknown(results[0])) {
      bind_unknown(node, scope);
      return {};
    }
    condition = results[0];
    const auto first_row = results.begin() + 1 + static_cast<std::ptrdiff_t>(carried);
    state.assign(results.begin() + 1, first_row);
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(first_row[static_cast<std::ptrdiff_t>(k)]);
  }
  for (size_t k = 0; k < rows.size(); ++k) {
    OPENRKNN_TRY(const ValueId all, stacked_or_empty(node, scope, body, carried + 1 + k, rows[k], 0));
    state.push_back(all);
  }
  return give_results(node, state, scope);
}

// The elements of every scanned operand, in the order in which the iterations take them.
Result<std::vector<std::vector<ValueId>>> NodeImporter::scan_elements(const onnx::NodeProto& node,
                                                                      std::vector<ValueId> inputs,
                                                                      const std::vector<int64_t>& axes,
                                                                      const std::vector<int64_t>& directions,
                                                                      const Scope& scope) {
  std::vector<std::vector<ValueId>> elements;
  for (size_t i = 0; i < inputs.size(); ++i) {
    OPENRKNN_TRY(auto parts, pieces(node, scope, inputs[i], axes[i]));
    if (directions[i] != 0) std::reverse(parts.begin(), parts.end());
    if (i > 0 && parts.size() != elements[0].size())
      return refusal(fmt::format("its operands have {} and {} elements to scan", elements[0].size(), parts.size()),
                     ErrorCode::kFormat);
    elements.push_back(std::move(parts));
  }
  return elements;
}

// Final states, then the stacked results.
Result<std::vector<ValueId>> NodeImporter::scan_once(const onnx::NodeProto& node, Body& body,
                                                     std::vector<ValueId> states,
                                                     const std::vector<std::vector<ValueId>>& elements,
                                                     const Scope& scope) {
  const size_t count = states.size();
  if (body.results.size() < count) return refusal("its body has too few outputs", ErrorCode::kFormat);
  const size_t kept = body.results.size() - count;
  const bool with_axes = attribute_of(node, "scan_output_axes") != nullptr;
  OPENRKNN_TRY(auto axes, per_operand(node, "scan_output_axes", kept));
  OPENRKNN_TRY(const auto directions, per_operand(node, "scan_output_directions", kept));
  std::vector<std::vector<ValueId>> rows(kept);
  for (size_t t = 0; t < elements[0].size(); ++t) {
    if (++unrolled_ > most_unrolled_) return Result<std::vector<ValueId>>(refuse_unrolling(most_unrolled_).error());
    std::vector<ValueId> arguments = states;
    for (const auto& parts : elements) arguments.push_back(parts[t]);
    OPENRKNN_TRY(const auto results, run_body(body, arguments, static_cast<int64_t>(t)));
    if (builder_.is_unknown(results[0])) return results;
    states.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(count));
    for (size_t k = 0; k < kept; ++k) rows[k].push_back(results[count + k]);
  }
  for (size_t k = 0; k < kept; ++k) {
    if (directions[k] != 0) std::reverse(rows[k].begin(), rows[k].end());
    if (with_axes && axes[k] < 0 && !rows[k].empty()) {
      const Shape* row = builder_.shape(rows[k][0]);
      if (row == nullptr) return refusal("the shape of a result is not known");
      axes[k] += row->rank() + 1;
    }
    OPENRKNN_TRY(const ValueId all, stacked_or_empty(node, scope, body, count + k, rows[k], axes[k]));
    states.push_back(all);
  }
  return states;
}

// Scan of opset 8: every operand has a batch axis before the scanned one, and each sample is scanned by itself.
Result<std::vector<ValueId>> NodeImporter::scan_batch(const onnx::NodeProto& node, Body& body,
                                                      const std::vector<ValueId>& operands, size_t scanned,
                                                      const Scope& scope) {
  if (operands[0].valid())
    return refusal("operand 'sequence_lens' is not supported: leave it out where all sequences are whole");
  const size_t states = operands.size() - 1 - scanned;
  OPENRKNN_TRY(const auto directions, per_operand(node, "directions", scanned));
  std::vector<std::vector<ValueId>> samples;  // by operand
  for (size_t i = 1; i < operands.size(); ++i) {
    OPENRKNN_TRY(auto parts, pieces(node, scope, operands[i], 0));
    if (parts.empty() || (i > 1 && parts.size() != samples[0].size()))
      return refusal("its operands differ in their batch", ErrorCode::kFormat);
    samples.push_back(std::move(parts));
  }
  std::vector<std::vector<ValueId>> results(body.results.size());
  for (size_t b = 0; b < samples[0].size(); ++b) {
    std::vector<ValueId> state;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < samples.size(); ++i) (i < states ? state : inputs).push_back(samples[i][b]);
    OPENRKNN_TRY(const auto elements,
                 scan_elements(node, inputs, std::vector<int64_t>(inputs.size(), 0), directions, scope));
    OPENRKNN_TRY(const auto sample, scan_once(node, body, state, elements, scope));
    if (builder_.is_unknown(sample[0])) return sample;
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(sample[i]);
  }
  std::vector<ValueId> all;
  for (const auto& rows : results) {
    OPENRKNN_TRY(const ValueId value, stacked(node, scope, rows, 0));
    all.push_back(value);
  }
  return all;
}

Status NodeImporter::import_scan(const onnx::NodeProto& node, Scope& scope) {
  OPENRKNN_TRY(const auto operands, read_operands(node, scope));
  OPENRKNN_TRY(Body body, open_body(node, "body", scope));
  if (std::any_of(operands.begin(), operands.end(), [this](ValueId v) { return builder_.is_unknown(v); })) {
    check_operators(*body.graph, scope);
    bind_unknown(node, scope);
    return {};
  }
  const auto opset = scope.opsets.find("");
  const bool batched = opset != scope.opsets.end() && opset->second < 9;
  const size_t first = batched ? 1 : 0;
  const auto* given = attribute_of(node, "num_scan_inputs");
  const int64_t scanned = given == nullptr ? 0 : given->i();
  if (scanned < 1 || scanned > static_cast<int64_t>(operands.size()) - static_cast<int64_t>(first))
    return refusal(fmt::format("attribute 'num_scan_inputs' is {}, the node has {} inputs", scanned, operands.size()),
                   ErrorCode::kFormat);
  for (size_t i = first; i < operands.size(); ++i) {
    if (!operands[i].valid()) return refusal("an operand is missing", ErrorCode::kFormat);
  }
  body.scope.in_loop = true;
  body.scope.prefix = scope.prefix + label_of(node) + "/";
  std::vector<ValueId> results;
  if (batched) {
    OPENRKNN_TRY(results, scan_batch(node, body, operands, static_cast<size_t>(scanned), scope));
  } else {
    const auto split = operands.end() - scanned;
    OPENRKNN_TRY(const auto axes, per_operand(node, "scan_input_axes", static_cast<size_t>(scanned)));
    OPENRKNN_TRY(const auto directions, per_operand(node, "scan_input_directions", static_cast<size_t>(scanned)));
    OPENRKNN_TRY(const auto elements, scan_elements(node, {split, operands.end()}, axes, directions, scope));
    OPENRKNN_TRY(results, scan_once(node, body, {operands.begin(), split}, elements, scope));
  }
  if (!results.empty() && builder_.is_unknown(results[0])) {
    bind_unknown(node, scope);
    return {};
  }
  return give_results(node, results, scope);
}

}  // namespace openrknn::import
