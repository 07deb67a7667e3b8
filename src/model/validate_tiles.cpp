// Tiles cover each element of a result exactly once, and each brings the input that it needs.
#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.hpp"
#include "model/codec.hpp"
#include "model/validate.hpp"

namespace openrknn::model {
namespace {

constexpr size_t kMaxCells = size_t{1} << 24;

// One axis of a window: rows `first .. first + count - 1` of the result need input rows through kernel, stride and
// padding.
struct Axis {
  int64_t kernel, stride, dilation, pad, extent;
  bool transposed;
};

struct Span {
  int64_t first, last;  // inclusive; empty when first > last
};

// The input rows that exist among those needed.
Span needed(const Axis& a, int64_t first, int64_t count) {
  const int64_t reach = (a.kernel - 1) * a.dilation;
  if (!a.transposed) {
    const int64_t start = first * a.stride - a.pad;
    return {std::max<int64_t>(0, start), std::min(a.extent - 1, (first + count - 1) * a.stride - a.pad + reach)};
  }
  // Of the dilated input only multiples of the stride are real.
  const int64_t start = std::max<int64_t>(0, first - (reach - a.pad));
  const int64_t end = first + count - 1 - (reach - a.pad) + reach;
  return {ceil_div(start, a.stride), end < 0 ? int64_t{-1} : std::min(a.extent - 1, end / a.stride)};
}

bool window_fits(const Axis& a, int64_t first, int64_t count, int64_t in, int64_t ins) {
  if (in < 0 || ins < 0 || in > a.extent || ins > a.extent - in) return false;
  const Span span = needed(a, first, count);
  return span.first > span.last || (in <= span.first && in + ins > span.last);
}

std::array<Axis, 2> axes_of(const Program& p, const Task& task) {
  const Cube& x = p.tensor(task.inputs[0]).cube;
  if (task.conv) {
    const Convolution& c = *task.conv;
    return {Axis{c.kernel[0], c.stride[0], c.dilation[0], c.pad[0], x.h, c.transposed},
            Axis{c.kernel[1], c.stride[1], c.dilation[1], c.pad[1], x.w, c.transposed}};
  }
  const Pool& k = *task.pool;
  return {Axis{k.kernel[0], k.stride[0], 1, k.pad[0], x.h, false},
          Axis{k.kernel[1], k.stride[1], 1, k.pad[1], x.w, false}};
}

struct Block {
  std::array<int64_t, 4> lo, hi;  // n, oc, oh, ow
};

Block block_of(const Tile& t) {
  return {{t.n, t.oc, t.oh, t.ow},
          {int64_t{t.n} + 1, int64_t{t.oc} + t.ocs, int64_t{t.oh} + t.ohs, int64_t{t.ow} + t.ows}};
}

// Cuts the result at every border of a tile and counts each cell.
class Coverage {
 public:
  explicit Coverage(const std::array<int64_t, 4>& extents) : extents_(extents) {}

  bool exact(const std::vector<Tile>& tiles) {
    for (size_t d = 0; d < 4; ++d) cuts_[d] = {0, extents_[d]};
    for (const Tile& t : tiles) {
      const Block b = block_of(t);
      for (size_t d = 0; d < 4; ++d) {
        if (b.lo[d] < 0 || b.hi[d] <= b.lo[d] || b.hi[d] > extents_[d]) return false;
        cuts_[d].push_back(b.lo[d]);
        cuts_[d].push_back(b.hi[d]);
      }
    }
    size_t cells = 1;
    for (auto& cut : cuts_) {
      std::sort(cut.begin(), cut.end());
      cut.erase(std::unique(cut.begin(), cut.end()), cut.end());
      cells *= cut.size() - 1;
      if (cells > kMaxCells) return false;
    }
    seen_.assign(cells, false);
    for (const Tile& t : tiles) {
      if (!mark(block_of(t))) return false;
    }
    return marked_ == cells;
  }

 private:
  size_t index(size_t d, int64_t x) const {
    return static_cast<size_t>(std::lower_bound(cuts_[d].begin(), cuts_[d].end(), x) - cuts_[d].begin());
  }

  bool mark(const Block& b) {
    std::array<size_t, 4> lo{}, hi{}, count{};
    for (size_t d = 0; d < 4; ++d) {
      lo[d] = index(d, b.lo[d]);
      hi[d] = index(d, b.hi[d]);
      count[d] = cuts_[d].size() - 1;
    }
    for (size_t n = lo[0]; n < hi[0]; ++n) {
      for (size_t c = lo[1]; c < hi[1]; ++c) {
        for (size_t h = lo[2]; h < hi[2]; ++h) {
          for (size_t w = lo[3]; w < hi[3]; ++w) {
            const size_t cell = ((n * count[1] + c) * count[2] + h) * count[3] + w;
            if (seen_[cell]) return false;
            seen_[cell] = true;
            ++marked_;
          }
        }
      }
    }
    return true;
  }

  std::array<int64_t, 4> extents_;
  std::array<std::vector<int64_t>, 4> cuts_;
  std::vector<bool> seen_;
  size_t marked_ = 0;
};

}  // namespace

Status validate_tiles(const Program& p, const Task& task) {
  const bool windows = task.kind == TaskKind::kConv || task.kind == TaskKind::kPool;
  if (!windows && task.tiles.empty()) return {};
  const TensorDesc& out = p.tensor(task.outputs[0]);
  const Cube cube = out.layout == Layout::kPlain ? cube_of(out.shape) : out.cube;
  if (!Coverage({cube.n, cube.c, cube.h, cube.w}).exact(task.tiles)) {
    return invalid(task.name, fmt::format("its {} tiles do not cover each result exactly once", task.tiles.size()));
  }
  if (!windows) return {};
  const auto [rows, columns] = axes_of(p, task);
  const int32_t group = task.conv ? (task.conv->mode == ConvMode::kDepthwise ? 1 : task.conv->kernel_group) : 1;
  for (size_t i = 0; i < task.tiles.size(); ++i) {
    const Tile& t = task.tiles[i];
    if (!window_fits(rows, t.oh, t.ohs, t.ih, t.ihs) || !window_fits(columns, t.ow, t.ows, t.iw, t.iws)) {
      return invalid(task.name, fmt::format("tile {} does not bring the input that it needs", i));
    }
    if (t.oc % group != 0)
      return invalid(task.name, fmt::format("tile {} starts inside a group of {} kernels", i, group));
    if (t.data_banks < 0 || t.weight_banks < 0)
      return invalid(task.name, fmt::format("tile {} has a negative number of banks", i));
  }
  return {};
}

}  // namespace openrknn::model
