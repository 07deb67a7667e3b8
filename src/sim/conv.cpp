// Convolution tasks. Fast mode goes by blocks of rows; strict mode by the Program's tiles, each from the input window,
// the weights and the parameters that the tile itself brings.
#include "kernels/npu/conv.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/npu/weight_sums.hpp"
#include "model/codec.hpp"
#include "sim/conv_target.hpp"
#include "sim/parts.hpp"
#include "sim/pipeline.hpp"
#include "sim/runner.hpp"
#include "sim/slab.hpp"

namespace openrknn::sim {
namespace {

using model::Convolution;

constexpr int64_t kBlockBytes = 1 << 20;  // input of a block of rows
// Halves become doubles, which are to stay in the second cache; filters are brought to doubles once a block, which
// wants some results.
constexpr int64_t kHalfBlockBytes = 1 << 17, kHalfBlockPixels = 1024;
constexpr size_t kMostKeptWeights = size_t{4} << 20;  // bytes of unpacked weights that wait for the next task's

using Pair = std::array<int64_t, 2>;  // of rows and columns

// Which pixels a result meets: stride * result - lead + dilation * tap, of the input or, when `spread` is more than 1,
// of the input with so many rows and columns for each one.
struct Windows {
  Pair kernel, stride, lead, dilation, spread{1, 1};
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilation[axis]; }
};

Windows windows_of(const Convolution& c) {
  const auto pair = [](const auto& from) { return Pair{from[0], from[1]}; };
  Windows w{pair(c.kernel), pair(c.stride), pair(c.pad), pair(c.dilation)};
  if (!c.transposed) return w;
  w.spread = w.stride;
  w.stride = {1, 1};
  for (size_t axis = 0; axis < 2; ++axis) w.lead[axis] = w.reach(axis) - c.pad[axis];
  return w;
}

// Weights in the order of the kernels and parameters, of a range of output channels.
struct Constants {
  int64_t channel = 0, channels = 0;
  Windows windows;
  npu::IntegerFilters filters;
  npu::HalfFilters half_filters;
  model::ChannelParams params;  // int8
  npu::Requantizer requantizer;
  std::vector<float> bias;  // fp16; empty: none
  bool sums = false;        // weight zero points that the filters do not hold
};

// Every so many-th row and column of a transposed convolution's result: the same taps meet real pixels there.
struct Phase {
  Pair first;
  Constants constants;
};

// The result's pixels from `first` on, `step` apart.
View every(View v, const Pair& first, const Pair& step) {
  v.base = v.at(0, first[0], first[1]);
  v.cube.h = ceil_div(v.cube.h - first[0], step[0]);
  v.cube.w = ceil_div(v.cube.w - first[1], step[1]);
  v.row *= step[0];
  v.pixel *= step[1];
  return v;
}

class ConvRunner final : public Runner {
 public:
  ConvRunner(const model::Program& program, const model::Task& task)
      : program_(program), task_(task), conv_(*task.conv), integer_(conv_.weight_dtype == DType::kInt8) {
    if (integer_) {
      integer_pipeline_ = IntegerPipeline(program, task);
      if (!task.operands.empty()) residual_ = stage_of(task.operands[0]);
    } else {
      half_pipeline_ = HalfPipeline(program, task);
    }
  }

  Status run(const Context& context) override { return context.strict() ? run_strict(context) : run_fast(context); }

