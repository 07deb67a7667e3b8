#include "model/validate.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/checked.hpp"
#include "model/codec.hpp"

namespace openrknn::model {
namespace {

constexpr int64_t kBlobAlignment = 64;
constexpr int64_t kBufferAlignment = 16;  // the smallest unit that every target's addresses keep
constexpr int kMaxLanes = 64;

bool in_range(int index, size_t count) { return index >= 0 && static_cast<size_t>(index) < count; }

Status validate_blobs(const Program& p) {
  const auto total = p.weights != nullptr ? static_cast<int64_t>(p.weights->bytes().size()) : 0;
  for (size_t i = 0; i < p.blobs.size(); ++i) {
    const Blob& b = p.blobs[i];
    const bool inside = b.offset >= 0 && b.size >= 0 && b.offset <= total && b.size <= total - b.offset;
    if (!inside || b.offset % kBlobAlignment != 0) {
      return invalid(fmt::format("blob {}", i),
                     fmt::format("offset {} and size {} do not fit a section of {} bytes in steps of {}", b.offset,
                                 b.size, total, kBlobAlignment));
    }
  }
  return {};
}

// a * b + c for non-negative operands, or nothing on overflow or a negative operand.
std::optional<int64_t> product_sum(int64_t a, int64_t b, std::optional<int64_t> c) {
  if (!c || a < 0 || b < 0 || *c < 0) return std::nullopt;
  const auto product = checked_mul(a, b);
  return product ? checked_add(*product, *c) : std::nullopt;
}

// Bytes of one image of a cube, padding lanes included.
std::optional<int64_t> image_bytes(const TensorDesc& t) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  const bool pixels = t.layout == Layout::kNHWC;
  const int64_t lanes = pixels ? t.cube.c : t.c2;
  const int64_t planes = pixels ? 1 : ceil_div(t.cube.c, t.c2);
  const auto row = product_sum(t.cube.w, lanes * size, 0);
  const auto plane = product_sum(t.cube.h - 1, t.row_stride, row);
  if (!row || !plane || t.row_stride < *row) return std::nullopt;
  if (!pixels && planes > 1 && t.surface_stride < *plane) return std::nullopt;
  const auto image = product_sum(planes - 1, t.surface_stride, plane);
  if (!image || (t.cube.n > 1 && t.batch_stride < *image)) return std::nullopt;
  return image;
}

Status validate_strides(const TensorDesc& t) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  if (!(t.cube == cube_of(t.shape))) return invalid(t.name, "its cube is not that of its shape " + t.shape.to_string());
  const bool lanes_ok = t.c2 >= 1 && t.c2 <= kMaxLanes && (t.c2 & (t.c2 - 1)) == 0;
  if (t.layout == Layout::kNC1HWC2 && !lanes_ok) return invalid(t.name, fmt::format("{} lanes a pixel", t.c2));
  const auto image = image_bytes(t);
  if (!image || !product_sum(t.cube.n - 1, t.batch_stride, image)) {
    return invalid(t.name, fmt::format("strides {}, {}, {} (row, surface, batch) do not hold its cube", t.row_stride,
                                       t.surface_stride, t.batch_stride));
  }
  if (t.row_stride % size != 0 || t.surface_stride % size != 0 || t.batch_stride % size != 0)
    return invalid(t.name, "a stride cuts an element");
  return {};
}

Status validate_place(const Program& p, const TensorDesc& t) {
  const bool placed = t.buffer != kNone;
  if (placed == (t.constant != kNone)) return invalid(t.name, "it must lie either in a buffer or in a blob");
  if (placed ? !in_range(t.buffer, p.buffers.size()) : !in_range(t.constant, p.blobs.size()))
    return invalid(t.name, "its buffer or blob does not exist");
  const int64_t room =
      placed ? p.buffers[static_cast<size_t>(t.buffer)].size : p.blobs[static_cast<size_t>(t.constant)].size;
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  Region region = region_of(t);
  region.lo = 0;  // the offset may be anything yet
  const int64_t bytes = region.end();
  if (t.offset < 0 || t.offset % size != 0 || t.offset > room || bytes > room - t.offset) {
    return invalid(t.name, fmt::format("{} bytes at offset {} leave its place of {} bytes", bytes, t.offset, room));
  }
  return {};
}

