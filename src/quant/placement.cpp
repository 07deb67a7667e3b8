#include "quant/placement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "quant/rules.hpp"

namespace openrknn::quant {
namespace {

Error unknown_layer(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (const ValueId id : graph.values()) {
    if (graph.constant(id) != nullptr) continue;
    known.push_back(graph.value(id).name);
    known.insert(known.end(), graph.value(id).aliases.begin(), graph.value(id).aliases.end());
  }
  const auto near = near_names(name, known);
  return Error{ErrorCode::kNotFound, "unknown tensor in the layer formats", name,
               "it is neither an input nor made by a node of the optimised graph",
               near.empty() ? "list the tensors with `openrknn inspect`" : "near names: " + join_names(near)};
}

Result<Format> format_from_name(const std::string& name) {
  if (name == "w8a8" || name == "int8") return Format::kInt8;
  if (name == "fp16" || name == "float16") return Format::kFloat16;
  return Error{ErrorCode::kUnsupported, "number format not available", name,
               "this version has w8a8 (int8) and fp16 (float16)", "choose one of them"};
}

bool all_float(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return !id.valid() || is_float(graph.value(id).dtype); });
}

// The format in which a value is stored by whoever makes it; graph inputs and constants take the wanted one.
Format stored_format(const Graph& graph, const Placement& placement, ValueId id, Format wanted) {
  const Value& v = graph.value(id);
  if (!is_float(v.dtype)) return Format::kRaw;
  if (!v.producer.valid()) {
    const auto asked = placement.inputs.find(id);
    return asked == placement.inputs.end() ? wanted : asked->second;
  }
  // A CPU task leaves floats (TopK beside its integers: format kRaw), which its reader converts to what it wants.
  const Format made = placement.at(v.producer).format;
  return made == Format::kInt8 || made == Format::kFloat16 ? made : wanted;
}

// The producer takes the format; where it only moves values, so does what computed them.
void ask(const Graph& graph, ValueId value, Format format, std::map<NodeId, Format>& asked) {
  while (graph.value(value).producer.valid()) {
    const NodeId id = graph.value(value).producer;
    const Node& node = graph.node(id);
    asked[id] = format;
    if (format_role(node) != FormatRole::kFollows || node.op == "Concat") return;
    value = node.inputs[0];
  }
}

// An operand's shape is not known: the node stands behind the one to blame.
bool works_on_unshaped(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id.valid() && !graph.value(id).shape; });
}

class Placer {
 public:
  // What was asked for: formats of nodes and of graph inputs.
  Placer(const Graph& graph, const target::Target& target, Format wanted, std::map<NodeId, Format> nodes,
         std::map<ValueId, Format> inputs)
      : graph_(graph), target_(target), wanted_(wanted), asked_(std::move(nodes)) {
    placement_.inputs = std::move(inputs);
  }