 private:
  bool depthwise() const { return conv_.mode == model::ConvMode::kDepthwise; }
  Constants constants(const Context& context, std::span<const std::byte> packed, int64_t first, int64_t channel,
                      int64_t channels) const;
  bool parts_in_phases() const;
  bool make_phase(std::span<const std::byte> weights, const Pair& first, Phase& phase) const;
  void prepare(const Context& context);
  Rectangle rectangle(const Windows& windows, const OutputPart& part, int64_t columns) const;
  void run_images(const Context& context, const View& x, const View& y, const View* residual, const Constants& k) const;
  npu::ConvShape shape(const Constants& k) const;
  npu::ChannelStage channel_stage(const Constants& k) const;
  npu::Requantizer requantizer(const Constants& k, std::span<const std::byte> weights) const;
  void read_params(Constants& k) const;
  void pack(std::span<const std::byte> weights, bool strict, Constants& k) const;
  void finish_integer(const Target& target, const Part& part, const npu::AccumulatorBlock<int32_t>& block,
                      const Constants& k) const;
  bool describe_finish(const Target& target, int64_t pixel, int64_t pixels, int64_t channel, int64_t channels,
                       const Constants& k, npu::RequantizeCall& call) const;
  void finish_half(const Target& target, const Part& part, const npu::AccumulatorBlock<float>& block,
                   const Constants& k) const;
  bool describe_half(const Target& target, int64_t pixel, int64_t pixels, int64_t channel, int64_t channels,
                     const Constants& k, npu::HalfOutput& output) const;
  void compute(const Context& context, const Source& source, const View& y, const View* residual,
               const OutputPart& part, const Constants& k) const;
  Status run_fast(const Context& context);
  Status run_strict(const Context& context);
  Status run_tile(const Context& context, const model::Tile& tile) const;
  Status check_banks(const model::Tile& tile, int64_t data, int64_t weights) const;

