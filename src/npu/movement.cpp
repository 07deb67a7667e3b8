// Operators that move elements, functions modelled in fp16, and CPU tasks.
#include <algorithm>

#include "base/half.hpp"
#include "model/codec.hpp"
#include "npu/lowering.hpp"
#include "ops/registry.hpp"
#include "quant/weights.hpp"

namespace openrknn::npu {
namespace {

bool same_cube(const model::TensorDesc& a, const model::TensorDesc& b) {
  return a.layout == model::Layout::kNC1HWC2 && b.layout == a.layout && a.cube == b.cube && a.dtype == b.dtype;
}

bool is_reshape(const std::string& op) {
  return op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Identity" ||
         op == "Dropout";
}

// A cube whose NC1HWC2 bytes do not change: the same cube, or pixels in rows of another length.
bool same_bytes(const model::TensorDesc& a, const model::TensorDesc& b) {
  if (same_cube(a, b)) return true;
  return a.layout == model::Layout::kPlain && b.layout == model::Layout::kPlain && a.dtype == b.dtype;
}

// Pad's constant in the units of the raw elements: the quantized value, or the half's bits. Defined as the zero of the
// type.
Result<Tensor> raw_pad_value(const Lowering& l, const Node& node, const model::TensorDesc& x) {
  double value = 0;
  if (node.inputs.size() > 2 && node.inputs[2].valid()) {
    const Tensor* t = l.graph().constant(node.inputs[2]);
    if (t == nullptr)
      return Error{ErrorCode::kUnsupported, "Pad with a computed value", node.name, "it must be constant", ""};
    value = to_doubles(t->view())[0];
  }
  Tensor raw(x.dtype, Shape{});
  if (x.dtype == DType::kInt8) {
    raw.mutable_as<int8_t>()[0] =
        quant::quantize_value(static_cast<float>(value), x.quant->scale(), x.quant->zero_point());
  } else if (x.dtype == DType::kFloat16) {
    raw.mutable_as<uint16_t>()[0] = float_to_half(static_cast<float>(value));
  } else {
    raw = cast(Tensor::scalar(value).view(), x.dtype);
  }
  return raw;
}

// Slice and Split along the channels on plane borders are addressing: the results lie inside the operand.
bool views_of_channels(Lowering& l, const Node& node, const model::Task& task) {
  if (node.op != "Split" && node.op != "Slice") return false;
  const model::TensorDesc& x = l.tensor(task.inputs[0]);
  if (x.layout != model::Layout::kNC1HWC2 || x.constant != model::kNone || x.shape.rank() < 2) return false;
  int64_t first = 0;
  if (node.op == "Split") {
    if (normalize_axis(node.attributes.int_or("axis", 0), x.shape.rank()).value() != 1) return false;
  } else {
    const Tensor* starts = l.graph().constant(node.inputs[1]);
    const Tensor* axes = node.inputs.size() > 3 ? l.graph().constant(node.inputs[3]) : nullptr;
    const Tensor* steps = node.inputs.size() > 4 ? l.graph().constant(node.inputs[4]) : nullptr;
    if (starts == nullptr || axes == nullptr || starts->elements() != 1) return false;
    if (node.inputs.size() > 4 && (steps == nullptr || to_ints(steps->view())[0] != 1)) return false;
    const auto axis = normalize_axis(to_ints(axes->view())[0], x.shape.rank());
    if (!axis.ok() || *axis != 1) return false;
    first = to_ints(starts->view())[0];
    first = std::clamp<int64_t>(first < 0 ? first + x.cube.c : first, 0, x.cube.c);
  }
  int64_t channel = first;
  for (const int y : task.outputs) {
    const model::Cube& c = l.tensor(y).cube;
    if (channel % x.c2 != 0 || c.h != x.cube.h || c.w != x.cube.w || c.n != x.cube.n) return false;
    channel += c.c;
  }
  channel = first;
  for (const int y : task.outputs) {
    if (!l.place_inside(y, task.inputs[0], channel / x.c2)) return false;
    channel += l.tensor(y).cube.c;
  }
  return true;
}

}  // namespace

Status lower_movement(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  const Format format = l.placement(id).format;
  model::Task task = l.task_for(id, model::TaskKind::kMove, node.op);
  task.attributes = node.attributes;
  OPENRKNN_TRY(const int x, l.operand(node.inputs[0], format));
  task.inputs = {x};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (!v.valid()) {
      task.inputs.push_back(model::kNone);
    } else if (node.op == "Pad" && i == 2) {
      OPENRKNN_TRY(const Tensor raw, raw_pad_value(l, node, l.tensor(x)));
      task.inputs.push_back(l.plain_constant(l.graph().value(v).name, raw));
    } else {
      OPENRKNN_TRY(const int t, l.operand(v, Format::kRaw));
      task.inputs.push_back(t);
    }
  }
  if (node.op == "Pad" && (node.inputs.size() < 3 || !node.inputs[2].valid())) {
    OPENRKNN_TRY(const Tensor raw, raw_pad_value(l, node, l.tensor(x)));
    const int t = l.plain_constant(node.name + "_pad_value", raw);
    task.inputs.resize(std::max<size_t>(task.inputs.size(), 3), model::kNone);
    task.inputs[2] = t;
  }
  for (const ValueId v : node.outputs) {
    if (!v.valid()) {
      task.outputs.push_back(model::kNone);
      continue;
    }
    OPENRKNN_TRY(const int y, l.result(v, format));
    task.outputs.push_back(y);
  }
  const bool constant_source = l.tensor(x).constant != model::kNone;
  if (is_reshape(node.op) && task.outputs.size() == 1 && !constant_source &&
      same_bytes(l.tensor(x), l.tensor(task.outputs[0]))) {
    task.in_place = l.place_inside(task.outputs[0], x, 0);
  } else if (std::find(task.outputs.begin(), task.outputs.end(), model::kNone) == task.outputs.end()) {
    task.in_place = views_of_channels(l, node, task);
  }
  l.emit(std::move(task));
  return {};
}

