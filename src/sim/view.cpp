#include "sim/view.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/transpose.hpp"
#include "model/codec.hpp"

namespace openrknn::sim {
namespace {

using model::Cube;
using model::Layout;
using model::TensorDesc;

constexpr int64_t kGrainBytes = 1 << 16;  // work of one thread at least

View common(const TensorDesc& t, std::byte* base) {
  View v;
  v.base = base;
  v.dtype = t.dtype;
  v.size = static_cast<int64_t>(dtype_size(t.dtype));
  v.cube = t.layout == Layout::kPlain ? model::cube_of(t.shape) : t.cube;
  if (t.dtype == DType::kInt8 && t.quant) v.padding = static_cast<uint8_t>(static_cast<int8_t>(t.quant->zero_point()));
  return v;
}

void set_plain(View& v) {
  v.lanes = 1;
  v.blocks = v.cube.c;
  v.pixel = v.size;
  v.row = v.cube.w * v.size;
  v.plane = v.cube.h * v.row;
  v.image = v.cube.c * v.plane;
}

// The tensor's place in its root: image, plane, row and pixel of its first element, found from the shared strides. All
// tensors of one buffer with equal strides map to the same pixels, so slices stay slices.
void set_pixels_of_root(View& v, const TensorDesc& t) {
  const int64_t lane_bytes = t.c2 * v.size;
  const auto split = [](int64_t& offset, int64_t unit) {
    const int64_t count = unit > 0 ? offset / unit : 0;
    offset -= count * unit;
    return count;
  };
  int64_t rest = t.offset;
  const int64_t image = split(rest, t.batch_stride), plane = split(rest, t.surface_stride),
                row = split(rest, t.row_stride), pixel = rest / lane_bytes;
  const int64_t planes = t.surface_stride > 0 ? std::max<int64_t>(1, t.batch_stride / t.surface_stride) : 1;
  const int64_t columns = std::max<int64_t>(1, t.row_stride / lane_bytes);
  v.lanes = align_up(v.cube.c, t.c2);
  v.blocks = 1;
  v.pixel = std::max(planes * lane_bytes, v.lanes * v.size);
  v.row = columns * v.pixel;
  v.image = t.batch_stride;
  v.base += image * v.image + row * v.row + pixel * v.pixel + plane * lane_bytes;
}

// Neighbouring channels that lie together, from one that is a multiple of them on.
int64_t channels_together(const View& v) { return v.plane == v.lanes * v.size ? v.blocks * v.lanes : v.lanes; }

// A row of one channel lies together, and nothing else: row-major tensors of several columns.
bool lines_of_channels(const View& v) { return v.lanes == 1 && v.pixel == v.size && v.cube.w > 1 && v.blocks > 1; }

// Pieces of kPart to 2 kPart bytes, by their first and their last kPart.
template <size_t kPart>
void copy_ends(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count, size_t bytes) {
  const size_t last = bytes - kPart;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, kPart);
    std::memcpy(to + i * to_step + last, from + i * from_step + last, kPart);
  }
}

// `count` pieces of `bytes` bytes, so many bytes apart; short pieces as what registers move.
void copy_pieces(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count,
                 size_t bytes) {
  const auto copy = [&](auto size) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, size());
  };
  switch (bytes) {
    case 1:
      return copy(std::integral_constant<size_t, 1>());
    case 2:
      return copy(std::integral_constant<size_t, 2>());
    case 4:
      return copy(std::integral_constant<size_t, 4>());
    case 8:
      return copy(std::integral_constant<size_t, 8>());
    case 16:
      return copy(std::integral_constant<size_t, 16>());
    case 32:
      return copy(std::integral_constant<size_t, 32>());
    default:
      break;
  }
  if (bytes > 8 && bytes < 16) return copy_ends<8>(from, from_step, to, to_step, count, bytes);
  if (bytes > 16 && bytes < 32) return copy_ends<16>(from, from_step, to, to_step, count, bytes);
  if (bytes > 32 && bytes <= 64) return copy_ends<32>(from, from_step, to, to_step, count, bytes);
  copy([bytes] { return bytes; });
}