  const model::Program& program_;
  const model::Task& task_;
  const Convolution& conv_;
  bool integer_;
  IntegerPipeline integer_pipeline_;
  HalfPipeline half_pipeline_;
  npu::OperandStage residual_;
  std::vector<Phase> phases_;  // fast mode, packed at the first run; one for all but transposed convolutions
};

template <typename T>
std::vector<T> slice(const std::vector<T>& from, int64_t at, int64_t count) {
  return {from.begin() + at, from.begin() + at + count};
}

// `weights`: plain ones in the order of the kernels.
npu::Requantizer ConvRunner::requantizer(const Constants& k, std::span<const std::byte> weights) const {
  npu::Requantizer::Stages stages;
  if (k.sums || !integer_pipeline_.describe(stages)) return {};
  const auto* w = reinterpret_cast<const int8_t*>(weights.data());
  const int64_t filter = static_cast<int64_t>(weights.size()) / k.channels;
  std::vector<int64_t> least, largest;
  for (int64_t c = 0; c < k.channels; ++c) {
    const int32_t zero = k.params.minus_weight_zero[static_cast<size_t>(c)];
    npu::WeightSums sums;
    if (depthwise()) {
      for (int64_t tap = 0; tap < filter; ++tap) sums.add(w + tap * k.channels + c, 1, zero);
    } else {
      sums.add(w + c * filter, filter, zero);
    }
    least.push_back(-128 * sums.positive + 127 * sums.negative);
    largest.push_back(127 * sums.positive - 128 * sums.negative);
  }
  stages.channels = k.channels;
  stages.channel = channel_stage(k);
  stages.least = least.data();
  stages.largest = largest.data();
  if (!task_.operands.empty()) stages.residual = &residual_;
  return npu::Requantizer(stages);
}

void ConvRunner::read_params(Constants& k) const {
  if (integer_) {
    const auto whole = model::unpack_params(program_.profile, program_.blob(conv_.params), conv_.out_channels);
    k.params = {slice(whole.bias, k.channel, k.channels), slice(whole.minus_weight_zero, k.channel, k.channels),
                slice(whole.multiplier, k.channel, k.channels)};
  } else if (conv_.params != model::kNone) {
    k.bias.resize(static_cast<size_t>(k.channels));
    std::memcpy(k.bias.data(), program_.blob(conv_.params).data() + k.channel * 4, static_cast<size_t>(k.channels) * 4);
  }
}

// `weights`: plain ones in the order of the kernels.
void ConvRunner::pack(std::span<const std::byte> weights, bool strict, Constants& k) const {
  const npu::ConvShape s = shape(k);
  if (!integer_) {
    const auto* w = reinterpret_cast<const uint16_t*>(weights.data());
    const NumericsProfile& profile = program_.profile;
    k.half_filters =
        depthwise() ? npu::pack_depthwise_f16(s, w) : npu::pack_conv_f16(s, profile.fp16_slice, profile.fp16_group, w);
    return;
  }
  const std::vector<int32_t>& zero = k.params.minus_weight_zero;
  const bool zeros = std::all_of(zero.begin(), zero.end(), [](int32_t b) { return b == 0; });
  // Folded into the weights while the sums of x * (w - zero) fit 32 bits.
  const int64_t products = static_cast<int64_t>(weights.size()) / k.channels;
  const bool folds = products < (int64_t{1} << 31) / (128 * 256) &&
                     std::all_of(zero.begin(), zero.end(), [](int32_t b) { return b >= -128 && b <= 128; });
  k.sums = !zeros && !folds;
  const int32_t* minus_zero = zeros || !folds ? nullptr : zero.data();
  const auto* w = reinterpret_cast<const int8_t*>(weights.data());
  // Strict mode is the reference: it sums directly.
  const model::Cube& y = program_.tensor(task_.outputs[0]).cube;
  if (depthwise()) {
    k.filters = npu::pack_depthwise_s8(s, w, minus_zero);
  } else if (strict || k.sums || conv_.transposed) {
    k.filters = npu::pack_conv_s8(s, w, minus_zero);
  } else {
    k.filters = npu::pack_fastest_conv_s8(s, w, minus_zero, y.h, y.w);
  }
  k.requantizer = requantizer(k, weights);
}

Constants ConvRunner::constants(const Context& context, std::span<const std::byte> packed, int64_t first,
                                int64_t channel, int64_t channels) const {
  Constants k;
  k.channel = channel;
  k.channels = channels;
  k.windows = windows_of(conv_);
  std::vector<std::byte>& storage = context.scratch.weights;
  const auto weights = model::unpack_weights_taps_first(conv_, packed, channel, channels, first, storage);
  read_params(k);
  pack(weights, context.strict(), k);
  if (storage.size() > kMostKeptWeights) std::vector<std::byte>().swap(storage);
  return k;
}

// The input that a part of the result needs; `columns`: of the source, used when they hold all that is needed.
Rectangle ConvRunner::rectangle(const Windows& w, const OutputPart& part, int64_t columns) const {
  Rectangle r{};
  r.top = part.h * w.stride[0] - w.lead[0];
  r.left = part.w * w.stride[1] - w.lead[1];
  r.rows = (part.hs - 1) * w.stride[0] + w.reach(0) + 1;
  r.columns = (part.ws - 1) * w.stride[1] + w.reach(1) + 1;
  r.dilate_h = w.spread[0];
  r.dilate_w = w.spread[1];
  if (!conv_.transposed && r.left == 0 && r.columns < columns) r.columns = columns;
  r.fill[0] = r.fill[1] = static_cast<std::byte>(integer_ ? conv_.pad_value : 0);
  r.channels = conv_.in_channels;
  return r;
}

// Without what depends on the slab and the part.
npu::ConvShape ConvRunner::shape(const Constants& k) const {
  const Windows& w = k.windows;
  npu::ConvShape s{};
  s.in_channels = depthwise() ? k.channels : conv_.in_channels;
  s.out_channels = k.channels;
  s.kernel_h = w.kernel[0];
  s.kernel_w = w.kernel[1];
  s.stride_h = w.stride[0];
  s.stride_w = w.stride[1];
  s.dilation_h = w.dilation[0];
  s.dilation_w = w.dilation[1];
  return s;
}

// Whether each result of a transposed convolution meets at least one tap, at neighbouring pixels of the input.
bool ConvRunner::parts_in_phases() const {
  const Convolution& c = conv_;
  return c.transposed && (c.stride[0] > 1 || c.stride[1] > 1) && c.dilation == std::array<int32_t, 2>{1, 1} &&
         c.kernel[0] >= c.stride[0] && c.kernel[1] >= c.stride[1];
}

// The taps that meet real pixels; the others meet padding, whose share goes to the bias. False when it cannot.
bool ConvRunner::make_phase(std::span<const std::byte> weights, const Pair& first, Phase& phase) const {
  const Windows whole = windows_of(conv_);
  Constants& k = phase.constants;
  k.channels = conv_.out_channels;
  k.windows = whole;
  k.windows.spread = {1, 1};
  phase.first = first;
  Pair tap{};  // the first one on each axis
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t step = whole.spread[axis], distance = whole.lead[axis] - first[axis];
    tap[axis] = (distance % step + step) % step;
    k.windows.kernel[axis] = ceil_div(whole.kernel[axis] - tap[axis], step);
    k.windows.lead[axis] = (distance - tap[axis]) / step;
  }
  read_params(k);
  const int64_t size = integer_ ? 1 : 2, filters = depthwise() ? 1 : k.channels;
  const int64_t run = (depthwise() ? k.channels : conv_.in_channels) * size;  // bytes of one tap of a filter
  std::vector<std::byte> met;
  std::vector<int64_t> share(static_cast<size_t>(k.channels), 0);
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t t = 0; t < whole.taps(); ++t) {
      const Pair at{t / whole.kernel[1], t % whole.kernel[1]};
      const std::byte* from = weights.data() + (f * whole.taps() + t) * run;
      if (at[0] % whole.spread[0] == tap[0] && at[1] % whole.spread[1] == tap[1]) {
        met.insert(met.end(), from, from + run);
        continue;
      }
      for (int64_t i = 0; i < run / size; ++i) {
        if (!integer_) {  // zeros times what is finite are zeros
          uint16_t half = 0;
          std::memcpy(&half, from + i * size, sizeof half);
          if ((half & 0x7C00) == 0x7C00) return false;
          continue;
        }
        const auto c = static_cast<size_t>(depthwise() ? i : f);
        share[c] += conv_.pad_value * (static_cast<int8_t>(from[i]) + int64_t{k.params.minus_weight_zero[c]});
      }
    }
  }
  for (size_t c = 0; integer_ && c < share.size(); ++c) {
    const int64_t bias = k.params.bias[c] + share[c];
    if (bias < INT32_MIN || bias > INT32_MAX) return false;
    k.params.bias[c] = static_cast<int32_t>(bias);
  }
  pack(met, false, k);
  return true;
}