Status validate_tensor(const Program& p, const TensorDesc& t) {
  if (dtype_size(t.dtype) == 0) return invalid(t.name, "its element type has no size");
  const auto dims = t.shape.dims();
  // Parameters of CPU tasks may be lists of nothing (the axes of a reduction).
  const int64_t least = t.constant != kNone && t.layout == Layout::kPlain ? 0 : 1;
  if (std::any_of(dims.begin(), dims.end(), [least](int64_t d) { return d < least; }))
    return invalid(t.name, "an extent below 1 in " + t.shape.to_string());
  if (t.layout != Layout::kPlain) OPENRKNN_CHECK_OK(validate_strides(t));
  if (t.quant) {
    if (auto status = t.quant->validate(t.shape); !status.ok())
      return invalid(t.name, "quantization parameters: " + status.error().message());
    if (t.quant->dtype != t.dtype) return invalid(t.name, "its quantization parameters are of another type");
  }
  return validate_place(p, t);
}

Status validate_port(const Program& p, const Port& port, bool input) {
  if (!in_range(port.tensor, p.tensors.size())) return invalid(port.name, "the port's tensor does not exist");
  const TensorDesc& t = p.tensor(port.tensor);
  if (port.source_shape.elements() != t.shape.elements())
    return invalid(port.name,
                   "source shape " + port.source_shape.to_string() + " is not that of tensor " + t.shape.to_string());
  if (input && t.constant != kNone) return invalid(port.name, "an input cannot be a constant");
  if (port.mean.empty() && port.std_dev.empty()) return {};
  const int rank = port.source_shape.rank();
  if (port.channel_axis < 0 || port.channel_axis >= rank)
    return invalid(port.name, fmt::format("channel axis {} of rank {}", port.channel_axis, rank));
  const auto channels = static_cast<size_t>(port.source_shape[port.channel_axis]);
  const auto fits = [&](const std::vector<float>& v) { return v.empty() || v.size() == channels; };
  const auto usable = [](float x) { return std::isfinite(x); };
  const bool numbers =
      std::all_of(port.mean.begin(), port.mean.end(), usable) &&
      std::all_of(port.std_dev.begin(), port.std_dev.end(), [](float x) { return std::isfinite(x) && x != 0; });
  if (!fits(port.mean) || !fits(port.std_dev) || !numbers)
    return invalid(port.name, fmt::format("mean and std must be {} finite numbers, std not 0", channels));
  return {};
}

Status validate_ports(const Program& p) {
  std::set<std::string> inputs, outputs;
  for (const Port& port : p.inputs) {
    if (!inputs.insert(port.name).second) return invalid(port.name, "two inputs have this name");
    OPENRKNN_CHECK_OK(validate_port(p, port, true));
  }
  for (const Port& port : p.outputs) {
    if (!outputs.insert(port.name).second) return invalid(port.name, "two outputs have this name");
    OPENRKNN_CHECK_OK(validate_port(p, port, false));
  }
  return {};
}

Status validate_profile(const Program& p) {
  const NumericsProfile& n = p.profile;
  // exact_dot_f16 takes at most 64 products.
  if (n.fp16_group < 1 || n.fp16_group > 64 || n.fp16_slice < 1 || n.fp16_slice > 4096)
    return invalid("profile", "fp16 group or slice out of range");
  if (p.arena_size < 0 || p.cbuf_bytes < 0 || p.cbuf_bank_bytes < 0) return invalid("program", "a negative size");
  return {};
}

