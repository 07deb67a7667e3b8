#include "import/onnx_upgrade.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace openrknn::import {
namespace {

using Rewrite = Status (*)(NodeDraft&, GraphBuilder&);

std::string helper_name(const NodeDraft& draft, std::string_view suffix) {
  const auto named =
      std::find_if(draft.outputs.begin(), draft.outputs.end(), [](const std::string& n) { return !n.empty(); });
  return fmt::format("{}_{}", named == draft.outputs.end() ? draft.op : *named, suffix);
}

void set_input(NodeDraft& draft, size_t slot, ValueId value) {
  if (draft.inputs.size() <= slot) draft.inputs.resize(slot + 1);
  draft.inputs[slot] = value;
}

ValueId ints_constant(const NodeDraft& draft, GraphBuilder& builder, std::string_view suffix,
                      const std::vector<int64_t>& values) {
  return builder.add_constant(helper_name(draft, suffix), Tensor::ints(values));
}

ValueId float_constant(const NodeDraft& draft, GraphBuilder& builder, std::string_view suffix, float value) {
  return builder.add_constant(helper_name(draft, suffix), Tensor::scalar(value));
}

// An integer list attribute of the old form is an input of the new one.
void ints_attribute_to_input(NodeDraft& draft, GraphBuilder& builder, std::string_view name, size_t slot) {
  if (const auto* values = draft.attributes.get<std::vector<int64_t>>(name))
    set_input(draft, slot, ints_constant(draft, builder, name, *values));
  draft.attributes.erase(name);
}

Result<Shape> known_shape(const NodeDraft& draft, const GraphBuilder& builder, size_t slot) {
  const Shape* shape = slot < draft.inputs.size() ? builder.shape(draft.inputs[slot]) : nullptr;
  if (shape == nullptr)
    return refusal(
        fmt::format("the shape of operand {} is not known, which this old form of the operator needs", slot));
  return *shape;
}

// Puts a node before the draft; its only result.
Result<ValueId> insert_before(const NodeDraft& draft, GraphBuilder& builder, std::string_view op,
                              std::string_view suffix, std::vector<ValueId> inputs, Attributes attributes = {}) {
  NodeDraft helper;
  helper.op = std::string(op);
  helper.attributes = std::move(attributes);
  helper.inputs = std::move(inputs);
  helper.outputs = {helper_name(draft, suffix)};
  helper.source = draft.source;
  OPENRKNN_TRY(const auto outputs, builder.emit(std::move(helper)));
  return outputs[0];
}

Status drop_training_attributes(NodeDraft& draft, GraphBuilder&) {
  draft.attributes.erase("consumed_inputs");
  draft.attributes.erase("is_test");
  return {};
}

// Opset 6 and older: no broadcasting unless `broadcast`, and then from `axis` on.
Status align_operand(NodeDraft& draft, GraphBuilder& builder) {
  const bool has_axis = draft.attributes.has("axis");
  const int64_t axis = draft.attributes.int_or("axis", 0);
  draft.attributes.erase("axis");
  draft.attributes.erase("broadcast");
  draft.attributes.erase("consumed_inputs");
  if (!has_axis || draft.inputs.size() < 2) return {};
  OPENRKNN_TRY(const Shape a, known_shape(draft, builder, 0));
  OPENRKNN_TRY(const Shape b, known_shape(draft, builder, 1));
  OPENRKNN_TRY(const int start, normalize_axis(axis, std::max(a.rank(), 1)));
  if (start + b.rank() > a.rank())
    return refusal(fmt::format("operand {} at axis {} does not fit into {}", b.to_string(), axis, a.to_string()));
  std::vector<int64_t> dims = b.to_vector();
  dims.resize(static_cast<size_t>(a.rank() - start), 1);
  const ValueId shape = ints_constant(draft, builder, "operand_shape", dims);
  OPENRKNN_TRY(draft.inputs[1], insert_before(draft, builder, "Reshape", "operand", {draft.inputs[1], shape}));
  return {};
}

Status cast_type_name(NodeDraft& draft, GraphBuilder&) {
  const auto* name = draft.attributes.get<std::string>("to");
  if (name == nullptr) return {};
  constexpr std::array<std::string_view, 17> kNames{
      "UNDEFINED", "FLOAT",   "UINT8",  "INT8",   "UINT16", "INT16",     "INT32",      "INT64",   "STRING",
      "BOOL",      "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
  const auto at = std::find(kNames.begin(), kNames.end(), *name);
  if (at == kNames.end()) return refusal(fmt::format("attribute 'to' names an unknown type '{}'", *name));
  draft.attributes.set("to", static_cast<int>(at - kNames.begin()));
  return {};
}

Status clip_limits(NodeDraft& draft, GraphBuilder& builder) {
  draft.inputs.resize(1);
  if (const auto* low = draft.attributes.get<float>("min"))
    set_input(draft, 1, float_constant(draft, builder, "min", *low));
  if (const auto* high = draft.attributes.get<float>("max"))
    set_input(draft, 2, float_constant(draft, builder, "max", *high));
  draft.attributes.erase("min");
  draft.attributes.erase("max");
  draft.attributes.erase("consumed_inputs");
  return {};
}

Status concat_axis(NodeDraft& draft, GraphBuilder&) {
  if (!draft.attributes.has("axis")) draft.attributes.set("axis", 1);
  return {};
}

Status spatial_batch_norm(NodeDraft& draft, GraphBuilder&) {
  if (draft.attributes.int_or("spatial", 1) != 1)
    return refusal("attribute 'spatial' = 0 (statistics of every element) is not supported");
  draft.attributes.erase("spatial");
  draft.attributes.erase("is_test");
  draft.attributes.erase("consumed_inputs");
  return {};
}

Status dropout_attributes(NodeDraft& draft, GraphBuilder&) {
  draft.attributes.erase("ratio");
  draft.attributes.erase("is_test");
  draft.attributes.erase("consumed_inputs");
  return {};
}

Status gemm_broadcast(NodeDraft& draft, GraphBuilder&) {
  draft.attributes.erase("broadcast");
  return {};
}

// GroupNormalization 18: scale and bias have one element a group, later one a channel.
Status group_norm_per_channel(NodeDraft& draft, GraphBuilder& builder) {
  OPENRKNN_TRY(const Shape x, known_shape(draft, builder, 0));
  const int64_t groups = draft.attributes.int_or("num_groups", 0);
  if (x.rank() < 2 || groups <= 0 || x[1] % groups != 0) return refusal("'num_groups' does not divide the channels");
  for (const size_t slot : {size_t{1}, size_t{2}}) {
    const ValueId column = ints_constant(draft, builder, "column", {groups, 1});
    const ValueId wide = ints_constant(draft, builder, "wide", {groups, x[1] / groups});
    const ValueId flat = ints_constant(draft, builder, "flat", {x[1]});
    if (draft.inputs.size() <= slot) return refusal("scale or bias is missing");
    OPENRKNN_TRY(ValueId v, insert_before(draft, builder, "Reshape", "per_group", {draft.inputs[slot], column}));
    OPENRKNN_TRY(v, insert_before(draft, builder, "Expand", "repeated", {v, wide}));
    OPENRKNN_TRY(draft.inputs[slot], insert_before(draft, builder, "Reshape", "per_channel", {v, flat}));
  }
  return {};
}

Status pad_attributes(NodeDraft& draft, GraphBuilder& builder) {
  if (const auto* pads = draft.attributes.get<std::vector<int64_t>>("paddings"))
    draft.attributes.set("pads", *pads);  // opset 1
  draft.attributes.erase("paddings");
  ints_attribute_to_input(draft, builder, "pads", 1);
  if (const auto* value = draft.attributes.get<float>("value"))
    set_input(draft, 2, float_constant(draft, builder, "value", *value));
  draft.attributes.erase("value");
  return {};
}

// PRelu of opset 6 and older: a slope [C] belongs to axis 1.
Status prelu_slope(NodeDraft& draft, GraphBuilder& builder) {
  draft.attributes.erase("consumed_inputs");
  if (draft.inputs.size() != 2) return {};
  OPENRKNN_TRY(const Shape x, known_shape(draft, builder, 0));
  OPENRKNN_TRY(const Shape slope, known_shape(draft, builder, 1));
  if (slope.rank() != 1 || x.rank() <= 2 || slope[0] == 1) return {};
  std::vector<int64_t> dims(static_cast<size_t>(x.rank() - 1), 1);
  dims[0] = slope[0];
  const ValueId shape = ints_constant(draft, builder, "slope_shape", dims);
  OPENRKNN_TRY(draft.inputs[1], insert_before(draft, builder, "Reshape", "slope", {draft.inputs[1], shape}));
  return {};
}

Status reduce_axes(NodeDraft& draft, GraphBuilder& builder) {
  ints_attribute_to_input(draft, builder, "axes", 1);
  return {};
}

Status reshape_attribute(NodeDraft& draft, GraphBuilder& builder) {
  draft.attributes.erase("consumed_inputs");
  ints_attribute_to_input(draft, builder, "shape", 1);
  return {};
}

// Empty tensors stand for absent operands.
Status resize_optional_operands(NodeDraft& draft, GraphBuilder& builder) {
  for (size_t i = 1; i < draft.inputs.size(); ++i) {
    const Shape* shape = builder.shape(draft.inputs[i]);
    if (shape != nullptr && shape->elements() == 0) draft.inputs[i] = ValueId{};
  }
  return {};
}

// Resize 10 and Upsample map output x to input x / scale. Nearest takes the floor when it enlarges and the ceiling when
// it shrinks: the runtime's "simple" mode for these opsets.
Status resize_asymmetric(NodeDraft& draft, GraphBuilder& builder) {
  draft.op = "Resize";
  if (draft.inputs.size() < 2) return refusal("the operand 'scales' is missing");
  const ValueId scales = draft.inputs[1];
  const std::string mode = draft.attributes.string_or("mode", "nearest");
  draft.inputs = {draft.inputs[0], ValueId{}, scales};
  draft.attributes.set("mode", mode == "bilinear" || mode == "trilinear" ? "linear" : mode.c_str());
  draft.attributes.set("coordinate_transformation_mode", "asymmetric");
  if (mode != "nearest") return {};
  bool shrinks = false;
  bool enlarges = false;
  if (const Tensor* values = builder.constant(scales)) {
    for (const double s : to_doubles(values->view())) {
      shrinks = shrinks || s < 1;
      enlarges = enlarges || s > 1;
    }
  }
  if (shrinks && enlarges)
    return refusal("nearest scales above and below 1 in one node of opset 10 or older are not supported");
  draft.attributes.set("nearest_mode", shrinks ? "ceil" : "floor");
  return {};
}

Status upsample_attribute(NodeDraft& draft, GraphBuilder& builder) {
  const auto* scales = draft.attributes.get<std::vector<float>>("scales");
  if (scales == nullptr) return refusal("attribute 'scales' is missing");
  const Shape shape{static_cast<int64_t>(scales->size())};
  set_input(draft, 1, builder.add_constant(helper_name(draft, "scales"), Tensor::from(shape, *scales)));
  draft.attributes.erase("scales");
  return {};
}

Status slice_attributes(NodeDraft& draft, GraphBuilder& builder) {
  ints_attribute_to_input(draft, builder, "starts", 1);
  ints_attribute_to_input(draft, builder, "ends", 2);
  ints_attribute_to_input(draft, builder, "axes", 3);
  return {};
}

// Before opset 13 everything from `axis` on was one row.
Status softmax_over_rows(NodeDraft& draft, GraphBuilder& builder) {
  OPENRKNN_TRY(const Shape x, known_shape(draft, builder, 0));
  OPENRKNN_TRY(const int axis, normalize_axis(draft.attributes.int_or("axis", 1), std::max(x.rank(), 1)));
  draft.attributes.set("axis", axis);
  if (x.rank() == 0 || x.elements(axis + 1, x.rank()) == 1) return {};  // the rest is that axis alone
  const ValueId rows = ints_constant(draft, builder, "rows", {x.elements(0, axis), x.elements(axis, x.rank())});
  OPENRKNN_TRY(const ValueId flat, insert_before(draft, builder, "Reshape", "flat", {draft.inputs[0], rows}));
  Attributes attributes;
  attributes.set("axis", 1);
  OPENRKNN_TRY(const ValueId result, insert_before(draft, builder, draft.op, "softmax", {flat}, std::move(attributes)));
  const ValueId shape = ints_constant(draft, builder, "shape", x.to_vector());
  draft.op = "Reshape";
  draft.attributes = {};
  draft.inputs = {result, shape};
  return {};
}

Status split_sizes(NodeDraft& draft, GraphBuilder& builder) {
  ints_attribute_to_input(draft, builder, "split", 1);
  return {};
}

// Before opset 18 the number of parts was the number of outputs.
Status split_parts(NodeDraft& draft, GraphBuilder&) {
  const bool has_sizes = draft.inputs.size() > 1 && draft.inputs[1].valid();
  if (!has_sizes) draft.attributes.set("num_outputs", static_cast<int>(draft.outputs.size()));
  return {};
}

Status axes_to_input(NodeDraft& draft, GraphBuilder& builder) {
  ints_attribute_to_input(draft, builder, "axes", 1);
  return {};
}

Status topk_attribute(NodeDraft& draft, GraphBuilder& builder) {
  if (const auto* k = draft.attributes.get<int64_t>("k")) set_input(draft, 1, ints_constant(draft, builder, "k", {*k}));
  draft.attributes.erase("k");
  return {};
}

Status rename_scatter(NodeDraft& draft, GraphBuilder&) {
  draft.op = "ScatterElements";
  return {};
}

// Before opset 20 the axis was an attribute.
Status dft_axis(NodeDraft& draft, GraphBuilder& builder) {
  const int64_t axis = draft.attributes.int_or("axis", 1);
  draft.attributes.erase("axis");
  set_input(draft, 2, builder.add_constant(helper_name(draft, "axis"), Tensor::scalar(axis)));
  return {};
}

// Before opset 16 regions were not moved by half a pixel.
Status roi_corners(NodeDraft& draft, GraphBuilder&) {
  if (!draft.attributes.has("coordinate_transformation_mode"))
    draft.attributes.set("coordinate_transformation_mode", "output_half_pixel");
  return {};
}

Status refuse_random(NodeDraft&, GraphBuilder&) {
  return refusal(
      "its results are random: no two runs are the same, and nothing of it can be compared; export the model in "
      "inference mode, or make what it draws an input of the model");
}

struct Entry {
  std::string_view op;
  int64_t before;  // applies to nodes of opsets below this one
  Rewrite rewrite;
};

constexpr int64_t kAlways = INT64_MAX;

// Entries of one operator stand in ascending order and run one after another.
constexpr std::array kTable = std::to_array<Entry>({
    {"Abs", 6, drop_training_attributes},
    {"Add", 7, align_operand},
    {"And", 7, align_operand},
    {"BatchNormalization", 9, spatial_batch_norm},
    {"Bernoulli", kAlways, refuse_random},
    {"Cast", 6, cast_type_name},
    {"Ceil", 6, drop_training_attributes},
    {"Clip", 11, clip_limits},
    {"Concat", 4, concat_axis},
    {"DFT", 20, dft_axis},
    {"Div", 7, align_operand},
    {"Dropout", 12, dropout_attributes},
    {"Elu", 6, drop_training_attributes},
    {"Equal", 7, align_operand},
    {"Exp", 6, drop_training_attributes},
    {"Floor", 6, drop_training_attributes},
    {"Gemm", 7, gemm_broadcast},
    {"Greater", 7, align_operand},
    {"GroupNormalization", 21, group_norm_per_channel},
    {"HardSigmoid", 6, drop_training_attributes},
    {"Hardmax", 13, softmax_over_rows},
    {"InstanceNormalization", 6, drop_training_attributes},
    {"LeakyRelu", 6, drop_training_attributes},
    {"Less", 7, align_operand},
    {"Log", 6, drop_training_attributes},
    {"LogSoftmax", 13, softmax_over_rows},
    {"Max", 8, drop_training_attributes},
    {"Mean", 8, drop_training_attributes},
    {"Min", 8, drop_training_attributes},
    {"Mul", 7, align_operand},
    {"Multinomial", kAlways, refuse_random},
    {"Neg", 6, drop_training_attributes},
    {"Or", 7, align_operand},
    {"PRelu", 7, prelu_slope},
    {"Pad", 11, pad_attributes},
    {"Pow", 7, align_operand},
    {"RandomNormal", kAlways, refuse_random},
    {"RandomNormalLike", kAlways, refuse_random},
    {"RandomUniform", kAlways, refuse_random},
    {"RandomUniformLike", kAlways, refuse_random},
    {"Reciprocal", 6, drop_training_attributes},
    {"ReduceL1", 18, reduce_axes},
    {"ReduceL2", 18, reduce_axes},
    {"ReduceLogSum", 18, reduce_axes},
    {"ReduceLogSumExp", 18, reduce_axes},
    {"ReduceMax", 18, reduce_axes},
    {"ReduceMean", 18, reduce_axes},
    {"ReduceMin", 18, reduce_axes},
    {"ReduceProd", 18, reduce_axes},
    {"ReduceSum", 13, reduce_axes},
    {"ReduceSumSquare", 18, reduce_axes},
    {"Relu", 6, drop_training_attributes},
    {"Reshape", 5, reshape_attribute},
    {"Resize", 11, resize_asymmetric},
    {"Resize", kAlways, resize_optional_operands},
    {"RoiAlign", 16, roi_corners},
    {"Scatter", 11, rename_scatter},
    {"Selu", 6, drop_training_attributes},
    {"Sigmoid", 6, drop_training_attributes},
    {"Slice", 10, slice_attributes},
    {"Softmax", 13, softmax_over_rows},
    {"Split", 13, split_sizes},
    {"Split", 18, split_parts},
    {"Sqrt", 6, drop_training_attributes},
    {"Squeeze", 13, axes_to_input},
    {"Sub", 7, align_operand},
    {"Sum", 8, drop_training_attributes},
    {"Tanh", 6, drop_training_attributes},
    {"TopK", 10, topk_attribute},
    {"Unsqueeze", 13, axes_to_input},
    {"Upsample", 9, upsample_attribute},
    {"Upsample", 10, resize_asymmetric},
    {"Xor", 7, align_operand},
});

// Float formats that are computed in float32, where an attribute names them.
void promote_types(NodeDraft& draft) {
  for (const char* name : {"to", "dtype", "output_dtype", "output_datatype"}) {
    const auto* number = draft.attributes.get<int64_t>(name);
    if (number == nullptr) continue;
    const auto dtype = dtype_from_onnx(static_cast<int>(std::clamp<int64_t>(*number, 0, 1000)));
    if (dtype && computed_dtype(*dtype) != *dtype) draft.attributes.set(name, kOnnxFloat);
  }
}

}  // namespace

bool has_upgrade(std::string_view op) {
  return std::any_of(kTable.begin(), kTable.end(), [op](const Entry& entry) { return entry.op == op; });
}

Status upgrade(NodeDraft& draft, GraphBuilder& builder) {
  if (draft.op == "Constant") return {};
  const std::string op = draft.op;  // rewrites may change it
  for (const Entry& entry : kTable) {
    if (entry.op == op && draft.opset < entry.before) OPENRKNN_CHECK_OK(entry.rewrite(draft, builder));
  }
  promote_types(draft);
  return {};
}

}  // namespace openrknn::import
