#include "sim/slab.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/parallel.hpp"

namespace openrknn::sim {
namespace {

// Copying whole pixels is cheaper than picking their real lanes when few lanes are padding.
constexpr int64_t kSpareBytes = 32;
// Kernels may load whole vectors behind the last pixel.
constexpr int64_t kSlack = 256;
constexpr int64_t kGrainBytes = 1 << 16;

bool lies_in_place(const Source& s, const Rectangle& r) {
  const View& v = *s.view;
  const bool real = r.dilate_h == 1 && r.dilate_w == 1 && r.top >= s.top && r.top + r.rows <= s.top + s.rows &&
                    r.left == s.left && r.columns == s.columns;
  return real && v.single() && (v.row == r.columns * v.pixel || r.rows == 1);
}

void fill(const Rectangle& r, int64_t size, std::byte* to, int64_t elements) {
  if (size == 1 || r.fill[0] == r.fill[1]) {
    std::memset(to, static_cast<int>(r.fill[0]), static_cast<size_t>(elements * size));
    return;
  }
  for (int64_t i = 0; i < elements; ++i) std::memcpy(to + 2 * i, r.fill, 2);
}

class Cutter {
 public:
  Cutter(const Source& s, const Rectangle& r, int64_t lanes, std::byte* to)
      : s_(s), v_(*s.view), r_(r), lanes_(lanes), to_(to) {}

  void row(int64_t i) const {
    std::byte* out = to_ + i * r_.columns * lanes_ * v_.size;
    const int64_t y = r_.top + i;
    const int64_t real_y = y / r_.dilate_h - s_.top;
    if (y < 0 || y % r_.dilate_h != 0 || real_y < 0 || real_y >= s_.rows)
      return fill(r_, v_.size, out, r_.columns * lanes_);
    if (r_.dilate_w != 1) return dilated(real_y, out);
    const int64_t lo = std::clamp<int64_t>(s_.left - r_.left, 0, r_.columns);
    const int64_t hi = std::clamp<int64_t>(s_.left + s_.columns - r_.left, lo, r_.columns);
    fill(r_, v_.size, out, lo * lanes_);
    if (hi > lo) copy(real_y, r_.left + lo - s_.left, hi - lo, out + lo * lanes_ * v_.size);
    fill(r_, v_.size, out + hi * lanes_ * v_.size, (r_.columns - hi) * lanes_);
  }

 private:
  void dilated(int64_t real_y, std::byte* out) const {
    fill(r_, v_.size, out, r_.columns * lanes_);
    for (int64_t x = 0; x < s_.columns; ++x) {
      const int64_t at = (s_.left + x) * r_.dilate_w - r_.left;
      if (at >= 0 && at < r_.columns) copy(real_y, x, 1, out + at * lanes_ * v_.size);
    }
  }
  void copy(int64_t y, int64_t x, int64_t count, std::byte* out) const {
    if (lanes_ == v_.stride() && v_.single() && r_.channel == 0) {
      std::memcpy(out, v_.at(s_.n, y, x), static_cast<size_t>(count * v_.pixel));
      return;
    }
    gather(v_, {s_.n, y, x, count, r_.channel, r_.channels}, out, lanes_);
  }

  const Source& s_;
  const View& v_;
  const Rectangle& r_;
  int64_t lanes_;
  std::byte* to_;
};

}  // namespace

Slab cut(const Source& s, const Rectangle& r, std::vector<std::byte>& storage) {
  const View& v = *s.view;
  if (lies_in_place(s, r)) return {v.at(s.n, r.top - s.top, 0) + r.channel * v.size, v.stride()};
  const bool whole = v.single() && r.channel == 0 && v.pixel - r.channels * v.size <= kSpareBytes;
  const int64_t lanes = whole ? v.stride() : r.channels;
  const int64_t row_bytes = r.columns * lanes * v.size;
  const size_t bytes = static_cast<size_t>(r.rows * row_bytes + kSlack);
  if (storage.size() < bytes) storage.resize(bytes);
  const Cutter cutter(s, r, lanes, storage.data());
  parallel_for(r.rows, std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, row_bytes)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) cutter.row(i);
               });
  return {storage.data(), lanes, kSlack};
}

}  // namespace openrknn::sim
