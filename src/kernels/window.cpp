#include "kernels/window.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/checked.hpp"

namespace openrknn {
namespace {

// Extents beyond this are not convolutions but attacks: sums and products below stay inside int64.
constexpr int64_t kLimit = int64_t{1} << 30;

Error bad_attribute(const char* name, std::string why) {
  return {ErrorCode::kShape, "the window is malformed", fmt::format("attribute '{}'", name), std::move(why),
          "repair the model"};
}

Result<std::vector<int64_t>> read_list(const Attributes& attributes, const char* name, size_t count, int64_t fallback,
                                       int64_t lowest) {
  std::vector<int64_t> list = attributes.ints_or(name, std::vector<int64_t>(count, fallback));
  if (list.size() != count) return bad_attribute(name, fmt::format("{} values given, {} expected", list.size(), count));
  for (const int64_t v : list) {
    if (v < lowest || v > kLimit)
      return bad_attribute(name, fmt::format("value {} is outside {}..{}", v, lowest, kLimit));
  }
  return list;
}

Result<std::vector<WindowAxis>> read_axes(const Attributes& attributes, std::span<const int64_t> in,
                                          std::span<const int64_t> kernel) {
  const size_t n = in.size();
  if (n < 1 || n > 3) {
    return Error{ErrorCode::kUnsupported, "the window is unsupported", "", fmt::format("{} spatial axes", n),
                 "1 to 3 spatial axes are supported"};
  }
  if (kernel.size() != n) {
    return bad_attribute("kernel_shape", fmt::format("{} values given, {} expected", kernel.size(), n));
  }
  OPENRKNN_TRY(const auto strides, read_list(attributes, "strides", n, 1, 1));
  OPENRKNN_TRY(const auto dilations, read_list(attributes, "dilations", n, 1, 1));
  OPENRKNN_TRY(const auto pads, read_list(attributes, "pads", 2 * n, 0, -kLimit));
  std::vector<WindowAxis> axes(n);
  for (size_t i = 0; i < n; ++i) {
    if (kernel[i] < 1 || kernel[i] > kLimit || in[i] < 0 || in[i] > kLimit) {
      return bad_attribute("kernel_shape", fmt::format("kernel {} over extent {}", kernel[i], in[i]));
    }
    axes[i] = {in[i], 0, kernel[i], strides[i], dilations[i], pads[i], pads[i + n]};
  }
  return axes;
}

Result<std::string> auto_pad(const Attributes& attributes) {
  std::string mode = attributes.string_or("auto_pad", "NOTSET");
  if (mode.empty()) mode = "NOTSET";
  if (mode != "NOTSET" && mode != "SAME_UPPER" && mode != "SAME_LOWER" && mode != "VALID") {
    return bad_attribute("auto_pad", fmt::format("'{}' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode));
  }
  return mode;
}

Status finish_axis(WindowAxis& axis, const std::string& mode, bool ceil_mode) {
  if (mode == "VALID") axis.pad_begin = axis.pad_end = 0;
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    axis.out = ceil_div(axis.in, axis.stride);
    const int64_t total = std::max<int64_t>(0, (axis.out - 1) * axis.stride + axis.span() - axis.in);
    axis.pad_begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    axis.pad_end = total - axis.pad_begin;
    return {};
  }
  const int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.span();
  // With ceil_mode a first window may already stick out at the end.
  if (room < 0 && ceil_mode && room > -axis.stride && axis.in + axis.pad_begin > 0) {
    axis.out = 1;
    return {};
  }
  if (room < 0) {
    return Error{ErrorCode::kShape, "the window does not fit", "",
                 fmt::format("kernel {} with dilation {} over extent {} with padding {} and {}", axis.kernel,
                             axis.dilation, axis.in, axis.pad_begin, axis.pad_end),
                 "repair the model"};
  }
  axis.out = room / axis.stride + 1;
  // With ceil_mode one more window, if it starts inside the data or the padding in front of it.
  if (ceil_mode && room % axis.stride != 0 && axis.out * axis.stride < axis.in + axis.pad_begin) axis.out += 1;
  return {};
}

}  // namespace

Result<std::vector<WindowAxis>> window_axes(const Attributes& attributes, std::span<const int64_t> in,
                                            std::span<const int64_t> kernel) {
  OPENRKNN_TRY(auto axes, read_axes(attributes, in, kernel));
  OPENRKNN_TRY(const std::string mode, auto_pad(attributes));
  const bool ceil_mode = attributes.int_or("ceil_mode", 0) != 0;
  for (WindowAxis& axis : axes) OPENRKNN_CHECK_OK(finish_axis(axis, mode, ceil_mode));
  return axes;
}

Result<std::vector<WindowAxis>> transposed_window_axes(const Attributes& attributes, std::span<const int64_t> in,
                                                       std::span<const int64_t> kernel) {
  OPENRKNN_TRY(auto axes, read_axes(attributes, in, kernel));
  OPENRKNN_TRY(const std::string mode, auto_pad(attributes));
  OPENRKNN_TRY(const auto extra, read_list(attributes, "output_padding", axes.size(), 0, 0));
  const bool shaped = attributes.has("output_shape") && !attributes.ints_or("output_shape", {}).empty();
  std::vector<int64_t> wanted(axes.size(), 0);
  if (shaped) {
    OPENRKNN_TRY(wanted, read_list(attributes, "output_shape", axes.size(), 0, 1));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    WindowAxis& axis = axes[i];
    const int64_t whole = axis.stride * (axis.in - 1) + extra[i] + axis.span();
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (shaped || same) {
      axis.out = shaped ? wanted[i] : axis.in * axis.stride;
      // A result larger than what the taps reach keeps the bias there: the padding is negative at no end.
      const int64_t total = std::max<int64_t>(0, whole - axis.out);
      axis.pad_begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      axis.pad_end = total - axis.pad_begin;
    } else {
      if (mode == "VALID") axis.pad_begin = axis.pad_end = 0;
      axis.out = whole - axis.pad_begin - axis.pad_end;
    }
    if (axis.out < 1) {
      return bad_attribute("pads", fmt::format("nothing is left of {} positions after cutting {} and {}", whole,
                                               axis.pad_begin, axis.pad_end));
    }
  }
  return axes;
}

std::vector<WindowAxis> three_axes(std::vector<WindowAxis> axes) {
  while (axes.size() < 3) axes.insert(axes.begin(), WindowAxis{});
  return axes;
}

}  // namespace openrknn
