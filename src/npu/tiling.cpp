#include "npu/tiling.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.hpp"

namespace openrknn::npu {
namespace {

using model::Tile;

// Buffer entries that one input row of `width` pixels takes (npu.md 5.1).
int64_t entries_per_row(const target::Target& target, const model::TensorDesc& input, int64_t channels, int64_t width) {
  const auto size = static_cast<int64_t>(dtype_size(input.dtype));
  // Packed pixels of 1, 3 or 4 channels are seen as 4 lanes by the MAC array (npu.md 2.5).
  const int64_t bytes = (input.layout == model::Layout::kNHWC ? 4 : align_up(channels, input.c2)) * size;
  const int64_t atom = target.atom_bytes;
  const int64_t per_entry = std::max<int64_t>(1, target.cbuf.entry_bytes / atom);
  const int64_t atoms = ceil_div(bytes, atom);
  const int64_t rest = atoms % per_entry;
  const int64_t tail = rest == 3 && per_entry == 8 ? width : ceil_div(rest * width, per_entry);
  return atoms / per_entry * width + tail;
}

struct Axis {
  int64_t kernel, stride, dilation, pad, in;
  bool transposed;

  int64_t window() const { return (kernel - 1) * dilation + 1; }
  // Input [first, last] that output [o, o + n) reads, before clipping to the tensor.
  std::pair<int64_t, int64_t> reads(int64_t o, int64_t n) const {
    if (!transposed) return {o * stride - pad, (o + n - 1) * stride - pad + window() - 1};
    // In the dilated input, element i lies at i * stride; output o reads dilated [o - p, o - p + window) with p =
    // window - 1 - pad.
    const int64_t p = window() - 1 - pad;
    const int64_t low = o - p;
    const int64_t high = o + n - 1 - p + window() - 1;
    const int64_t first = low <= 0 ? 0 : ceil_div(low, stride);
    const int64_t last = high < 0 ? -1 : high / stride;
    return {first, last};
  }
  // Input rows that n output rows need at most.
  int64_t needed(int64_t n) const {
    if (!transposed) return std::min(in, (n - 1) * stride + window());
    return std::min(in, (n + window() - 2) / stride + 1);
  }
  // The most output rows whose input stays within `rows`.
  int64_t outputs_within(int64_t rows, int64_t out) const {
    if (rows >= in) return out;
    if (rows < needed(1)) return 0;
    int64_t n = 1;
    int64_t high = out;
    while (n < high) {  // needed() grows with n
      const int64_t middle = (n + high + 1) / 2;
      (needed(middle) <= rows ? n : high) = needed(middle) <= rows ? middle : middle - 1;
    }
    return n;
  }
};

struct Span {
  int32_t first, count, pad_low, pad_high;
};

Span clip(const Axis& axis, int64_t o, int64_t n) {
  const auto [low, high] = axis.reads(o, n);
  const int64_t first = std::clamp<int64_t>(low, 0, axis.in);
  const int64_t last = std::clamp<int64_t>(high, -1, axis.in - 1);
  const int64_t count = std::max<int64_t>(0, last - first + 1);
  const int64_t pad_low = axis.transposed ? 0 : std::max<int64_t>(0, -low);
  const int64_t pad_high = axis.transposed ? 0 : std::max<int64_t>(0, high - (axis.in - 1));
  return {static_cast<int32_t>(first), static_cast<int32_t>(count), static_cast<int32_t>(pad_low),
          static_cast<int32_t>(pad_high)};
}

int64_t limited(int64_t block, int64_t option) {
  return option > 0 ? std::max<int64_t>(1, std::min(block, option)) : std::max<int64_t>(1, block);
}

// The most output channels, rows and columns that one task's registers hold.
struct Fields {
  int64_t channels, rows, columns;