template <typename T>
void gather_as(const View& v, const Part& p, T* to, int64_t stride) {
  const Cube& k = v.cube;
  const std::byte* start = v.at(k.n == 1 ? 0 : p.n, k.h == 1 ? 0 : p.h, k.w == 1 ? 0 : p.w);
  const int64_t step = k.w == 1 ? 0 : v.pixel;
  if (k.c == 1 && p.c + p.cs > 1) {  // one channel for all
    for (int64_t w = 0; w < p.ws; ++w) {
      T x;
      std::memcpy(&x, start + w * step, sizeof(T));
      std::fill_n(to + w * stride, p.cs, x);
    }
    return;
  }
  if (step != 0 && lines_of_channels(v)) {
    return transpose_matrix(start + p.c * v.plane, v.plane, p.cs, p.ws, to, stride * v.size, sizeof(T));
  }
  const int64_t together = channels_together(v);
  for (int64_t c = p.c; c < p.c + p.cs;) {
    const int64_t run = std::min(p.c + p.cs - c, together - c % together);
    const std::byte* from = start + c / v.lanes * v.plane + c % v.lanes * v.size;
    auto* out = reinterpret_cast<std::byte*>(to + (c - p.c));
    copy_pieces(from, step, out, stride * v.size, p.ws, static_cast<size_t>(run) * sizeof(T));
    c += run;
  }
}

// The lanes behind the last channel, of `count` pixels from `first` on.
template <typename T>
void fill_padding_as(const View& v, std::byte* first, int64_t count) {
  const auto padding = static_cast<T>(v.padding);
  for (int64_t c = v.cube.c; c < v.blocks * v.lanes; ++c) {
    std::byte* to = first + c / v.lanes * v.plane + c % v.lanes * v.size;
    for (int64_t w = 0; w < count; ++w) std::memcpy(to + w * v.pixel, &padding, sizeof(T));
  }
}

template <typename T>
void scatter_as(const View& v, const Part& p, const T* from, int64_t stride) {
  std::byte* start = v.at(p.n, p.h, p.w);
  if (lines_of_channels(v)) {
    return transpose_matrix(from, stride * v.size, p.ws, p.cs, start + p.c * v.plane, v.plane, sizeof(T));
  }
  const int64_t together = channels_together(v);
  for (int64_t c = p.c; c < p.c + p.cs;) {
    const int64_t run = std::min(p.c + p.cs - c, together - c % together);
    std::byte* to = start + c / v.lanes * v.plane + c % v.lanes * v.size;
    const auto* in = reinterpret_cast<const std::byte*>(from + (c - p.c));
    copy_pieces(in, stride * v.size, to, v.pixel, p.ws, static_cast<size_t>(run) * sizeof(T));
    c += run;
  }
  if (p.c + p.cs != v.cube.c) return;
  fill_padding_as<T>(v, start, p.ws);
}

template <typename F>
void with_element(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{0});
    case 2:
      return f(uint16_t{0});
    case 4:
      return f(uint32_t{0});
    case 8:
      return f(uint64_t{0});
    default:
      return;
  }
}

void fill_padding(const View& v, std::byte* first, int64_t count) {
  with_element(v.size, [&](auto tag) { fill_padding_as<decltype(tag)>(v, first, count); });
}

}  // namespace

Result<View> view_of(const TensorDesc& t, Mode mode, std::byte* base, int64_t room) {
  View v = common(t, base);
  if (t.layout == Layout::kPlain) {
    v.base += t.offset;
    set_plain(v);
  } else if (t.layout == Layout::kNHWC) {
    v.base += t.offset;
    v.lanes = v.cube.c;
    v.pixel = v.cube.c * v.size;
    v.row = t.row_stride;
    v.image = t.batch_stride;
  } else if (mode == Mode::kStrict) {
    v.base += t.offset;
    v.lanes = t.c2;
    v.blocks = ceil_div(v.cube.c, v.lanes);
    v.pads = true;
    v.pixel = v.lanes * v.size;
    v.row = t.row_stride;
    v.plane = t.surface_stride;
    v.image = t.batch_stride;
  } else {
    set_pixels_of_root(v, t);
  }
  if (v.base - base + v.end() > room) {
    return Error{ErrorCode::kFormat, "cannot place a tensor", t.name,
                 "its strides do not divide its buffer into whole pixels", "build the file again"};
  }
  return v;
}

