#include "sim/parts.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/parallel.hpp"

namespace openrknn::sim {
namespace {

bool one_pixel(const model::Cube& k) { return k.n == 1 && k.h == 1 && k.w == 1; }

bool rows_follow(const View& v) { return v.cube.h == 1 || v.row == v.cube.w * v.pixel; }
bool images_follow(const View& v) { return v.cube.n == 1 || v.image == v.cube.h * v.cube.w * v.pixel; }

}  // namespace

void join_pixels(std::span<View> views, bool by_value) {
  const View y = views[0];
  const auto full = [&](const View& v) { return v.cube.n == y.cube.n && v.cube.h == y.cube.h && v.cube.w == y.cube.w; };
  const bool joins = std::all_of(views.begin(), views.end(), [&](const View& v) {
    return full(v) ? rows_follow(v) && images_follow(v) : one_pixel(v.cube);
  });
  constexpr int64_t kMostWork = 4;  // lanes a channel that cost less than pixels apart
  const bool lanes = by_value && y.direct() && y.lanes <= kMostWork * y.cube.c &&
                     std::all_of(views.begin(), views.end(), [&](const View& v) {
                       const bool same = v.cube.c == y.cube.c && v.lanes == y.lanes;  // not one channel for all
                       return full(v) ? same && v.single() && v.pixel == v.lanes * v.size : v.cube.c == 1;
                     });
  if (!joins) return;
  for (View& v : views) {
    if (!full(v)) continue;
    v.cube = {1, lanes ? v.lanes : v.cube.c, 1, y.cube.n * y.cube.h * y.cube.w};
    v.row = v.image = v.cube.w * v.pixel;
  }
}

void for_parts(const model::Cube& k, int64_t values, const std::function<void(const Part&)>& body) {
  const int64_t step = std::clamp<int64_t>(values / k.c, 1, k.w);
  const int64_t steps = ceil_div(k.w, step);
  const int64_t grain = std::max<int64_t>(1, values / (step * k.c));
  parallel_for(k.n * k.h * steps, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / steps, w = i % steps * step;
      body({row / k.h, row % k.h, w, std::min(step, k.w - w), 0, k.c});
    }
  });
}

}  // namespace openrknn::sim