Status lower_matmul(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  model::Task task = l.task_for(id, model::TaskKind::kMatMul, node.op);
  for (const ValueId v : node.inputs) {
    OPENRKNN_TRY(const int t, l.operand(v, Format::kFloat16));
    task.inputs.push_back(t);
  }
  OPENRKNN_TRY(const int y, l.result(node.outputs[0], Format::kFloat16));
  task.outputs.push_back(y);
  task.macs = ops::macs(l.graph(), id);
  l.emit(std::move(task));
  return {};
}

Status lower_modelled(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  model::Task task = l.task_for(id, model::TaskKind::kModelled, node.op);
  task.attributes = node.attributes;
  for (const ValueId v : node.inputs) {
    if (!v.valid()) {
      task.inputs.push_back(model::kNone);
      continue;
    }
    const Value& value = l.graph().value(v);
    // The weights of products are halves, as those of convolutions; other constants stay as they are.
    const bool recurrent = node.op == "LSTM" || node.op == "GRU";
    const bool weights = recurrent && value.shape && value.shape->rank() == 3;
    const bool number = is_float(value.dtype) && (l.graph().constant(v) == nullptr || weights);
    OPENRKNN_TRY(const int t, l.operand(v, number ? Format::kFloat16 : Format::kRaw));
    task.inputs.push_back(t);
  }
  for (const ValueId v : node.outputs) {
    if (!v.valid()) {
      task.outputs.push_back(model::kNone);
      continue;
    }
    OPENRKNN_TRY(const int y, l.result(v, Format::kFloat16));
    task.outputs.push_back(y);
  }
  task.macs = ops::macs(l.graph(), id);
  l.emit(std::move(task));
  return {};
}

Status lower_cpu(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  model::Task task = l.task_for(id, model::TaskKind::kCpu, node.op);
  task.attributes = node.attributes;
  for (const ValueId v : node.inputs) {
    if (!v.valid()) {
      task.inputs.push_back(model::kNone);
      continue;
    }
    OPENRKNN_TRY(const int t,
                 l.operand(v, is_float(l.graph().value(v).dtype) && l.graph().constant(v) == nullptr ? Format::kFloat32
                                                                                                     : Format::kRaw));
    task.inputs.push_back(t);
  }
  for (const ValueId v : node.outputs) {
    if (!v.valid()) {
      task.outputs.push_back(model::kNone);
      continue;
    }
    OPENRKNN_TRY(const int y, l.result(v, is_float(l.graph().value(v).dtype) ? Format::kFloat32 : Format::kRaw));
    task.outputs.push_back(y);
  }
  task.macs = ops::macs(l.graph(), id);
  l.emit(std::move(task));
  return {};
}

}  // namespace openrknn::npu
