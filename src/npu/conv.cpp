// Conv and ConvTranspose: weights to cubes, requantization constants, groups to tasks.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/half.hpp"
#include "kernels/conv_plan.hpp"
#include "model/codec.hpp"
#include "npu/lowering.hpp"
#include "npu/requant.hpp"
#include "npu/tiling.hpp"
#include "quant/weights.hpp"

namespace openrknn::npu {
namespace {

using model::ConvMode;
using model::Convolution;
using model::Task;

// A depthwise cube with fewer channels than a group holds no more lanes than this many at a time (npu.md 2.3).
constexpr int64_t kFewestDepthwiseLanes = 16;

// A convolution in the form the hardware computes: weights [oc][ic][kh][kw] (group-local ic), all in two dimensions.
struct Source {
  NodeId id;
  const Node* node = nullptr;
  bool transposed = false;
  int64_t group = 1;
  int64_t in_channels = 0, out_channels = 0;  // of the whole node
  int64_t in_per_group = 0, out_per_group = 0;
  int64_t kh = 1, kw = 1;
  std::array<int32_t, 2> stride{1, 1}, dilation{1, 1};
  std::array<int32_t, 4> pad{0, 0, 0, 0};
  std::vector<float> weights;        // [oc][in_per_group][kh][kw]
  std::vector<float> bias;           // empty: none
  std::vector<double> weight_scale;  // int8: per output channel
  std::vector<int32_t> weight_zero;
  bool per_layer = false;

  bool depthwise() const { return group > 1 && in_per_group == 1 && out_per_group == 1; }
  std::span<const float> kernel(int64_t oc) const {
    const auto n = static_cast<size_t>(in_per_group * kh * kw);
    return {weights.data() + static_cast<size_t>(oc) * n, n};
  }
};

// The channels that one task computes.
struct Part {
  int64_t ic = 0, ics = 0, oc = 0, ocs = 0;
  int64_t groups = 1;  // groups of the node inside it, as a block diagonal
  std::string suffix;
};

// Kernel, stride, dilation and pads by the rules of shape inference (auto_pad, output_shape and output_padding
// included); one spatial axis becomes the columns.
void read_geometry(Source& s, const ConvPlan& plan) {
  const size_t first = plan.axes.size() == 1 ? 1 : 0;
  std::array<int64_t, 2> kernel{1, 1};
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const WindowAxis& axis = plan.axes[i];
    const size_t to = first + i;
    kernel[to] = axis.kernel;
    s.stride[to] = static_cast<int32_t>(axis.stride);
    s.dilation[to] = static_cast<int32_t>(axis.dilation);
    s.pad[to] = static_cast<int32_t>(axis.pad_begin);
    s.pad[to + 2] = static_cast<int32_t>(axis.pad_end);
  }
  s.kh = kernel[0];
  s.kw = kernel[1];
}

// ConvTranspose's [ic][oc / group][kh][kw] as the weights of the equivalent stride-1 convolution: transposed and
// flipped.
std::vector<float> flipped_weights(std::span<const float> w, const Source& s) {
  std::vector<float> out(w.size());
  const int64_t taps = s.kh * s.kw;
  for (int64_t ic = 0; ic < s.in_channels; ++ic) {
    const int64_t g = ic / s.in_per_group;
    for (int64_t o = 0; o < s.out_per_group; ++o) {
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t from = (ic * s.out_per_group + o) * taps + t;
        const int64_t to = ((g * s.out_per_group + o) * s.in_per_group + ic % s.in_per_group) * taps + (taps - 1 - t);
        out[static_cast<size_t>(to)] = w[static_cast<size_t>(from)];
      }
    }
  }
  return out;
}

