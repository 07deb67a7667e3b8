#include "kernels/gemm_packed.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/gemm.hpp"

namespace openrknn {
namespace {

constexpr int64_t kMaxTile = 8 * 3 * 16;  // floats of the largest register tile
constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

PackedMatrix::PackedMatrix(const float* data, int64_t k, int64_t n, int64_t row_step, int64_t column_step)
    : kernels_(gemm_kernels_for(n)), k_(k), n_(n) {
  const int64_t width = kernels_.width;
  int64_t vectors = ceil_div(n, width);
  for (int64_t first = 0; vectors > 0;) {
    // 4 vectors are 2 and 2: narrow tiles wait for the latency of their sums.
    const int64_t take = vectors == 4 && kernels_.vectors == 3 ? 2 : std::min<int64_t>(vectors, kernels_.vectors);
    panels_.push_back({first, static_cast<int>(take)});
    first += take * width;
    vectors -= take;
  }
  floats_.assign(static_cast<size_t>(align_up(n, width) * k), 0.0F);
  constexpr int64_t kStep = 16;  // rows at a time: a line of the cache, when columns lie one behind another
  for (const Panel& panel : panels_) {
    const int64_t columns = panel.vectors * width;
    float* to = floats_.data() + panel.first * k;
    for (int64_t l = 0; l < k; l += kStep) {
      for (int64_t j = 0; j < std::min(columns, n - panel.first); ++j) {
        const float* from = data + (panel.first + j) * column_step;
        for (int64_t i = l; i < std::min(k, l + kStep); ++i) to[i * columns + j] = from[i * row_step];
      }
    }
  }
}

void PackedMatrix::multiply(const Product& product) const {
  if (product.m <= 0 || n_ <= 0) return;
  constexpr int64_t kLeastWork = 1000000;  // multiply-adds that pay for threads
  const auto panels = static_cast<int64_t>(panels_.size());
  const int64_t tiles = ceil_div(product.m, kernels_.rows);
  const int64_t wanted = thread_count() > 1 ? ceil_div(int64_t{4} * thread_count(), panels) : 1;
  const int64_t parts = std::min(tiles, wanted);
  const int64_t grain = product.m * n_ * k_ < kLeastWork ? panels * parts : 1;
  parallel_for(panels * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % parts;
      multiply_panel(product, panels_[static_cast<size_t>(task / parts)], product.m * part / parts,
                     product.m * (part + 1) / parts);
    }
  });
}

// Rows [begin, end) in tiles of nearly equal heights.
void PackedMatrix::multiply_panel(const Product& product, const Panel& panel, int64_t begin, int64_t end) const {
  constexpr float kZeros[8] = {};
  const int64_t width = int64_t{panel.vectors} * kernels_.width;
  const int64_t valid = std::min(width, n_ - panel.first);
  const float* b = floats_.data() + panel.first * k_;
  for (int64_t tiles = ceil_div(end - begin, kernels_.rows); tiles > 0; --tiles) {
    const auto rows = static_cast<int>(ceil_div(end - begin, tiles));
    const float* a = product.a + begin * product.lda;
    float* c = product.c + begin * product.ldc + panel.first;
    float beside[kMaxTile];
    const bool whole = valid == width;
    kernels_.tile(rows, panel.vectors, k_, a, product.lda, b, width, whole ? c : beside, whole ? product.ldc : width,
                  kZeros);
    for (int i = 0; i < rows && (!whole || product.row != nullptr); ++i) {
      float* to = c + i * product.ldc;
      const float* sums = whole ? to : beside + i * width;
      if (product.row != nullptr) {
        kernels_.clamp(valid, sums, product.row + panel.first, -kInf, kInf, to);
      } else {
        std::memcpy(to, sums, static_cast<size_t>(valid) * sizeof(float));
      }
    }
    begin += rows;
  }
}

}  // namespace openrknn