View dense_view(const TensorDesc& t, std::byte* base) {
  View v = common(t, base);
  v.lanes = v.cube.c;
  v.pixel = v.cube.c * v.size;
  v.row = v.cube.w * v.pixel;
  v.image = v.cube.h * v.row;
  return v;
}

View row_major_view(const TensorDesc& t, std::byte* base) {
  View v = common(t, base);
  set_plain(v);
  return v;
}

void gather(const View& v, const Part& part, void* pixels, int64_t stride) {
  with_element(v.size, [&](auto tag) { gather_as(v, part, static_cast<decltype(tag)*>(pixels), stride); });
}

void scatter(const View& v, const Part& part, const void* pixels, int64_t stride) {
  with_element(v.size, [&](auto tag) { scatter_as(v, part, static_cast<const decltype(tag)*>(pixels), stride); });
}

bool is_plain(const View& v) {
  return v.lanes == 1 && v.pixel == v.size && v.row == v.cube.w * v.pixel && v.plane == v.cube.h * v.row &&
         v.image == v.cube.c * v.plane;
}

void for_runs(const View& v, const std::function<void(int64_t, int64_t, int64_t)>& body) {
  const Cube& k = v.cube;
  const int64_t bytes = std::max<int64_t>(1, k.c * v.size);
  const bool joined = k.h == 1 || v.row == k.w * v.pixel;
  const int64_t pixels = k.h * k.w;
  const int64_t run = joined ? align_up(std::max<int64_t>(1, kGrainBytes / bytes), 64) : k.w;
  const int64_t runs = ceil_div(pixels, std::max<int64_t>(1, run));
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (std::max<int64_t>(1, run) * bytes));
  parallel_for(k.n * runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pixel = i % runs * run;
      body(i / runs, pixel, std::min(run, pixels - pixel));
    }
  });
}

void read_lines(const View& v, int64_t n, int64_t pixel, int64_t count, void* lines, int64_t line) {
  const std::byte* from = v.at(n, pixel / v.cube.w, pixel % v.cube.w);
  for (int64_t c = 0; c < v.cube.c; c += v.lanes) {
    transpose_matrix(from + c / v.lanes * v.plane, v.pixel, count, std::min(v.lanes, v.cube.c - c),
                     static_cast<std::byte*>(lines) + c * line, line, static_cast<size_t>(v.size));
  }
}

void write_lines(const View& v, int64_t n, int64_t pixel, int64_t count, const void* lines, int64_t line) {
  std::byte* to = v.at(n, pixel / v.cube.w, pixel % v.cube.w);
  for (int64_t c = 0; c < v.cube.c; c += v.lanes) {
    transpose_matrix(static_cast<const std::byte*>(lines) + c * line, line, std::min(v.lanes, v.cube.c - c), count,
                     to + c / v.lanes * v.plane, v.pixel, static_cast<size_t>(v.size));
  }
  if (v.pads) fill_padding(v, to, count);
}

void to_plain(const View& v, void* plain) {
  const Cube& k = v.cube;
  if (is_plain(v)) {
    std::memcpy(plain, v.base, static_cast<size_t>(k.n * v.image));
    return;
  }
  const int64_t line = k.h * k.w * v.size;
  for_runs(v, [&](int64_t n, int64_t pixel, int64_t count) {
    read_lines(v, n, pixel, count, static_cast<std::byte*>(plain) + n * k.c * line + pixel * v.size, line);
  });
}

void from_plain(const View& v, const void* plain) {
  const Cube& k = v.cube;
  if (is_plain(v)) {
    std::memcpy(v.base, plain, static_cast<size_t>(k.n * v.image));
    return;
  }
  const int64_t line = k.h * k.w * v.size;
  for_runs(v, [&](int64_t n, int64_t pixel, int64_t count) {
    write_lines(v, n, pixel, count, static_cast<const std::byte*>(plain) + n * k.c * line + pixel * v.size, line);
  });
}

}  // namespace openrknn::sim