Result<Source> read_source(const Graph& graph, NodeId id) {
  Source s;
  s.id = id;
  s.node = &graph.node(id);
  s.transposed = s.node->op == "ConvTranspose";
  const Tensor& w = *graph.constant(s.node->inputs[1]);
  const Shape& x = *graph.value(s.node->inputs[0]).shape;
  OPENRKNN_TRY(const ConvPlan plan, s.transposed ? transposed_conv_plan(s.node->attributes, x, w.shape())
                                                 : conv_plan(s.node->attributes, x, w.shape()));
  s.group = plan.groups;
  s.in_channels = plan.in_channels;
  s.out_channels = plan.out_channels;
  s.in_per_group = plan.group_in();
  s.out_per_group = plan.group_out();
  read_geometry(s, plan);
  const auto values = w.as<float>();
  s.weights = s.transposed ? flipped_weights(values, s) : std::vector<float>(values.begin(), values.end());
  if (s.node->inputs.size() > 2 && s.node->inputs[2].valid()) {
    const auto b = graph.constant(s.node->inputs[2])->as<float>();
    s.bias.assign(b.begin(), b.end());
  }
  if (const auto& q = graph.value(s.node->inputs[1]).quant) {
    s.per_layer = q->granularity == Granularity::kTensor;
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      const auto i =
          static_cast<size_t>(s.per_layer                                               ? 0
                              : q->scales.size() == static_cast<size_t>(s.out_channels) ? oc
                                                                                        : oc / s.out_per_group);
      s.weight_scale.push_back(q->scales[i]);
      s.weight_zero.push_back(q->zero_points[i]);
    }
  }
  return s;
}

void set_weight_scale(Source& s, size_t oc, double scale) {
  const double lowest = (-128.0 - s.weight_zero[oc]) * s.weight_scale[oc];
  s.weight_scale[oc] = static_cast<float>(scale);
  s.weight_zero[oc] =
      static_cast<int32_t>(std::clamp(std::nearbyint(-128.0 - lowest / s.weight_scale[oc]), -128.0, 127.0));
}

// Channels whose multiplier would fall below 128 of 32767, channels of zeros, and channels whose bias would not fit 32
// bits get a coarser weight scale (DESIGN section 5).
void coarsen_weight_scales(Source& s, double input_scale) {
  const auto is_zero = [&](size_t oc) {
    const auto k = s.kernel(static_cast<int64_t>(oc));
    return std::all_of(k.begin(), k.end(), [](float x) { return x == 0.0F; });
  };
  constexpr double kBiasLimit = 0x1p29;
  const auto bias_scale = [&](size_t oc) {
    return s.bias.empty() ? 0.0 : std::abs(static_cast<double>(s.bias[oc])) / kBiasLimit / input_scale;
  };
  double largest = 0;
  for (size_t oc = 0; oc < s.weight_scale.size(); ++oc) {
    if (!is_zero(oc)) largest = std::max({largest, s.weight_scale[oc], bias_scale(oc)});
  }
  if (largest == 0) {  // nothing but biases
    for (size_t oc = 0; oc < s.weight_scale.size(); ++oc) largest = std::max(largest, bias_scale(oc) * 512.0);
    if (largest == 0) largest = 1.0;
  }
  if (s.per_layer) {
    double scale = s.weight_scale.empty() ? 1.0 : s.weight_scale[0];
    for (size_t oc = 0; oc < s.weight_scale.size(); ++oc) scale = std::max(scale, bias_scale(oc));
    if (scale > s.weight_scale[0]) {
      for (size_t oc = 0; oc < s.weight_scale.size(); ++oc) set_weight_scale(s, oc, scale);
    }
    return;
  }
  for (size_t oc = 0; oc < s.weight_scale.size(); ++oc) {
    const double wanted =
        is_zero(oc) ? largest : std::max({s.weight_scale[oc], bias_scale(oc), largest * kSmallestChannelShare});
    if (wanted > s.weight_scale[oc] || is_zero(oc)) set_weight_scale(s, oc, wanted);
  }
}

std::vector<Part> parts_of(const Source& s, int64_t c2) {
  if (s.group == 1 || s.depthwise()) return {{0, s.in_channels, 0, s.out_channels, 1, ""}};
  // The fewest groups whose channels fill whole planes on both sides: each such bundle is one dense task on views.
  int64_t bundle = 1;
  while (bundle < s.group &&
         (s.group % bundle != 0 || bundle * s.in_per_group % c2 != 0 || bundle * s.out_per_group % c2 != 0))
    ++bundle;
  std::vector<Part> parts;
  for (int64_t g = 0; g < s.group; g += bundle) {
    parts.push_back({g * s.in_per_group, bundle * s.in_per_group, g * s.out_per_group, bundle * s.out_per_group, bundle,
                     bundle == s.group ? "" : fmt::format("_group{}", g / bundle)});
  }
  return parts;
}

