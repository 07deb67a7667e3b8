// Where the elements of a tensor lie: one description for NC1HWC2 cubes, NHWC pixels and row-major elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "model/program.hpp"

namespace openrknn::sim {

// How cubes lie in the arena.
enum class Mode : uint8_t {
  kFast,    // NHWC inside the same buffers: the pixels of the root tensor with all its planes side by side; row-major
            // where no task wants pixels
  kStrict,  // NC1HWC2 at the Program's own strides
};

struct View {
  std::byte* base = nullptr;  // of element (0, 0, 0, 0)
  DType dtype = DType::kUndefined;
  int64_t size = 0;  // bytes of an element
  model::Cube cube;
  int64_t lanes = 1;                                 // neighbouring channels of a pixel
  int64_t blocks = 1;                                // of `lanes` channels; the last one may be padded
  int64_t image = 0, row = 0, pixel = 0, plane = 0;  // strides in bytes; plane: from block to block
  uint64_t padding = 0;                              // bits of an element of a padding lane
  bool pads = false;  // padding lanes are written (strict mode: others rely on their bytes)

  bool single() const { return blocks == 1; }        // a pixel's channels lie together
  bool direct() const { return single() && !pads; }  // results may be written where they belong, without scatter
  int64_t stride() const { return pixel / size; }    // elements from pixel to pixel
  std::byte* at(int64_t n, int64_t h, int64_t w) const { return base + n * image + h * row + w * pixel; }
  // Offset behind the last byte that an access may touch.
  int64_t end() const {
    return (cube.n - 1) * image + (cube.h - 1) * row + (cube.w - 1) * pixel + (blocks - 1) * plane + lanes * size;
  }
};

// `base`: start of the tensor's buffer or blob. An error when the NHWC form would leave `room` bytes.
Result<View> view_of(const model::TensorDesc& tensor, Mode mode, std::byte* base, int64_t room);
// Dense NHWC: what constants become in fast mode.
View dense_view(const model::TensorDesc& tensor, std::byte* base);
// Row-major elements at `base`, whatever the tensor's layout.
View row_major_view(const model::TensorDesc& tensor, std::byte* base);

// A block of pixels of one row and a range of channels.
struct Part {
  int64_t n, h, w, ws, c, cs;
};
// Copies a part to dense pixels `stride` elements apart, and back. Extents of 1 in the view repeat (broadcasting) in
// gather. scatter fills the padding lanes when the part ends at the last channel.
void gather(const View& view, const Part& part, void* pixels, int64_t stride);
void scatter(const View& view, const Part& part, const void* pixels, int64_t stride);

// Calls body(n, pixel, count) for all of a tensor over threads: runs of pixels of image n, counted row by row, that lie
// `pixel` bytes apart.
void for_runs(const View& view, const std::function<void(int64_t, int64_t, int64_t)>& body);
// Such a run as one line a channel, `line` bytes apart, and back.
void read_lines(const View& view, int64_t n, int64_t pixel, int64_t count, void* lines, int64_t line);
void write_lines(const View& view, int64_t n, int64_t pixel, int64_t count, const void* lines, int64_t line);
// Whether channels are such lines already, row-major.
bool is_plain(const View& view);

// The whole tensor as row-major elements of its logical shape, and back.
void to_plain(const View& view, void* plain);
void from_plain(const View& view, const void* plain);

}  // namespace openrknn::sim
