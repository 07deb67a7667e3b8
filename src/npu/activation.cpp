// Activations: clamps and slopes in the integer domain, tables, and activation nodes that stand alone.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "npu/lowering.hpp"
#include "npu/requant.hpp"
#include "npu/table.hpp"
#include "npu/tiling.hpp"

namespace openrknn::npu {
namespace {

// A rail that lies within half a step of the limit stands for it; beyond, v is clamped before the output stage.
constexpr double kRailTolerance = 0.51;

void integer_clamp(double low, double high, double v_scale, const QuantParams& out, model::Activation& a) {
  const double step = out.scale();
  const double lowest = (-128.0 - out.zero_point()) * step;
  const double highest = (127.0 - out.zero_point()) * step;
  a.min = INT32_MIN;
  a.max = INT32_MAX;
  if (lowest < low - kRailTolerance * step)
    a.min = std::max<int64_t>(INT32_MIN, static_cast<int64_t>(std::nearbyint(low / v_scale)));
  if (highest > high + kRailTolerance * step) {
    a.max = static_cast<int64_t>(
        std::clamp(std::nearbyint(high / v_scale), static_cast<double>(INT32_MIN), static_cast<double>(INT32_MAX)));
  }
  if (a.min != INT32_MIN || a.max != INT32_MAX) a.kind = model::ActivationKind::kClamp;
}

std::vector<float> slopes_of(const ActivationRequest& r) {
  if (!r.slopes.empty()) return r.slopes;
  return {r.spec.alpha};
}

void integer_slopes(Lowering& l, const ActivationRequest& r, model::Activation& a) {
  const std::vector<float> slopes = slopes_of(r);
  double largest = 0;
  for (const float s : slopes) largest = std::max(largest, std::abs(static_cast<double>(s)));
  a.kind = model::ActivationKind::kPRelu;
  a.slope_shift = 14;
  while (a.slope_shift > 0 && largest * std::ldexp(1.0, a.slope_shift) > 32767.0) --a.slope_shift;
  std::vector<int16_t> q;
  for (const float s : slopes)
    q.push_back(static_cast<int16_t>(
        std::clamp(std::nearbyint(std::ldexp(static_cast<double>(s), a.slope_shift)), -32768.0, 32767.0)));
  a.slope_count = static_cast<int32_t>(q.size());
  a.slopes = l.add_blob(q);
}

std::pair<double, double> clamp_limits(const ActivationSpec& spec) {
  if (spec.kind == Activation::kRelu) return {0.0, std::numeric_limits<double>::infinity()};
  return {spec.min, spec.max};
}

bool is_clamp(Activation kind) { return kind == Activation::kRelu || kind == Activation::kClip; }
bool is_slope(Activation kind) { return kind == Activation::kLeakyRelu || kind == Activation::kPRelu; }

Result<std::vector<float>> slope_values(const Graph& graph, ValueId id) {
  const Tensor* slope = graph.constant(id);
  if (slope == nullptr)
    return Error{ErrorCode::kUnsupported, "PRelu with a computed slope", graph.value(id).name,
                 "on the NPU it must be constant", ""};
  const auto values = slope->as<float>();
  return std::vector<float>(values.begin(), values.end());
}

}  // namespace

Result<ActivationRequest> carried_activation(const Graph& graph, const Node& node) {
  ActivationRequest r;
  r.function = node.attributes.string_or("activation", "");
  OPENRKNN_TRY(r.spec, fused_activation(node.attributes));
  if (r.spec.kind == Activation::kPRelu) {
    OPENRKNN_TRY(r.slopes, slope_values(graph, node.inputs.at(4)));
  }
  return r;
}

Result<ActivationRequest> own_activation(const Graph& graph, const Node& node) {
  ActivationRequest r;
  r.function = node.op;
  OPENRKNN_TRY(r.spec, activation_of(node.op, node.attributes));
  if (node.op == "Clip") {
    const auto limit = [&](size_t i, float fallback) {
      const Tensor* t = i < node.inputs.size() ? graph.constant(node.inputs[i]) : nullptr;
      return t == nullptr || t->elements() == 0 ? fallback : static_cast<float>(to_doubles(t->view())[0]);
    };
    r.spec.min = limit(1, r.spec.min);
    r.spec.max = limit(2, r.spec.max);
  }
  if (node.op == "PRelu") {
    OPENRKNN_TRY(r.slopes, slope_values(graph, node.inputs.at(1)));
  }
  return r;
}

ActivationRequest channel_part(const ActivationRequest& request, int64_t first, int64_t count) {
  ActivationRequest part = request;
  if (part.slopes.size() > 1)
    part.slopes.assign(request.slopes.begin() + first, request.slopes.begin() + first + count);
  return part;
}

Result<double> integer_activation(Lowering& l, const ActivationRequest& request, double v_scale, const QuantParams& out,
                                  model::Activation& a) {
  const ActivationSpec& spec = request.spec;
  if (spec.kind == Activation::kNone) return v_scale;
  a.function = request.function;
  if (is_clamp(spec.kind)) {
    const auto [low, high] = clamp_limits(spec);
    integer_clamp(low, high, v_scale, out, a);
    return v_scale;
  }
  if (is_slope(spec.kind)) {
    integer_slopes(l, request, a);
    return v_scale;
  }
  if (!is_table_function(spec.kind))
    return Error{ErrorCode::kUnsupported, "activation without an NPU form", request.function,
                 "it is no clamp, slope or table", ""};
  const double step = out.scale();
  const IntegerTable t =
      integer_table(spec, (-128.0 - out.zero_point()) * step, (127.0 - out.zero_point()) * step, step);
  const FixedRatio index = fixed_ratio(16384.0 * v_scale / t.range);
  a.kind = model::ActivationKind::kTable;
  a.index_scale = index.multiplier;
  a.index_shift = index.shift;
  a.table = l.add_blob(std::as_bytes(std::span(t.table)));
  return t.value_scale;
}

void half_activation(Lowering& l, const ActivationRequest& request, model::Activation& a) {
  const ActivationSpec& spec = request.spec;
  if (spec.kind == Activation::kNone) return;
  a.function = request.function;
  if (is_clamp(spec.kind)) {
    const auto [low, high] = clamp_limits(spec);
    a.kind = model::ActivationKind::kClamp;
    a.fmin = static_cast<float>(low);
    a.fmax = static_cast<float>(high);
    return;
  }
  if (is_slope(spec.kind)) {
    const std::vector<float> slopes = slopes_of(request);
    a.kind = model::ActivationKind::kPRelu;
    a.slope_count = static_cast<int32_t>(slopes.size());
    a.slopes = l.add_blob(slopes);
    return;
  }
  if (!is_gate_function(spec.kind)) {
    a.kind = model::ActivationKind::kFunction;
    a.alpha = spec.alpha;
    a.beta = spec.beta;
    return;
  }
  const HalfTable t = half_table(spec);
  a.kind = model::ActivationKind::kTable;
  a.findex_scale = static_cast<float>(16384.0 / t.range);
  a.out_scale = static_cast<float>(t.value_scale);
  a.form = t.form;
  a.table = l.add_blob(std::as_bytes(std::span(t.table)));
}

void output_constants(double scale_before, const QuantParams& out, model::Requant& requant) {
  const FixedRatio ratio = fixed_ratio(scale_before / out.scale());
  requant.multiplier = ratio.multiplier;
  requant.shift = ratio.shift;
  requant.zero_point = out.zero_point();
}

Status lower_activation(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  const Format format = l.placement(id).format;
  OPENRKNN_TRY(const int x, l.operand(node.inputs[0], format));
  OPENRKNN_TRY(const int y, l.result(node.outputs[0], format));
  model::Task task = l.task_for(id, model::TaskKind::kActivation, node.op);
  task.inputs = {x};
  task.outputs = {y};
  OPENRKNN_TRY(const ActivationRequest request, own_activation(l.graph(), node));
  if (format == Format::kInt8) {
    const QuantParams& in = *l.tensor(x).quant;
    const QuantParams& out = *l.tensor(y).quant;
    OPENRKNN_TRY(const double before, integer_activation(l, request, in.scale(), out, task.activation));
    model::Requant requant;
    requant.channel_multiplier_bypass = true;
    output_constants(before, out, requant);
    task.requant = requant;
    task.operands = {{-in.zero_point(), 1, 0}};
  } else {
    half_activation(l, request, task.activation);
  }
  task.tiles = tile_elementwise(l.target(), l.options(), l.tensor(y));
  l.emit(std::move(task));
  return {};
}

}  // namespace openrknn::npu