// Calls f(oc, ic, tap, weight) for the part's dense weights; ic is local to the part. Zeros off the diagonal are
// skipped.
template <typename F>
void for_weights(const Source& s, const Part& p, F&& f) {
  const int64_t taps = s.kh * s.kw;
  for (int64_t o = 0; o < p.ocs; ++o) {
    const auto kernel = s.kernel(p.oc + o);
    const int64_t first = p.groups == 1 ? 0 : o / s.out_per_group * s.in_per_group;
    for (int64_t i = 0; i < s.in_per_group; ++i) {
      for (int64_t t = 0; t < taps; ++t) f(o, first + i, t, kernel[static_cast<size_t>(i * taps + t)]);
    }
  }
}

class ConvLowering {
 public:
  ConvLowering(Lowering& l, Source source)
      : l_(l), s_(std::move(source)), integer_(l.placement(s_.id).format == Format::kInt8) {}

  Status run() {
    const Format format = integer_ ? Format::kInt8 : Format::kFloat16;
    OPENRKNN_TRY(input_, l_.operand(s_.node->inputs[0], format));
    if (s_.node->inputs.size() > 3 && s_.node->inputs[3].valid()) {
      OPENRKNN_TRY(residual_, l_.operand(s_.node->inputs[3], format));
    }
    OPENRKNN_TRY(output_, l_.result(s_.node->outputs[0], format));
    OPENRKNN_TRY(request_, carried_activation(l_.graph(), *s_.node));
    if (integer_) coarsen_weight_scales(s_, l_.tensor(input_).quant->scale());
    const auto parts = parts_of(s_, l_.tensor(output_).c2);
    const auto inputs = split(input_, parts, false);
    const auto results = split(output_, parts, true);
    std::vector<int> residuals;
    if (residual_ != model::kNone) residuals = residual_ == input_ ? inputs : split(residual_, parts, true);
    if (parts.size() > 1) {
      emit_addressing("Split", {input_}, inputs);
      if (residual_ != model::kNone && residual_ != input_) emit_addressing("Split", {residual_}, residuals);
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      OPENRKNN_CHECK_OK(emit_part(parts[i], inputs[i], results[i], residuals.empty() ? model::kNone : residuals[i]));
    }
    if (parts.size() > 1) emit_addressing("Concat", results, {output_});
    return {};
  }

 private:
  int view(int tensor, int64_t first, int64_t count, bool whole, const std::string& suffix) {
    return whole ? tensor : l_.channel_view(tensor, first, count, l_.tensor(tensor).name + suffix);
  }

  // Parts of a tensor as tensors of their own: addressing only, but the Program says it.
  std::vector<int> split(int tensor, const std::vector<Part>& parts, bool outputs) {
    std::vector<int> views;
    for (const Part& p : parts) {
      views.push_back(view(tensor, outputs ? p.oc : p.ic, outputs ? p.ocs : p.ics, parts.size() == 1, p.suffix));
    }
    return views;
  }

  void emit_addressing(const char* op, std::vector<int> inputs, std::vector<int> outputs) {
    Task task = l_.task_for(s_.id, op == std::string("Concat") ? model::TaskKind::kConcat : model::TaskKind::kMove, op);
    task.name = l_.tensor(outputs[0]).name;
    task.attributes.set("axis", 1);
    task.inputs = std::move(inputs);
    task.outputs = std::move(outputs);
    task.in_place = true;
    if (task.kind == model::TaskKind::kConcat && integer_) {
      const QuantParams& q = *l_.tensor(task.outputs[0]).quant;
      model::Requant requant;
      requant.channel_multiplier_bypass = true;
      requant.zero_point = q.zero_point();
      task.requant = requant;
      task.operands.assign(task.inputs.size(), model::Operand{-q.zero_point(), 1, 0});
    }
    l_.emit(std::move(task));
  }

