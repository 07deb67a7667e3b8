#include "sim/parts.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/parallel.hpp"

namespace openrknn::sim {

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