  Result<Placement> run() {
    OPENRKNN_TRY(const auto order, graph_.topological_order());
    note_computed(order);
    note_before_softmax(order);
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      NodePlacement placed;
      placed.obstacle = obstacle(node);
      if (placed.obstacle.empty()) {
        placed = place_node(id, node);
        placed.warning = missing_on_board(node, placed);
      } else {
        placed.engine = Engine::kCpu;
        placed.format = all_float(graph_, node) ? Format::kFloat32 : Format::kRaw;
        placed.limit = "program.shapes";
        placed.reason = placed.obstacle;
      }
      placement_.nodes[id] = std::move(placed);
    }
    return std::move(placement_);
  }

 private:
  std::string unshaped(const Node& node, const Value& v) const {
    if (works_on_unshaped(graph_, node)) return fmt::format("the shape of '{}' depends on data", v.name);
    std::string cut;
    for (const ValueId id : node.inputs) {
      if (id.valid() && graph_.value(id).producer.valid()) cut += " --output " + graph_.value(id).name;
    }
    return fmt::format("the shape of '{}' depends on data; {}", v.name,
                       cut.empty() ? "remove the node from the model and run it on the host"
                                   : "cut the model before it:" + cut + ", and run the rest on the host");
  }

  // A Program needs every extent, none of them 0, and addresses of 32 bits (npu.md 1.2).
  std::string obstacle(const Node& node) const {
    constexpr int64_t kLargestTensor = int64_t{1} << 32;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        if (!id.valid()) continue;
        const Value& v = graph_.value(id);
        if (!v.shape) return unshaped(node, v);
        const bool parameter = v.constant.has_value() && !is_float(v.dtype);
        if (v.shape->elements() == 0 && !parameter && !(v.constant && node.op == "Resize")) {
          return fmt::format("'{}' {} is empty; remove it from the model", v.name, v.shape->to_string());
        }
        if (v.shape->elements() > kLargestTensor / static_cast<int64_t>(std::max<size_t>(1, dtype_size(v.dtype)))) {
          return fmt::format("'{}' {} is larger than the 4 GiB that the NPU addresses (npu.md 1.2)", v.name,
                             v.shape->to_string());
        }
      }
    }
    return {};
  }

  std::string missing_on_board(const Node& node, const NodePlacement& placed) const {
    const auto& ops = target_.cpu_ops;
    const bool there = target_.cpu_ops_all || std::find(ops.begin(), ops.end(), node.op) != ops.end();
    if (placed.engine == Engine::kNpu || there) return {};
    return fmt::format("the vendor's runtime of {} has no CPU version of {} ({})", target_.title, node.op,
                       target_.limit("npu.operators").source);
  }

  NodePlacement place_node(NodeId id, const Node& node) {
    if (!all_float(graph_, node)) {
      const auto refusal = npu_refuses(graph_, node, target_, wanted_);
      return {Engine::kCpu,
              Format::kRaw,
              refusal ? refusal->limit : "npu.dtypes",
              refusal ? refusal->reason : "integer or boolean operands",
              "",
              ""};
    }
    if (stays_between_cpu_tasks(id, node)) {
      return {Engine::kCpu, Format::kFloat32,
              "npu.dtypes", "it moves fp32 values from one CPU task to others (sdk.md C.1)",
              "",           ""};
    }
    const Format format = format_of(id, node);
    if (format == Format::kFloat16 && !target_.supports("fp16")) {
      return cpu(
          node,
          {"dtype.fp16", fmt::format("{} computes in fp16 only, which {} lacks (sdk.md C.1)", node.op, target_.title)},
          format);
    }
    if (auto refusal = npu_refuses(graph_, node, target_, format)) {
      // A format that the operator lacks on this NPU may still be the other one.
      if (format == Format::kInt8 && refusal->limit == "npu.ops" && target_.supports("fp16") &&
          !npu_refuses(graph_, node, target_, Format::kFloat16)) {
        return {Engine::kNpu, Format::kFloat16, "", "", "", ""};
      }
      return cpu(node, *refusal, format);
    }
    return {Engine::kNpu, format, "", "", "", ""};
  }

  // Values that a task of the NPU computes with, directly or behind nodes that only move them; from the end, so that
  // readers are known before what they read.
  void note_computed(const std::vector<NodeId>& order) {
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (!obstacle(node).empty()) continue;  // not even its shapes are known
      const bool computes =
          format_role(node) == FormatRole::kFollows
              ? std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId out) { return computed_.contains(out); })
              : !npu_refuses(graph_, node, target_, wanted_) || !npu_refuses(graph_, node, target_, Format::kFloat16);
      if (!computes) continue;
      for (const ValueId input : node.inputs) {
        if (input.valid()) computed_.insert(input);
      }
    }
  }

  // Arithmetic that only a Softmax reads, which computes in halves anyway. A mask of large negative numbers in it would
  // leave nothing of the scores in int8.
  void note_before_softmax(const std::vector<NodeId>& order) {
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (node.op != "Add" && node.op != "Sub" && node.op != "Mul" && node.op != "Div") continue;
      const ValueId out = node.outputs[0];
      const auto& users = graph_.value(out).users;
      const bool only = std::all_of(users.begin(), users.end(), [&](const Use& use) {
        return graph_.node(use.node).op == "Softmax" || before_softmax_.contains(use.node);
      });
      if (only && !users.empty() && !graph_.is_output(out)) before_softmax_.insert(*id);
    }
  }

  // Converting what a CPU task left to the NPU's format and back for the next one would only lose digits.
  bool stays_between_cpu_tasks(NodeId id, const Node& node) const {
    if (!is_movement(node.op) || node.op == "Concat" || asked_.contains(id)) return false;
    const Value& moved = graph_.value(node.inputs[0]);
    if (!moved.producer.valid() || !is_float(moved.dtype)) return false;
    const NodePlacement& from = placement_.at(moved.producer);
    if (from.engine != Engine::kCpu || (from.format != Format::kFloat32 && from.format != Format::kRaw)) return false;
    return std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) { return computed_.contains(out); });
  }

  NodePlacement cpu(const Node& node, const Refusal& refusal, Format format) const {
    // Moving raw elements needs no float numbers: the format stays.
    const bool raw = is_movement(node.op) && refusal.limit != "pad.value";
    return {Engine::kCpu, raw ? format : Format::kFloat32, refusal.limit, refusal.reason, "", ""};
  }

  Format format_of(NodeId id, const Node& node) const {
    const auto asked = asked_.find(id);
    switch (format_role(node)) {
      case FormatRole::kFollows: {
        if (asked != asked_.end()) return asked->second;
        if (node.op != "Concat") return stored_format(graph_, placement_, node.inputs[0], wanted_);
        const bool any_int8 = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
          return stored_format(graph_, placement_, v, wanted_) == Format::kInt8;
        });
        return any_int8 ? Format::kInt8 : Format::kFloat16;
      }
      case FormatRole::kHalf:
        return Format::kFloat16;
      case FormatRole::kOwn:
        if (asked != asked_.end()) return asked->second;
        return before_softmax_.contains(id) && target_.supports("fp16") ? Format::kFloat16 : wanted_;
    }
    return wanted_;
  }

  const Graph& graph_;
  const target::Target& target_;
  Format wanted_;
  std::map<NodeId, Format> asked_;
  std::set<ValueId> computed_;  // by tasks of the NPU
  std::set<NodeId> before_softmax_;
  Placement placement_;
};

}  // namespace