void ConvRunner::prepare(const Context& context) {
  if (!phases_.empty()) {
    const Constants& k = phases_[0].constants;
    if (integer_ ? k.filters.current() : k.half_filters.current()) return;
  }
  phases_.clear();
  if (parts_in_phases()) {
    const auto weights = model::unpack_weights_taps_first(conv_, program_.blob(conv_.weights), 0, conv_.out_channels);
    bool all = true;
    for (int64_t y = 0; y < conv_.stride[0] && all; ++y) {
      for (int64_t x = 0; x < conv_.stride[1] && all; ++x) all = make_phase(weights, {y, x}, phases_.emplace_back());
    }
    if (all) return;
    phases_.clear();
  }
  phases_.push_back({{0, 0}, constants(context, program_.blob(conv_.weights), 0, 0, conv_.out_channels)});
}

npu::ChannelStage ConvRunner::channel_stage(const Constants& k) const {
  const model::Requant& q = *task_.requant;
  return {k.params.bias.data(),       k.sums ? k.params.minus_weight_zero.data() : nullptr,
          k.params.multiplier.data(), q.channel_shift,
          q.channel_shift_negative,   q.channel_multiplier_bypass};
}

void ConvRunner::finish_integer(const Target& target, const Part& part, const npu::AccumulatorBlock<int32_t>& block,
                                const Constants& k) const {
  std::vector<int8_t> storage;
  int64_t residual_stride = 0;
  const int8_t* residual = target.has_residual ? load(target.residual, part, storage, residual_stride) : nullptr;
  const int64_t first = block.channel;
  int32_t* v = block.values;
  store<int8_t>(target.y, part, [&](int8_t* to, int64_t stride) {
    if (k.requantizer.usable())
      return k.requantizer.run(part.ws, first, part.cs, v, residual, residual_stride, to, stride);
    npu::ChannelStage stage = channel_stage(k);
    stage.bias += first;
    if (stage.minus_weight_zero != nullptr) stage.minus_weight_zero += first;
    if (stage.multiplier != nullptr) stage.multiplier += first;
    npu::channel_stage_block(part.ws, part.cs, v, block.window_sums, depthwise(), stage, v);
    if (residual != nullptr) npu::add_operand_block(part.ws, part.cs, residual, residual_stride, residual_, v);
    integer_pipeline_.finish(part.ws, part.cs, part.c, v, to, stride);
  });
}

