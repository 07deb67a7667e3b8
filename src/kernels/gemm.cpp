#include "kernels/gemm.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/isa.hpp"

namespace openrknn {
namespace {

constexpr int64_t kDepth = 256;           // rows of B at a time: with a tile's width, a panel fits the first cache
constexpr int64_t kBlockFloats = 131072;  // packed floats of B at a time: half a megabyte, of the second cache
constexpr int64_t kMaxColumns = 4096;
constexpr int64_t kMinRows = 32;          // a block of fewer rows does not pay for packing B once more
constexpr int64_t kMaxTile = 8 * 3 * 16;  // floats of the largest register tile

struct Blocking {
  int64_t depth, columns, column_blocks, rows, row_blocks;
};

Blocking choose_blocking(const GemmKernels& kernels, int64_t problems, int64_t m, int64_t n, int64_t k) {
  Blocking b{};
  b.depth = std::min(k, kDepth);
  const int64_t panel = int64_t{kernels.vectors} * kernels.width;
  const int64_t most = std::max(panel, std::min(kMaxColumns, kBlockFloats / b.depth) / panel * panel);
  // Equal blocks, each a multiple of the panel but for the last.
  b.column_blocks = ceil_div(n, most);
  b.columns = std::min(n, align_up(ceil_div(n, b.column_blocks), panel));
  b.column_blocks = ceil_div(n, b.columns);
  const int64_t threads = thread_count();
  int64_t parts = 1;
  if (threads > 1 && problems * b.column_blocks < 2 * threads && m * n * k > 1000000) {
    parts = std::min(ceil_div(2 * threads, problems * b.column_blocks), std::max<int64_t>(1, m / kMinRows));
  }
  b.rows = align_up(ceil_div(m, parts), kernels.rows);
  b.row_blocks = ceil_div(m, b.rows);
  return b;
}

// Scratch of a thread; it keeps its size, which the blocking bounds.
float* scratch(size_t floats) {
  thread_local std::vector<float> buffer;
  if (buffer.size() < floats + 16) buffer.resize(floats + 16);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return buffer.data() + ((64 - address % 64) % 64) / sizeof(float);
}

// The columns of one panel of B inside a block. A remainder of one vector is widened from the panel before it, since
// narrow tiles wait for the latency of their sums.
struct Panel {
  int64_t first;  // column, from the block's first
  int vectors;
};

std::vector<Panel> cut_panels(const GemmKernels& kernels, int64_t columns) {
  std::vector<Panel> panels;
  int64_t vectors = ceil_div(columns, kernels.width);
  for (int64_t first = 0; vectors > 0;) {
    const int64_t take = vectors == 4 && kernels.vectors == 3 ? 2 : std::min<int64_t>(vectors, kernels.vectors);
    panels.push_back({first, static_cast<int>(take)});
    first += take * kernels.width;
    vectors -= take;
  }
  return panels;
}

class BlockRun {
 public:
  BlockRun(const GemmKernels& kernels, const GemmProblem& problem, int64_t first_row, int64_t rows,
           int64_t first_column, int64_t columns)
      : kernels_(kernels),
        problem_(problem),
        first_row_(first_row),
        rows_(rows),
        first_column_(first_column),
        columns_(columns),
        panels_(cut_panels(kernels, columns)) {}

  void run(int64_t k, int64_t depth) {
    // Rows of B in memory are read in place when few rows of A would share the packed copy.
    const bool in_place = problem_.b_rows != nullptr && rows_ <= kernels_.rows && columns_ >= kernels_.width;
    for (int64_t first = 0; first < k; first += depth) {
      const int64_t count = std::min(depth, k - first);
      if (!in_place) pack(first, count);
      for (const Panel& panel : panels_) {
        const bool whole = panel.first + int64_t{panel.vectors} * kernels_.width <= columns_;
        if (in_place && whole) {
          const float* b = problem_.b_rows + first * problem_.ldb + first_column_ + panel.first;
          multiply(panel, first, count, b, problem_.ldb);
          continue;
        }
        if (in_place) pack_panel(panel, first, count);
        multiply(panel, first, count, packed_ + panel.first * count, int64_t{panel.vectors} * kernels_.width);
      }
    }
  }

 private:
  void reserve(int64_t count) {
    const int64_t padded = align_up(columns_, kernels_.width);
    packed_ = scratch(static_cast<size_t>(padded * count + padded));
    line_ = packed_ + padded * count;
    std::fill(line_ + columns_, line_ + padded, 0.0F);
  }

  void fetch(int64_t k, int64_t first, int64_t count, float* to) const {
    if (problem_.b != nullptr) return problem_.b->row(k, first, count, to);
    std::memcpy(to, problem_.b_rows + k * problem_.ldb + first, static_cast<size_t>(count) * sizeof(float));
  }

  // Panels one after another, each with its rows one after another.
  void pack(int64_t first, int64_t count) {
    reserve(count);
    for (int64_t l = 0; l < count; ++l) {
      fetch(first + l, first_column_, columns_, line_);
      for (const Panel& panel : panels_) {
        const int64_t width = int64_t{panel.vectors} * kernels_.width;
        std::memcpy(packed_ + panel.first * count + l * width, line_ + panel.first,
                    static_cast<size_t>(width) * sizeof(float));
      }
    }
  }

