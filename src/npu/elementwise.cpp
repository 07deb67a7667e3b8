// Add, Sub, Mul, Div, Max, Min; Concat.

#include <algorithm>

#include "model/codec.hpp"
#include "npu/lowering.hpp"
#include "npu/requant.hpp"
#include "npu/tiling.hpp"

namespace openrknn::npu {
Status lower_elementwise(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  const Format format = l.placement(id).format;
  const int rank = l.graph().value(node.outputs[0]).shape->rank();
  OPENRKNN_TRY(const int a, l.operand(node.inputs[0], format, rank));
  OPENRKNN_TRY(const int b, l.operand(node.inputs[1], format, rank));
  OPENRKNN_TRY(const int y, l.result(node.outputs[0], format));
  model::Task task = l.task_for(id, model::TaskKind::kElementwise, node.op);
  task.inputs = {a, b};
  task.outputs = {y};
  OPENRKNN_TRY(const ActivationRequest request, carried_activation(l.graph(), node));
  if (format == Format::kInt8) {
    const QuantParams& qa = *l.tensor(a).quant;
    const QuantParams& qb = *l.tensor(b).quant;
    const QuantParams& out = *l.tensor(y).quant;
    double v_scale = 0;
    if (node.op == "Mul") {
      v_scale = static_cast<double>(qa.scale()) * qb.scale();
      task.operands = {{-qa.zero_point(), 1, 0}, {-qb.zero_point(), 1, 0}};
    } else {
      const OperandPair pair = operand_pair(qa.scale(), qa.zero_point(), qb.scale(), qb.zero_point());
      v_scale = pair.v_scale;
      task.operands = {pair.a, pair.b};
    }
    OPENRKNN_TRY(const double before, integer_activation(l, request, v_scale, out, task.activation));
    model::Requant requant;
    requant.channel_multiplier_bypass = true;
    output_constants(before, out, requant);
    task.requant = requant;
  } else {
    half_activation(l, request, task.activation);
  }
  task.tiles = tile_elementwise(l.target(), l.options(), l.tensor(y));
  l.emit(std::move(task));
  return {};
}

Status lower_concat(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  const Format format = l.placement(id).format;
  const int rank = l.graph().value(node.outputs[0]).shape->rank();
  OPENRKNN_TRY(const int axis, normalize_axis(node.attributes.int_or("axis", 0), rank));
  model::Task task = l.task_for(id, model::TaskKind::kConcat, "Concat");
  for (const ValueId v : node.inputs) {
    OPENRKNN_TRY(const int t, l.operand(v, format, rank));
    task.inputs.push_back(t);
  }
  OPENRKNN_TRY(const int y, l.result(node.outputs[0], format));
  task.outputs = {y};
  task.attributes.set("axis", axis);
  // Along the channels, on a plane border, a producer that nobody else reads writes into the result.
  int64_t channel = 0;
  size_t inside = 0;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const model::TensorDesc& in = l.tensor(task.inputs[i]);
    const model::TensorDesc& out = l.tensor(y);
    const bool aligned = axis == 1 && out.layout == model::Layout::kNC1HWC2 && channel % out.c2 == 0;
    const bool same_numbers = in.quant == out.quant && in.constant == model::kNone;
    const bool alone = l.only_reader(node.inputs[i]) && l.graph().value(node.inputs[i]).producer.valid();
    if (aligned && same_numbers && alone && l.place_inside(task.inputs[i], y, channel / out.c2)) ++inside;
    if (rank >= 2) channel += l.tensor(task.inputs[i]).cube.c;
  }
  task.in_place = inside == task.inputs.size();
  if (format == Format::kInt8) {
    const QuantParams& out = *l.tensor(y).quant;
    model::Requant requant;
    requant.channel_multiplier_bypass = true;
    requant.zero_point = out.zero_point();
    task.requant = requant;
    for (const int t : task.inputs) {
      const QuantParams& in = *l.tensor(t).quant;
      const FixedRatio ratio = fixed_ratio(static_cast<double>(in.scale()) / out.scale());
      task.operands.push_back(in == out ? model::Operand{-in.zero_point(), 1, 0}
                                        : model::Operand{-in.zero_point(), ratio.multiplier, ratio.shift});
    }
  }
  l.emit(std::move(task));
  return {};
}

}  // namespace openrknn::npu