// Of a block that is not computed yet; false: it needs finish_integer.
bool ConvRunner::describe_finish(const Target& target, int64_t pixel, int64_t pixels, int64_t channel, int64_t channels,
                                 const Constants& k, npu::RequantizeCall& call) const {
  if (!target.direct(pixel, pixels)) return false;
  const Part part = target.in_row(pixel, pixels, k.channel + channel, channels);
  std::vector<int8_t> unused;
  int64_t residual_stride = 0;
  const int8_t* residual = target.has_residual ? load(target.residual, part, unused, residual_stride) : nullptr;
  store<int8_t>(target.y, part, [&](int8_t* y, int64_t stride) {
    k.requantizer.describe(pixels, channel, channels, residual, residual_stride, y, stride, call);
  });
  return true;
}

void ConvRunner::finish_half(const Target& target, const Part& part, const npu::AccumulatorBlock<float>& block,
                             const Constants& k) const {
  float* v = block.values;
  const float* bias = k.bias.empty() ? nullptr : k.bias.data() + block.channel;
  if (target.has_residual) {
    if (bias != nullptr) npu::add_bias_f32(part.ws, part.cs, bias, v);
    bias = nullptr;
    std::vector<uint16_t> storage;
    int64_t stride = 0;
    const uint16_t* r = load(target.residual, part, storage, stride);
    npu::add_half_block(part.ws, part.cs, r, stride, v);
  }
  store<uint16_t>(target.y, part, [&](uint16_t* to, int64_t stride) {
    half_pipeline_.finish(part.ws, part.cs, part.c, bias, v, to, stride);
  });
}

// As describe_finish.
bool ConvRunner::describe_half(const Target& target, int64_t pixel, int64_t pixels, int64_t channel, int64_t channels,
                               const Constants& k, npu::HalfOutput& output) const {
  if (target.has_residual || !target.direct(pixel, pixels)) return false;
  if (!half_pipeline_.limits(output.low, output.high)) return false;
  const Part part = target.in_row(pixel, pixels, k.channel + channel, channels);
  output.bias = k.bias.empty() ? nullptr : k.bias.data() + channel;
  store<uint16_t>(target.y, part, [&](uint16_t* y, int64_t stride) {
    output.y = y;
    output.y_stride = stride;
  });
  return true;
}