std::string_view format_name(Format format) {
  switch (format) {
    case Format::kInt8:
      return "int8";
    case Format::kFloat16:
      return "float16";
    case Format::kFloat32:
      return "float32";
    case Format::kRaw:
      return "raw";
  }
  return "?";
}

Result<Placement> place(const Graph& graph, const target::Target& target, const PlacementOptions& options) {
  if (!target.supports(options.dtype)) {
    return Error{ErrorCode::kUnsupported, "number format not available on the target", options.dtype,
                 fmt::format("{} has {}", target.name, join_names(target.dtypes)), "choose one of them with --dtype"};
  }
  OPENRKNN_TRY(const Format wanted, format_from_name(options.dtype));
  std::map<NodeId, Format> asked;
  std::map<ValueId, Format> inputs;
  for (const auto& [name, dtype] : options.layer_dtype) {
    const auto value = graph.find_value(name);
    if (!value || graph.constant(*value) != nullptr) return unknown_layer(graph, name);
    auto format = format_from_name(dtype);
    if (!format.ok()) return format.error().within(name);
    if (*format == Format::kFloat16 && !target.supports("fp16")) {
      return Error{ErrorCode::kUnsupported, "number format not available on the target", name + "=" + dtype,
                   target.name + " has no fp16", "leave the layer in w8a8"};
    }
    if (!graph.value(*value).producer.valid()) {
      inputs[*value] = *format;
      continue;
    }
    ask(graph, *value, *format, asked);
  }
  return Placer(graph, target, wanted, std::move(asked), std::move(inputs)).run();
}

Status check_buildable(const Graph& graph, const Placement& placement, const target::Target& target) {
  std::vector<std::string> lines;
  size_t behind = 0;
  for (const auto& [id, placed] : placement.nodes) {
    if (placed.obstacle.empty()) continue;
    if (works_on_unshaped(graph, graph.node(id))) {
      ++behind;
      continue;
    }
    lines.push_back(fmt::format("node '{}' ({}): {}", graph.node(id).name, graph.node(id).op, placed.obstacle));
  }
  for (const ValueId id : graph.outputs()) {
    const Value& v = graph.value(id);
    if (v.producer.valid() || !v.shape || v.shape->elements() != 0) continue;
    return Error{ErrorCode::kUnsupported, "an output cannot be built", graph.source_file,
                 fmt::format("'{}' {} is empty", v.name, v.shape->to_string()),
                 "name the other outputs (--output NAME)"};
  }
  if (lines.empty() && behind == 0) return {};
  if (behind > 0) lines.push_back(fmt::format("{} more that work on results without a shape", behind));
  std::string why = lines.size() == 1 ? lines[0] : "";
  if (lines.size() > 1) {
    for (const std::string& line : lines) why += "\n  " + line;
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{} node(s) cannot be built for {}", lines.size() + (behind > 0 ? behind - 1 : 0), target.name),
      graph.source_file, std::move(why), ""};
}

}  // namespace openrknn::quant