  Fields(const target::Target& target, int64_t channel_group)
      : channels(std::max(channel_group, target.limit("task.extent.max").value / channel_group * channel_group)),
        rows(target.limit("task.extent.max").value),
        columns(target.limit("task.extent.max").value) {}
  // The input's rows and columns have fields of their own.
  Fields(const target::Target& target, int64_t channel_group, const model::Cube& out, const Axis& down,
         const Axis& across)
      : Fields(target, channel_group) {
    rows = std::min(rows, down.outputs_within(target.limit("task.rows.max").value, out.h));
    columns = std::min(columns, across.outputs_within(target.limit("task.width.max").value, out.w));
  }
};

// All blocks of an output cube; channels outermost, so that weights stay while the image passes.
template <typename Fill>
std::vector<Tile> blocks(const model::Cube& out, int64_t channels, int64_t rows, int64_t columns, Fill&& fill) {
  std::vector<Tile> tiles;
  for (int64_t n = 0; n < out.n; ++n) {
    for (int64_t c = 0; c < out.c; c += channels) {
      for (int64_t h = 0; h < out.h; h += rows) {
        for (int64_t w = 0; w < out.w; w += columns) {
          Tile t;
          t.n = static_cast<int32_t>(n);
          t.oc = static_cast<int32_t>(c);
          t.ocs = static_cast<int32_t>(std::min(channels, out.c - c));
          t.oh = static_cast<int32_t>(h);
          t.ohs = static_cast<int32_t>(std::min(rows, out.h - h));
          t.ow = static_cast<int32_t>(w);
          t.ows = static_cast<int32_t>(std::min(columns, out.w - w));
          fill(t);
          tiles.push_back(t);
        }
      }
    }
  }
  return tiles;
}

// Blocks of a task that needs no buffer.
template <typename Fill>
std::vector<Tile> stream(const CompileOptions& options, const Fields& fields, const model::TensorDesc& output,
                         Fill&& fill) {
  int64_t channels = std::min<int64_t>(output.cube.c, fields.channels);
  if (options.max_tile_channels > 0) channels = std::min(channels, align_up(options.max_tile_channels, output.c2));
  return blocks(output.cube, channels, limited(std::min<int64_t>(output.cube.h, fields.rows), options.max_tile_rows),
                limited(std::min<int64_t>(output.cube.w, fields.columns), options.max_tile_columns), fill);
}

void set_window(Tile& t, const Axis& rows, const Axis& columns) {
  const Span h = clip(rows, t.oh, t.ohs);
  const Span w = clip(columns, t.ow, t.ows);
  t.ih = h.first;
  t.ihs = h.count;
  t.pad_top = h.pad_low;
  t.pad_bottom = h.pad_high;
  t.iw = w.first;
  t.iws = w.count;
  t.pad_left = w.pad_low;
  t.pad_right = w.pad_high;
}

}  // namespace

int32_t kernel_group_that_fits(const target::Target& target, const target::Lanes& lanes, const model::Convolution& conv,
                               const model::TensorDesc& input) {
  const target::Cbuf& cbuf = target.cbuf;
  const auto size = static_cast<int64_t>(dtype_size(conv.weight_dtype));
  const int64_t kernel_bytes =
      int64_t{conv.kernel[0]} * conv.kernel[1] * align_up(conv.in_channels, conv.channel_group) * size;
  const Axis rows{conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pad[0], input.cube.h, conv.transposed};
  const Axis columns{conv.kernel[1], conv.stride[1], conv.dilation[1], conv.pad[1], input.cube.w, conv.transposed};
  const int64_t window = rows.needed(1) * entries_per_row(target, input, conv.in_channels, columns.needed(1));
  const int64_t window_banks = std::max<int64_t>(1, ceil_div(window * cbuf.entry_bytes, cbuf.bank_bytes));
  // One bank more than the weights' own (npu.md 5.1, found by experiment).
  const int64_t room = (cbuf.banks - window_banks - 1) * cbuf.bank_bytes;
  // An only group holds the kernels that are present, rounded up to a power of two (npu.md 2.3, "G32o").
  int32_t group = 2;
  while (group < lanes.kernel_group && group < conv.out_channels) group *= 2;
  while (group > 1 && group * kernel_bytes > room) group /= 2;
  return group * kernel_bytes > room ? 0 : group;
}

Result<std::vector<Tile>> tile_convolution(const target::Target& target, const CompileOptions& options,
                                           const model::Convolution& conv, const model::TensorDesc& input,
                                           const model::TensorDesc& output) {
  const target::Cbuf& cbuf = target.cbuf;
  const int64_t entries_per_bank = cbuf.bank_bytes / cbuf.entry_bytes;
  const bool depthwise = conv.mode == model::ConvMode::kDepthwise;
  const auto size = static_cast<int64_t>(dtype_size(conv.weight_dtype));
  const Axis rows{conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pad[0], input.cube.h, conv.transposed};
  const Axis columns{conv.kernel[1], conv.stride[1], conv.dilation[1], conv.pad[1], input.cube.w, conv.transposed};
  const int64_t taps = rows.kernel * columns.kernel;
  const int64_t out_group = depthwise ? conv.channel_group : conv.kernel_group;
  const int64_t kernel_bytes = taps * size * (depthwise ? 1 : align_up(conv.in_channels, conv.channel_group));
  const auto weight_banks = [&](int64_t channels) {
    return ceil_div(ceil_div(align_up(channels, out_group) * kernel_bytes, cbuf.entry_bytes), entries_per_bank) + 1;
  };

  // Weights: all of them where a third of the buffer is left for data, else as many groups as five twelfths hold.
  int64_t channels = output.cube.c;
  if (weight_banks(channels) + 1 >= cbuf.banks) {
    const int64_t share = std::max<int64_t>(2, cbuf.banks * 5 / 12);
    channels = out_group;
    while (channels + out_group < output.cube.c && weight_banks(channels + out_group) <= share) channels += out_group;
  }
  if (options.max_tile_channels > 0) channels = std::min(channels, align_up(options.max_tile_channels, out_group));
  const Fields fields(target, out_group, output.cube, rows, columns);
  channels = std::min({channels, fields.channels, target.limit("conv.kernels.max").value / out_group * out_group});
  const int64_t in_channels = depthwise ? channels : conv.in_channels;

  int64_t for_weights = weight_banks(channels);
  int64_t for_data = cbuf.banks - for_weights;
  if (for_data < 1) {  // a single large group: the empirical slack bank goes
    for_weights = cbuf.banks - 1;
    for_data = 1;
  }
  const int64_t capacity = for_data * entries_per_bank;
  int64_t width = std::min(output.cube.w, fields.columns);
  const auto row_entries = [&](int64_t out_columns) {
    return entries_per_row(target, input, in_channels, columns.needed(out_columns));
  };
  while (width > 1 && rows.needed(1) * row_entries(width) > capacity) width = ceil_div(width, 2);
  const int64_t rows_that_fit = capacity / std::max<int64_t>(1, row_entries(width));
  const int64_t height = std::min(rows.outputs_within(rows_that_fit, output.cube.h), fields.rows);
  if (height < 1) {
    return Error{ErrorCode::kUnsupported, "a convolution does not fit the convolution buffer", output.name,
                 fmt::format("{} rows of {} entries are needed for one output row, {} banks are left", rows.needed(1),
                             row_entries(width), for_data),
                 "use a smaller kernel or fewer channels"};
  }
  const int64_t block_rows = limited(height, options.max_tile_rows);
  const int64_t block_columns = limited(width, options.max_tile_columns);
  return blocks(output.cube, channels, block_rows, block_columns, [&](Tile& t) {
    set_window(t, rows, columns);
    t.data_banks = static_cast<int32_t>(std::clamp<int64_t>(
        ceil_div(entries_per_row(target, input, in_channels, t.iws) * std::max<int32_t>(t.ihs, 1), entries_per_bank), 1,
        for_data));
    t.weight_banks = static_cast<int32_t>(cbuf.banks - t.data_banks);
  });
}

std::vector<Tile> tile_pool(const target::Target& target, const CompileOptions& options, const model::Pool& pool,
                            const model::TensorDesc& input, const model::TensorDesc& output) {
  const Axis rows{pool.kernel[0], pool.stride[0], 1, pool.pad[0], input.cube.h, false};
  const Axis columns{pool.kernel[1], pool.stride[1], 1, pool.pad[1], input.cube.w, false};
  const Fields fields(target, output.c2, output.cube, rows, columns);
  return stream(options, fields, output, [&](Tile& t) { set_window(t, rows, columns); });
}

std::vector<Tile> tile_elementwise(const target::Target& target, const CompileOptions& options,
                                   const model::TensorDesc& output) {
  return stream(options, Fields(target, output.c2), output, [](Tile& t) {
    t.ih = t.oh;
    t.ihs = t.ohs;
    t.iw = t.ow;
    t.iws = t.ows;
  });
}

}  // namespace openrknn::npu