  Status emit_part(const Part& p, int x, int y, int residual) {
    Task task = l_.task_for(s_.id, model::TaskKind::kConv, s_.node->op);
    task.name = l_.tensor(y).name;
    task.inputs = {x};
    task.outputs = {y};
    if (residual != model::kNone) task.inputs.push_back(residual);
    OPENRKNN_CHECK_OK(set_geometry(task, p));
    Convolution& conv = *task.conv;
    if (integer_) {
      OPENRKNN_CHECK_OK(set_integer(task, p, x, y));
    } else {
      OPENRKNN_CHECK_OK(set_half(task, p));
    }
    auto tiles = tile_convolution(l_.target(), l_.options(), conv, l_.tensor(x), l_.tensor(y));
    if (!tiles.ok()) return tiles.error();
    task.tiles = std::move(*tiles);
    const model::Cube& out = l_.tensor(y).cube;
    const model::Cube& in = l_.tensor(x).cube;
    const int64_t pixels = s_.transposed ? in.n * in.h * in.w : out.n * out.h * out.w;
    task.macs = pixels * s_.kh * s_.kw * p.ocs * s_.in_per_group;
    if (s_.transposed) task.macs = pixels * s_.kh * s_.kw * p.ics * s_.out_per_group;
    l_.emit(std::move(task));
    return {};
  }

  Status set_geometry(Task& task, const Part& p) {
    Convolution conv;
    conv.mode = s_.depthwise() ? ConvMode::kDepthwise : ConvMode::kDirect;
    conv.transposed = s_.transposed;
    conv.kernel = {static_cast<int32_t>(s_.kh), static_cast<int32_t>(s_.kw)};
    conv.stride = s_.stride;
    conv.dilation = s_.dilation;
    conv.pad = s_.pad;
    conv.in_channels = static_cast<int32_t>(p.ics);
    conv.out_channels = static_cast<int32_t>(p.ocs);
    conv.weight_dtype = integer_ ? DType::kInt8 : DType::kFloat16;
    const target::Lanes& lanes = l_.lanes(conv.weight_dtype);
    if (conv.mode == ConvMode::kDepthwise) {
      conv.kernel_group = 1;
      conv.channel_group =
          static_cast<int32_t>(std::min<int64_t>(lanes.depthwise_group, align_up(p.ocs, kFewestDepthwiseLanes)));
    } else {
      conv.channel_group = lanes.channel_group;
      conv.kernel_group = kernel_group_that_fits(l_.target(), lanes, conv, l_.tensor(task.inputs[0]));
      if (conv.kernel_group == 0) {
        return l_.fail(
            s_.id,
            fmt::format("a kernel of {} x {} x {} and its input window do not fit the convolution buffer of {} bytes",
                        p.ics, s_.kh, s_.kw, l_.target().cbuf.bytes()));
      }
    }
    task.conv = conv;
    return {};
  }

  std::vector<int8_t> integer_weights(const Part& p) const {
    const int64_t taps = s_.kh * s_.kw;
    const int64_t per_kernel = (s_.depthwise() ? 1 : p.ics) * taps;
    std::vector<int8_t> w(static_cast<size_t>(p.ocs * per_kernel));
    for (int64_t o = 0; o < p.ocs; ++o) {
      std::fill_n(w.begin() + o * per_kernel, per_kernel,
                  static_cast<int8_t>(s_.weight_zero[static_cast<size_t>(p.oc + o)]));
    }
    for_weights(s_, p, [&](int64_t o, int64_t i, int64_t t, float value) {
      const auto oc = static_cast<size_t>(p.oc + o);
      w[static_cast<size_t>(o * per_kernel + i * taps + t)] =
          quant::quantize_value(value, s_.weight_scale[oc], s_.weight_zero[oc]);
    });
    return w;
  }