Status validate_lifetimes(const Program& p) {
  const auto tasks = static_cast<int>(p.tasks.size());
  for (const Buffer& b : p.buffers) {
    if (b.size < 0 || b.offset < 0 || b.offset % kBufferAlignment != 0 || b.offset > p.arena_size ||
        b.size > p.arena_size - b.offset) {
      return invalid(
          b.name, fmt::format("buffer of {} bytes at {} does not fit the arena of {}", b.size, b.offset, p.arena_size));
    }
    if (b.first_task < -1 || b.last_task < b.first_task || b.last_task > tasks)
      return invalid(b.name, fmt::format("lifetime {}..{} of {} tasks", b.first_task, b.last_task, tasks));
  }
  return {};
}

}  // namespace

Region region_of(const TensorDesc& t) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  if (t.layout == Layout::kPlain) return {t.offset, t.shape.elements() * size, 1, 0};
  return {t.offset, image_bytes(t).value_or(0), t.cube.n, t.batch_stride};
}

bool overlap(const Region& a, const Region& b) {
  if (a.lo >= b.end() || b.lo >= a.end()) return false;
  // Slices of one root: the images alternate, so only places inside an image decide.
  const bool same_root = a.batch == b.batch && a.batch > 0 && (a.images > 1 || b.images > 1);
  if (!same_root) return true;
  const int64_t a_lo = a.lo % a.batch, b_lo = b.lo % b.batch;
  if (a_lo + a.length > a.batch || b_lo + b.length > b.batch) return true;
  const int64_t a_image = a.lo / a.batch, b_image = b.lo / b.batch;
  if (a_image + a.images <= b_image || b_image + b.images <= a_image) return false;
  return a_lo < b_lo + b.length && b_lo < a_lo + a.length;
}

Status validate_tensors(const Program& p) {
  for (const TensorDesc& t : p.tensors) OPENRKNN_CHECK_OK(validate_tensor(p, t));
  return {};
}

// Buffers that live at the same time lie apart: a sweep over time with the live ones ordered by offset.
Status validate_buffers(const Program& p) {
  OPENRKNN_CHECK_OK(validate_lifetimes(p));
  std::vector<int> order;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].size > 0) order.push_back(static_cast<int>(i));
  }
  const auto at = [&](int i) -> const Buffer& { return p.buffers[static_cast<size_t>(i)]; };
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(at(a).first_task, a) < std::pair(at(b).first_task, b); });
  std::set<std::pair<int64_t, int>> live;  // offset, buffer
  std::set<std::pair<int, int>> ends;      // last task, buffer
  for (const int i : order) {
    while (!ends.empty() && ends.begin()->first < at(i).first_task) {
      live.erase({at(ends.begin()->second).offset, ends.begin()->second});
      ends.erase(ends.begin());
    }
    const auto next = live.lower_bound({at(i).offset, -1});
    int other = kNone;
    if (next != live.end() && next->first < at(i).offset + at(i).size) other = next->second;
    if (next != live.begin() && at(std::prev(next)->second).offset + at(std::prev(next)->second).size > at(i).offset)
      other = std::prev(next)->second;
    if (other != kNone)
      return invalid(at(i).name,
                     fmt::format("it overlaps buffer '{}', which is live at the same time", at(other).name));
    live.insert({at(i).offset, i});
    ends.insert({at(i).last_task, i});
  }
  return {};
}

Status validate(const Program& p) {
  OPENRKNN_CHECK_OK(validate_profile(p));
  OPENRKNN_CHECK_OK(validate_blobs(p));
  OPENRKNN_CHECK_OK(validate_buffers(p));
  OPENRKNN_CHECK_OK(validate_tensors(p));
  OPENRKNN_CHECK_OK(validate_ports(p));
  for (const Task& task : p.tasks) {
    OPENRKNN_CHECK_OK(validate_task(p, task));
    OPENRKNN_CHECK_OK(validate_tiles(p, task));
  }
  return validate_flow(p);
}

}  // namespace openrknn::model
