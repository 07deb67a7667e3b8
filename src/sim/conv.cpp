// Convolution tasks. Fast mode goes by blocks of rows; strict mode by the Program's tiles, each from the input window,
// the weights and the parameters that the tile itself brings.
#include "kernels/npu/conv.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "model/codec.hpp"
#include "sim/parts.hpp"
#include "sim/pipeline.hpp"
#include "sim/runner.hpp"
#include "sim/slab.hpp"

namespace openrknn::sim {
namespace {

using model::Convolution;

constexpr int64_t kBlockValues = 1 << 18;  // accumulators of a block of rows: 1 MiB
constexpr int64_t kChunkValues = 1 << 14;  // of the pipeline's steps: 64 KiB

// Weights in the order of the kernels and parameters, of a range of output channels.
struct Constants {
  int64_t channel = 0, channels = 0;
  std::vector<std::byte> weights;
  model::ChannelParams params;  // int8
  std::vector<float> bias;      // fp16; empty: none
  bool sums = false;            // some weight zero point is not 0
};

struct OutputPart {
  int64_t n, h, hs, w, ws;
};

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
  Constants constants(std::span<const std::byte> packed, int64_t first, int64_t channel, int64_t channels) const;
  Rectangle rectangle(const OutputPart& part, int64_t columns) const;
  npu::ConvShape shape(const Rectangle& r, const Slab& slab, const OutputPart& part, const Constants& k) const;
  void accumulate(const npu::ConvShape& shape, const Slab& slab, const Constants& k, Scratch& scratch) const;
  void finish(const Context& context, const View& y, const View* residual, const OutputPart& part,
              const Constants& k) const;
  void finish_integer(Scratch& scratch, const View& y, const View* residual, const Part& part, int64_t pixel,
                      const Constants& k) const;
  void finish_half(Scratch& scratch, const View& y, const View* residual, const Part& part, int64_t pixel,
                   const Constants& k) const;
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
  Constants all_;  // fast mode, unpacked at the first run
  bool ready_ = false;
};

template <typename T>
std::vector<T> slice(const std::vector<T>& from, int64_t at, int64_t count) {
  return {from.begin() + at, from.begin() + at + count};
}

Constants ConvRunner::constants(std::span<const std::byte> packed, int64_t first, int64_t channel,
                                int64_t channels) const {
  Constants k;
  k.channel = channel;
  k.channels = channels;
  k.weights = model::unpack_weights_taps_first(conv_, packed, channel, channels, first);
  if (integer_) {
    const auto whole = model::unpack_params(program_.profile, program_.blob(conv_.params), conv_.out_channels);
    k.params = {slice(whole.bias, channel, channels), slice(whole.minus_weight_zero, channel, channels),
                slice(whole.multiplier, channel, channels)};
    k.sums = std::any_of(k.params.minus_weight_zero.begin(), k.params.minus_weight_zero.end(),
                         [](int32_t b) { return b != 0; });
  } else if (conv_.params != model::kNone) {
    k.bias.resize(static_cast<size_t>(channels));
    std::memcpy(k.bias.data(), program_.blob(conv_.params).data() + channel * 4, static_cast<size_t>(channels) * 4);
  }
  return k;
}

// The input that a part of the result needs; `columns`: of the source, used when they hold all that is needed.
Rectangle ConvRunner::rectangle(const OutputPart& part, int64_t columns) const {
  Rectangle r{};
  const int64_t reach_h = (int64_t{conv_.kernel[0]} - 1) * conv_.dilation[0];
  const int64_t reach_w = (int64_t{conv_.kernel[1]} - 1) * conv_.dilation[1];
  if (conv_.transposed) {
    r.top = part.h - (reach_h - conv_.pad[0]);
    r.left = part.w - (reach_w - conv_.pad[1]);
    r.rows = part.hs + reach_h;
    r.columns = part.ws + reach_w;
    r.dilate_h = conv_.stride[0];
    r.dilate_w = conv_.stride[1];
  } else {
    r.top = part.h * conv_.stride[0] - conv_.pad[0];
    r.left = part.w * conv_.stride[1] - conv_.pad[1];
    r.rows = (part.hs - 1) * conv_.stride[0] + reach_h + 1;
    r.columns = (part.ws - 1) * conv_.stride[1] + reach_w + 1;
    if (r.left == 0 && r.columns < columns) r.columns = columns;
  }
  r.fill[0] = r.fill[1] = static_cast<std::byte>(integer_ ? conv_.pad_value : 0);
  r.channels = conv_.in_channels;
  return r;
}

npu::ConvShape ConvRunner::shape(const Rectangle& r, const Slab& slab, const OutputPart& part,
                                 const Constants& k) const {
  npu::ConvShape s{};
  s.in_h = r.rows;
  s.in_w = r.columns;
  s.channels = slab.lanes;
  s.in_channels = depthwise() ? k.channels : conv_.in_channels;
  s.out_channels = k.channels;
  s.kernel_h = conv_.kernel[0];
  s.kernel_w = conv_.kernel[1];
  s.stride_h = conv_.transposed ? 1 : conv_.stride[0];
  s.stride_w = conv_.transposed ? 1 : conv_.stride[1];
  s.dilation_h = conv_.dilation[0];
  s.dilation_w = conv_.dilation[1];
  s.out_h = part.hs;
  s.out_w = part.ws;
  return s;
}

void ConvRunner::accumulate(const npu::ConvShape& s, const Slab& slab, const Constants& k, Scratch& scratch) const {
  const int64_t values = s.out_h * s.out_w * s.out_channels;
  if (integer_) {
    const auto* x = reinterpret_cast<const int8_t*>(slab.pixels);
    const auto* w = reinterpret_cast<const int8_t*>(k.weights.data());
    int32_t* acc = reserve(scratch.accumulators, values);
    int32_t* sums = k.sums ? reserve(scratch.sums, depthwise() ? values : s.out_h * s.out_w) : nullptr;
    return depthwise() ? npu::depthwise_s8(s, x, w, acc, sums) : npu::conv_s8(s, x, w, acc, sums);
  }
  const auto* x = reinterpret_cast<const uint16_t*>(slab.pixels);
  const auto* w = reinterpret_cast<const uint16_t*>(k.weights.data());
  float* acc = reserve(scratch.half_accumulators, values);
  if (depthwise()) return npu::depthwise_f16(s, x, w, acc);
  npu::conv_f16(s, program_.profile.fp16_slice, program_.profile.fp16_group, x, w, acc);
}

void ConvRunner::finish_integer(Scratch& scratch, const View& y, const View* residual, const Part& part, int64_t pixel,
                                const Constants& k) const {
  const model::Requant& q = *task_.requant;
  const npu::ChannelStage stage{k.params.bias.data(),       k.sums ? k.params.minus_weight_zero.data() : nullptr,
                                k.params.multiplier.data(), q.channel_shift,
                                q.channel_shift_negative,   q.channel_multiplier_bypass};
  int32_t* v = scratch.accumulators.data() + pixel * k.channels;  // each part its own range
  const int32_t* sums = k.sums ? scratch.sums.data() + (depthwise() ? pixel * k.channels : pixel) : nullptr;
  npu::channel_stage_block(part.ws, k.channels, v, sums, depthwise(), stage, v);
  if (residual != nullptr) {
    std::vector<int8_t> storage;
    int64_t stride = 0;
    const int8_t* r = load(*residual, part, storage, stride);
    npu::add_operand_block(part.ws, k.channels, r, stride, residual_, v);
  }
  integer_pipeline_.activate(part.ws, k.channels, k.channel, v);
  store<int8_t>(y, part,
                [&](int8_t* to, int64_t stride) { integer_pipeline_.output(part.ws, k.channels, v, to, stride); });
}

void ConvRunner::finish_half(Scratch& scratch, const View& y, const View* residual, const Part& part, int64_t pixel,
                             const Constants& k) const {
  float* v = scratch.half_accumulators.data() + pixel * k.channels;
  if (!k.bias.empty()) npu::add_bias_f32(part.ws, k.channels, k.bias.data(), v);
  if (residual != nullptr) {
    std::vector<uint16_t> storage;
    int64_t stride = 0;
    const uint16_t* r = load(*residual, part, storage, stride);
    npu::add_half_block(part.ws, k.channels, r, stride, v);
  }
  half_pipeline_.activate(part.ws, k.channels, k.channel, v);
  store<uint16_t>(y, part,
                  [&](uint16_t* to, int64_t stride) { HalfPipeline::output(part.ws, k.channels, v, to, stride); });
}

// Accumulators to results, over threads: rows cut into steps that fit the caches.
void ConvRunner::finish(const Context& context, const View& y, const View* residual, const OutputPart& part,
                        const Constants& k) const {
  const int64_t step = std::clamp<int64_t>(kChunkValues / k.channels, 1, part.ws);
  const int64_t steps = ceil_div(part.ws, step);
  const int64_t grain = std::max<int64_t>(1, kChunkValues / (step * k.channels));
  parallel_for(part.hs * steps, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / steps, w = i % steps * step;
      const Part p{part.n, part.h + row, part.w + w, std::min(step, part.ws - w), k.channel, k.channels};
      if (integer_) {
        finish_integer(context.scratch, y, residual, p, row * part.ws + w, k);
      } else {
        finish_half(context.scratch, y, residual, p, row * part.ws + w, k);
      }
    }
  });
}