  Status set_integer(Task& task, const Part& p, int x, int y) {
    Convolution& conv = *task.conv;
    const QuantParams& in = *l_.tensor(x).quant;
    const QuantParams& out = *l_.tensor(y).quant;
    const double input_scale = in.scale();
    const int32_t input_zero = in.zero_point();
    conv.pad_value = input_zero;
    const std::vector<int8_t> w = integer_weights(p);
    const size_t per_kernel = w.size() / static_cast<size_t>(p.ocs);
    model::ChannelParams params;
    std::vector<ChannelGain> gains;
    QuantParams weight_quant{DType::kInt8, s_.per_layer ? Granularity::kTensor : Granularity::kChannel, 0, 0, {}, {}};
    for (int64_t o = 0; o < p.ocs; ++o) {
      const auto oc = static_cast<size_t>(p.oc + o);
      const int32_t zw = s_.weight_zero[oc];
      const double scale = input_scale * s_.weight_scale[oc];
      int64_t sum = 0;
      int64_t positive = 0;
      int64_t negative = 0;
      for (size_t k = 0; k < per_kernel; ++k) {
        const int64_t d = w[static_cast<size_t>(o) * per_kernel + k] - zw;
        sum += d;
        (d > 0 ? positive : negative) += d;
      }
      const double bias = s_.bias.empty() ? 0.0 : std::nearbyint(s_.bias[oc] / scale);
      params.bias.push_back(static_cast<int32_t>(
          std::clamp<int64_t>(static_cast<int64_t>(bias) - input_zero * sum, INT32_MIN, INT32_MAX)));
      params.minus_weight_zero.push_back(-zw);
      const auto low = static_cast<double>(-128 - input_zero);
      const auto high = static_cast<double>(127 - input_zero);
      const double top = bias + static_cast<double>(positive) * high + static_cast<double>(negative) * low;
      const double bottom = bias + static_cast<double>(positive) * low + static_cast<double>(negative) * high;
      gains.push_back({scale, std::max(std::abs(top), std::abs(bottom))});
      if (!s_.per_layer || o == 0) {
        weight_quant.scales.push_back(static_cast<float>(s_.weight_scale[oc]));
        weight_quant.zero_points.push_back(zw);
      }
    }
    double finest = 0;
    const QuantParams* residual = residual_ == model::kNone ? nullptr : &*l_.tensor(residual_).quant;
    if (residual != nullptr) finest = residual->scale() / 32767.0;
    const ChannelStage stage = channel_stage_constants(l_.profile(), gains, s_.per_layer, finest);
    params.multiplier = stage.multipliers;
    if (stage.bypass) params.multiplier.assign(static_cast<size_t>(p.ocs), 1);
    conv.weight_quant = weight_quant;
    conv.weights = l_.add_blob(model::pack_weights(conv, std::as_bytes(std::span(w))));
    conv.params = l_.add_blob(model::pack_params(l_.profile(), params));
    model::Requant requant;
    requant.channel_multiplier_bypass = stage.bypass;
    requant.channel_shift = requant.channel_shift_negative = stage.shift;
    if (residual != nullptr) {
      const FixedRatio r = fixed_ratio(residual->scale() / stage.v_scale);
      task.operands.push_back({-residual->zero_point(), r.multiplier, r.shift});
    }
    auto before = integer_activation(l_, channel_part(request_, p.oc, p.ocs), stage.v_scale, out, task.activation);
    if (!before.ok()) return before.error();
    output_constants(*before, out, requant);
    task.requant = requant;
    return {};
  }

  Status set_half(Task& task, const Part& p) {
    Convolution& conv = *task.conv;
    const int64_t taps = s_.kh * s_.kw;
    const int64_t per_kernel = (s_.depthwise() ? 1 : p.ics) * taps;
    std::vector<uint16_t> w(static_cast<size_t>(p.ocs * per_kernel), 0);
    for_weights(s_, p, [&](int64_t o, int64_t i, int64_t t, float value) {
      w[static_cast<size_t>(o * per_kernel + i * taps + t)] = float_to_half(value);
    });
    conv.weights = l_.add_blob(model::pack_weights(conv, std::as_bytes(std::span(w))));
    if (!s_.bias.empty()) {
      const std::vector<float> bias(s_.bias.begin() + p.oc, s_.bias.begin() + p.oc + p.ocs);
      conv.params = l_.add_blob(bias);
    }
    half_activation(l_, channel_part(request_, p.oc, p.ocs), task.activation);
    return {};
  }

  Lowering& l_;
  Source s_;
  bool integer_;
  int input_ = model::kNone, residual_ = model::kNone, output_ = model::kNone;
  ActivationRequest request_;
};

}  // namespace

Status lower_conv(Lowering& l, NodeId id) {
  OPENRKNN_TRY(Source source, read_source(l.graph(), id));
  return ConvLowering(l, std::move(source)).run();
}

}  // namespace openrknn::npu
