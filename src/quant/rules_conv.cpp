// Which convolutions the NPU takes: sdk.md C.2, the first layer's buffer (8.4), the registers' fields (npu.md 9).
#include "base/checked.hpp"
#include "quant/rule.hpp"

namespace openrknn::quant {
namespace {

struct Facts {
  std::string family;  // of limits: "conv", "depthwise", "deconv"
  bool transposed = false, depthwise = false;
  int64_t group = 1, in_channels = 1;
  int64_t kernel = 1;             // the largest extent
  int64_t rows = 1, columns = 1;  // of the dilated kernel
  int64_t bytes = 1;              // of one output channel's weights
  int64_t pad = 0, stride = 1, dilation = 1;
};

Facts facts_of(const Rule& r) {
  const Attributes& a = r.node.attributes;
  const Shape& x = r.shape(0);
  const Shape& w = r.shape(1);
  Facts f;
  f.transposed = r.node.op == "ConvTranspose";
  f.group = a.int_or("group", 1);
  f.in_channels = x[1];
  f.depthwise = f.group > 1 && f.group == f.in_channels && r.out()[1] == f.in_channels;
  f.family = f.transposed ? "deconv" : f.depthwise ? "depthwise" : "conv";
  const auto dilations = a.ints_or("dilations", {});
  f.bytes = f.in_channels / f.group * (r.format == Format::kInt8 ? 1 : 2);
  for (int axis = 2; axis < w.rank(); ++axis) {
    f.kernel = std::max(f.kernel, w[axis]);
    f.bytes *= w[axis];
    const auto i = static_cast<size_t>(axis - 2);
    const int64_t extent = (w[axis] - 1) * (i < dilations.size() ? dilations[i] : 1) + 1;
    if (axis == 2 && w.rank() > 3) f.rows = extent;
    if (axis == w.rank() - 1) f.columns = extent;
  }
  f.pad = largest(a.ints_or("pads", {}));
  f.stride = largest(a.ints_or("strides", {1}));
  f.dilation = largest(a.ints_or("dilations", {1}));
  return f;
}

// A convolution that reads a picture of 1, 3 or 4 channels as the application gives it: its rows lie in the buffer
// whole (sdk.md 8.4).
std::optional<Refusal> first_layer(const Rule& r, const Facts& f) {
  const Shape& x = r.shape(0);
  const bool input = !r.graph.value(r.node.inputs[0]).producer.valid() && x.rank() == 4;
  if (!input || (x[1] != 1 && x[1] != 3 && x[1] != 4)) return std::nullopt;
  if (auto refusal = r.at_most("input.width.max", x[3], "the width of the first layer's input")) return refusal;
  const auto value = [&](std::string_view name) { return r.target.limit(name).value; };
  const std::string kind = f.depthwise ? "input.depthwise" : "input.conv";
  const int64_t used = std::max(ceil_div(f.rows * f.columns, value(kind + ".bank_taps")), value(kind + ".banks.min"));
  const std::string window = r.format == Format::kInt8 ? "input.window.int8" : "input.window.float16";
  const int64_t free = std::max<int64_t>(0, value("input.banks") - used);
  const int64_t most = value(window) * free - (value("input.window.exclusive") != 0 ? 1 : 0);
  if (x[3] * f.rows <= most) return std::nullopt;
  return Refusal{
      window, fmt::format("width {} times a kernel of {} rows in the first layer is {}, at most {} ({})", x[3], f.rows,
                          x[3] * f.rows, std::max<int64_t>(0, most), r.target.limit(window).source)};
}

std::optional<Refusal> forward(const Rule& r, const Facts& f) {
  const Shape& x = r.shape(0);
  if (x.rank() == 4 && f.rows > 1) {
    if (auto refusal = r.at_most("conv.width.max", x[3], "the width under a kernel of more than one row"))
      return refusal;
  }
  return first_of(r.at_most(f.family + ".stride.max", f.stride, "a stride"),
                  r.at_most(f.family + ".dilation.max", f.dilation, "a dilation"));
}

std::optional<Refusal> transposed(const Rule& r, const Facts& f) {
  if (auto refusal = r.at_most("deconv.stride.max", f.stride, "a stride")) return refusal;
  const target::Limit& power_of_two = r.target.limit("deconv.stride.power_of_two");
  for (const int64_t s : r.node.attributes.ints_or("strides", {1})) {
    if (power_of_two.value != 0 && (s & (s - 1)) != 0) {
      return Refusal{"deconv.stride.power_of_two",
                     fmt::format("stride {}, the NPU has 1, 2, 4, 8 ({})", s, power_of_two.source)};
    }
  }
  if (f.dilation > 1) {
    if (auto refusal = r.at_most("deconv.dilated.kernel.max", f.kernel, "a dilated kernel")) return refusal;
  }
  if (f.group > 1 && !f.depthwise)
    return Refusal{"deconv.group",
                   fmt::format("{} groups of {} channels: 1 or one a channel (sdk.md C.2)", f.group, f.in_channels)};
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> convolution_refusal(const Rule& r) {
  if (r.graph.constant(r.node.inputs[1]) == nullptr)
    return r.unsupported("its weights are computed at run time, on the NPU they must be constant");
  if (auto refusal = negative_pads(r.node.attributes.ints_or("pads", {}))) return refusal;
  const Facts f = facts_of(r);
  auto refusal = first_of(
      r.at_most(f.family + ".kernel.max", f.kernel, "the kernel"), r.at_most(f.family + ".pad.max", f.pad, "a pad"),
      r.at_most("conv.kernel_bytes.max", f.bytes, "the size of one output channel's weights in bytes"),
      first_layer(r, f));
  if (refusal) return refusal;
  return f.transposed ? transposed(r, f) : forward(r, f);
}

}  // namespace openrknn::quant