void ConvRunner::compute(const Context& context, const Source& source, const View& y, const View* residual,
                         const OutputPart& part, const Constants& k) const {
  Rectangle r = rectangle(part, source.left == 0 ? source.columns : 0);
  // A tile's window holds only its own channels.
  if (depthwise()) r.channels = k.channels;
  const Slab slab = cut(source, r, context.scratch.slab);
  accumulate(shape(r, slab, part, k), slab, k, context.scratch);
  finish(context, y, residual, part, k);
}

// Images of one pixel are the pixels of one row: the rows of a matrix product share one pass over the weights.
View images_as_row(View v) {
  v.pixel = v.image;
  v.cube.w = v.cube.n;
  v.cube.n = 1;
  v.row = v.image = v.cube.w * v.pixel;
  return v;
}

Status ConvRunner::run_fast(const Context& context) {
  if (!ready_) {
    all_ = constants(program_.blob(conv_.weights), 0, 0, conv_.out_channels);
    ready_ = true;
  }
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
  const int64_t rows = std::clamp<int64_t>(kBlockValues / (y.cube.w * y.cube.c), 1, y.cube.h);
  for (int64_t n = 0; n < y.cube.n; ++n) {
    const Source source{&x, n, 0, 0, x.cube.h, x.cube.w};
    for (int64_t h = 0; h < y.cube.h; h += rows) {
      compute(context, source, y, has_residual ? &residual : nullptr, {n, h, std::min(rows, y.cube.h - h), 0, y.cube.w},
              all_);
    }
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
  const Constants k = constants(packed, t.oc / group * group, t.oc, t.ocs);
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