  void pack_panel(const Panel& panel, int64_t first, int64_t count) {
    reserve(count);
    const int64_t width = int64_t{panel.vectors} * kernels_.width;
    const int64_t valid = std::min(width, columns_ - panel.first);
    for (int64_t l = 0; l < count; ++l) {
      float* to = packed_ + panel.first * count + l * width;
      fetch(first + l, first_column_ + panel.first, valid, to);
      std::fill(to + valid, to + width, 0.0F);
    }
  }

  void multiply(const Panel& panel, int64_t k, int64_t count, const float* b, int64_t ldb) const {
    constexpr float kZeros[8] = {};
    const int64_t width = int64_t{panel.vectors} * kernels_.width;
    const int64_t valid = std::min(width, columns_ - panel.first);
    for (int64_t i = 0; i < rows_; i += kernels_.rows) {
      const int rows = static_cast<int>(std::min<int64_t>(kernels_.rows, rows_ - i));
      const int64_t row = first_row_ + i;
      const float* a = problem_.a + row * problem_.lda + k;
      const float* bias = k != 0 ? nullptr : problem_.bias != nullptr ? problem_.bias + row : kZeros;
      float* c = problem_.c + row * problem_.ldc + first_column_ + panel.first;
      if (valid == width) {
        kernels_.tile(rows, panel.vectors, count, a, problem_.lda, b, ldb, c, problem_.ldc, bias);
      } else {
        border(rows, panel.vectors, count, a, b, ldb, c, valid, bias);
      }
    }
  }

  // A tile that sticks out of C is computed beside it.
  void border(int rows, int vectors, int64_t count, const float* a, const float* b, int64_t ldb, float* c,
              int64_t valid, const float* bias) const {
    float beside[kMaxTile] = {};
    const int64_t width = int64_t{vectors} * kernels_.width;
    const size_t bytes = static_cast<size_t>(valid) * sizeof(float);
    if (bias == nullptr) {
      for (int i = 0; i < rows; ++i) std::memcpy(beside + i * width, c + i * problem_.ldc, bytes);
    }
    kernels_.tile(rows, vectors, count, a, problem_.lda, b, ldb, beside, width, bias);
    for (int i = 0; i < rows; ++i) std::memcpy(c + i * problem_.ldc, beside + i * width, bytes);
  }

  const GemmKernels& kernels_;
  const GemmProblem& problem_;
  int64_t first_row_, rows_, first_column_, columns_;
  std::vector<Panel> panels_;
  float* packed_ = nullptr;
  float* line_ = nullptr;
};

// An empty sum: C is the bias.
void fill_with_bias(const GemmProblem& problem, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t i = row; i < row + rows; ++i) {
    std::fill_n(problem.c + i * problem.ldc + column, columns, problem.bias != nullptr ? problem.bias[i] : 0.0F);
  }
}

}  // namespace

const GemmKernels& gemm_kernels() {
#if defined(__x86_64__)
  if (without_dot(isa()) == Isa::kAvx512) return gemm_kernels_avx512();
  if (without_dot(isa()) == Isa::kAvx2) return gemm_kernels_avx2();
#endif
  return gemm_kernels_scalar();
}

const GemmKernels& gemm_kernels_for([[maybe_unused]] int64_t n) {
  const GemmKernels& widest = gemm_kernels();
#if defined(__x86_64__)
  // Twice as many vectors of half the width cost about the same, so an eighth fewer lanes pay.
  const GemmKernels& half = gemm_kernels_avx2();
  const bool fits_half = align_up(n, half.width) * 8 <= align_up(n, widest.width) * 7;
  if (without_dot(isa()) == Isa::kAvx512 && fits_half) return half;
#endif
  return widest;
}

void gemm(int64_t problems, int64_t m, int64_t n, int64_t k, const std::function<GemmProblem(int64_t)>& problem,
          const GemmEpilogue& epilogue) {
  if (problems <= 0 || m <= 0 || n <= 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const Blocking blocking = choose_blocking(kernels, problems, m, n, std::max<int64_t>(k, 1));
  const int64_t blocks = blocking.column_blocks * blocking.row_blocks;
  parallel_for(problems * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t p = task / blocks;
      const int64_t row = task % blocks / blocking.column_blocks * blocking.rows;
      const int64_t column = task % blocking.column_blocks * blocking.columns;
      const int64_t rows = std::min(blocking.rows, m - row);
      const int64_t columns = std::min(blocking.columns, n - column);
      const GemmProblem described = problem(p);
      if (k <= 0) {
        fill_with_bias(described, row, rows, column, columns);
      } else {
        BlockRun(kernels, described, row, rows, column, columns).run(k, blocking.depth);
      }
      if (!epilogue) continue;
      for (int64_t i = row; i < row + rows; ++i) {
        epilogue(p, i, column, columns, described.c + i * described.ldc + column);
      }
    }
  });
}

}  // namespace openrknn