void ConvRunner::compute(const Context& context, const Source& source, const View& y, const View* residual,
                         const OutputPart& part, const Constants& k) const {
  Rectangle r = rectangle(k.windows, part, source.left == 0 ? source.columns : 0);
  // A tile's window holds only its own channels.
  if (depthwise()) r.channels = k.channels;
  const Slab slab = cut(source, r, context.scratch.slab);
  npu::ConvShape s = shape(k);
  s.in_h = r.rows;
  s.in_w = r.columns;
  s.channels = slab.lanes;
  s.slack = slab.slack;
  s.out_h = part.hs;
  s.out_w = part.ws;
  const Target target(y, residual, part);
  if (integer_) {
    const auto* x = reinterpret_cast<const int8_t*>(slab.pixels);
    const auto take = [&](const npu::AccumulatorBlock<int32_t>& block) {
      target.for_rows(block.pixel, block.pixels, k.channel + block.channel, block.channels,
                      [&](const Part& row, int64_t first) {
                        npu::AccumulatorBlock<int32_t> b = block;
                        b.values += first * block.channels;
                        if (k.sums) b.window_sums += depthwise() ? first * block.channels : first;
                        finish_integer(target, row, b, k);
                      });
    };
    const auto describe = [&](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels,
                              npu::RequantizeCall& call) {
      return describe_finish(target, pixel, pixels, channel, channels, k, call);
    };
    const npu::AccumulatorSink<int32_t> sink = std::ref(take);  // without memory of its own
    npu::RequantizeRequest request;
    if (k.requantizer.usable() && k.requantizer.simple()) request = std::ref(describe);
    return depthwise() ? npu::depthwise_s8(s, x, k.filters, k.sums, sink, request)
                       : npu::conv_s8(s, x, k.filters, k.sums, sink, request);
  }
  const auto* x = reinterpret_cast<const uint16_t*>(slab.pixels);
  const auto take = [&](const npu::AccumulatorBlock<float>& block) {
    target.for_rows(block.pixel, block.pixels, k.channel + block.channel, block.channels,
                    [&](const Part& row, int64_t first) {
                      npu::AccumulatorBlock<float> b = block;
                      b.values += first * block.channels;
                      finish_half(target, row, b, k);
                    });
  };
  const auto describe = [&](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, npu::HalfOutput& output) {
    return describe_half(target, pixel, pixels, channel, channels, k, output);
  };
  const npu::AccumulatorSink<float> sink = std::ref(take);
  const npu::HalfRequest request = std::ref(describe);
  depthwise() ? npu::depthwise_f16(s, x, k.half_filters, sink, request)
              : npu::conv_f16(s, x, k.half_filters, sink, request);
}

// Images of one pixel are the pixels of one row: the rows of a matrix product share one pass over the weights.
View images_as_row(View v) {
  v.pixel = v.image;
  v.cube.w = v.cube.n;
  v.cube.n = 1;
  v.row = v.image = v.cube.w * v.pixel;
  return v;
}

void ConvRunner::run_images(const Context& context, const View& x, const View& y, const View* residual,
                            const Constants& k) const {
  const int64_t row_bytes = k.windows.stride[0] * x.cube.w * x.pixel;
  int64_t most = kBlockBytes / row_bytes;
  if (!integer_ && !depthwise()) most = std::max(kHalfBlockBytes / row_bytes, ceil_div(kHalfBlockPixels, y.cube.w));
  const int64_t rows = std::clamp<int64_t>(most, 1, y.cube.h);
  for (int64_t n = 0; n < y.cube.n; ++n) {
    const Source source{&x, n, 0, 0, x.cube.h, x.cube.w};
    for (int64_t h = 0; h < y.cube.h; h += rows)
      compute(context, source, y, residual, {n, h, std::min(rows, y.cube.h - h), 0, y.cube.w}, k);
  }
}

Status ConvRunner::run_fast(const Context& context) {
  prepare(context);
  View x = context.view(task_.inputs[0]);
  View y = context.view(task_.outputs[0]);
  View residual;
  const bool has_residual = task_.inputs.size() > 1;
  if (has_residual) residual = context.view(task_.inputs[1]);
  const auto pixel = [](const model::Cube& c) { return c.h == 1 && c.w == 1; };
  const auto ones = [](const std::array<int32_t, 2>& pair) { return pair[0] == 1 && pair[1] == 1; };
  // A stride of images would skip some: with one pixel it says nothing, but it is in the task.
  if (y.cube.n > 1 && pixel(x.cube) && pixel(y.cube) && ones(conv_.kernel) && ones(conv_.stride)) {
    x = images_as_row(x);
    y = images_as_row(y);
    if (has_residual) residual = images_as_row(residual);
  }
  if (phases_.size() == 1) {
    run_images(context, x, y, has_residual ? &residual : nullptr, phases_[0].constants);
    return {};
  }
  const Pair step{conv_.stride[0], conv_.stride[1]};
  for (const Phase& phase : phases_) {
    if (phase.first[0] >= y.cube.h || phase.first[1] >= y.cube.w) continue;
    const View to = every(y, phase.first, step);
    View other;
    if (has_residual) other = every(residual, phase.first, step);
    run_images(context, x, to, has_residual ? &other : nullptr, phase.constants);
  }
  return {};
}

Status ConvRunner::check_banks(const model::Tile& tile, int64_t data, int64_t weights) const {
  const auto fail = [&](std::string why) {
    return Error{ErrorCode::kInternal, "a tile does not fit the convolution buffer", task_.name, std::move(why),
                 "report this: the compiler has cut the task wrongly"};
  };
  const int64_t bank = program_.cbuf_bank_bytes;
  if (tile.data_banks == 0 && tile.weight_banks == 0) {
    if (program_.cbuf_bytes == 0 || data + weights <= program_.cbuf_bytes) return {};
    return fail(fmt::format("{} bytes of data and {} of weights exceed {}", data, weights, program_.cbuf_bytes));
  }
  if ((int64_t{tile.data_banks} + tile.weight_banks) * bank > program_.cbuf_bytes)
    return fail(fmt::format("{} + {} banks exceed {} bytes", tile.data_banks, tile.weight_banks, program_.cbuf_bytes));
  if (data > tile.data_banks * bank)
    return fail(fmt::format("{} bytes of data exceed {} banks of {}", data, tile.data_banks, bank));
  if (weights > tile.weight_banks * bank)
    return fail(fmt::format("{} bytes of weights exceed {} banks of {}", weights, tile.weight_banks, bank));
  return {};
}

Status ConvRunner::run_tile(const Context& context, const model::Tile& t) const {
  const View& x = context.view(task_.inputs[0]);
  const View& y = context.view(task_.outputs[0]);
  const View* residual = task_.inputs.size() > 1 ? &context.view(task_.inputs[1]) : nullptr;
  const int64_t channel = depthwise() ? t.oc : 0;
  const int64_t channels = depthwise() ? t.ocs : conv_.in_channels;
  const auto [offset, size] = model::weight_range(conv_, t.oc, t.ocs);
  const int64_t lanes =
      align_up(channels, program_.tensor(task_.inputs[0]).layout == model::Layout::kNHWC ? 1 : x.lanes);
  OPENRKNN_CHECK_OK(check_banks(t, int64_t{t.ihs} * t.iws * lanes * x.size, size));
  // The convolution buffer: only the tile's window, read at the tensor's own addresses.
  View window = x;
  window.cube = {1, channels, std::max(1, t.ihs), std::max(1, t.iws)};
  window.lanes = channels;
  window.blocks = 1;
  window.pixel = channels * x.size;
  window.row = window.cube.w * window.pixel;
  window.image = window.cube.h * window.row;
  window.base = reserve(context.scratch.window, window.image);
  for (int64_t h = 0; h < t.ihs; ++h)
    gather(x, {t.n, t.ih + h, t.iw, t.iws, channel, channels}, window.at(0, h, 0), channels);
  const auto packed = program_.blob(conv_.weights).subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  const int64_t group = depthwise() ? conv_.channel_group : conv_.kernel_group;
  const Constants k = constants(context, packed, t.oc / group * group, t.oc, t.ocs);
  const OutputPart part{t.n, t.oh, t.ohs, t.ow, t.ows};
  compute(context, {&window, 0, t.ih, t.iw, t.ihs, t.iws}, y, residual, part, k);
  return {};
}

Status ConvRunner::run_strict(const Context& context) {
  for (const model::Tile& tile : task_.tiles) OPENRKNN_CHECK_OK(run_tile(context, tile));
  return {};
}

}  // namespace

RunnerPtr make_conv(const model::Program& program, const model::Task& task) {
  return std::make_unique<ConvRunner>(program, task);
}

}  // namespace openrknn::sim
