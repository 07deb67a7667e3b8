// Softmax, LogSoftmax and Hardmax along one axis. Exponentials and their sum are in double, rounded once at the end.
#include <algorithm>
#include <vector>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_lines.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/math.hpp"
#include "kernels/math_kernels.hpp"
#include "kernels/transpose.hpp"

namespace openrknn::cpu {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Lines side by side: element k of line i at x[k * x_step + i].
struct Tile {
  int64_t n, lines;
  const float* x;
  int64_t x_step;
  float* y;
  int64_t y_step;
};

constexpr int64_t kTileLines = 64;
constexpr int64_t kTileValues = 8192;

// The largest of every line, NaN only where it is the first.
void find_largest(const Tile& t, double* most) {
  float values[kTileLines];
  std::copy_n(t.x, t.lines, values);
  for (int64_t k = 1; k < t.n; ++k) {
    const float* x = t.x + k * t.x_step;
    for (int64_t i = 0; i < t.lines; ++i) values[i] = x[i] > values[i] ? x[i] : values[i];
  }
  for (int64_t i = 0; i < t.lines; ++i) most[i] = values[i];
}

// exp(x - most), and its sum over each line in the order of lane_sum. `e`: [n][lines].
void exponentials(const Tile& t, const double* most, double* e, double* sums) {
  const math::MathKernels& kernels = math::math_kernels();
  double lanes[kSumLanes][kTileLines] = {};
  for (int64_t k = 0; k < t.n; ++k) {
    const float* x = t.x + k * t.x_step;
    double* to = e + k * t.lines;
    double* lane = lanes[k % kSumLanes];
    kernels.exp_lines(x, most, t.lines, to, lane);
  }
  for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) {
      for (int64_t i = 0; i < t.lines; ++i) lanes[l][i] += lanes[l + half][i];
    }
  }
  std::copy_n(lanes[0], t.lines, sums);
}

void softmax_tile(const Tile& t, double* e) {
  double most[kTileLines], sums[kTileLines];
  find_largest(t, most);
  exponentials(t, most, e, sums);
  const math::MathKernels& kernels = math::math_kernels();
  for (int64_t k = 0; k < t.n; ++k) kernels.divide_lines(e + k * t.lines, sums, t.lines, t.y + k * t.y_step);
}

void log_softmax_tile(const Tile& t, double* e) {
  double most[kTileLines], sums[kTileLines];
  find_largest(t, most);
  exponentials(t, most, e, sums);
  for (int64_t i = 0; i < t.lines; ++i) sums[i] = math::log(sums[i]);
  for (int64_t k = 0; k < t.n; ++k) {
    const float* x = t.x + k * t.x_step;
    float* y = t.y + k * t.y_step;
    for (int64_t i = 0; i < t.lines; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) - most[i] - sums[i]);
  }
}

// Tiles of neighbouring lines; lines that run on in memory are turned in front and behind.
template <void (*Run)(const Tile&, double*)>
void by_tiles(const Lines& shape, const float* x, float* y) {
  const int64_t n = shape.n, inner = shape.inner;
  const bool turned = inner == 1;
  const int64_t lines = std::clamp<int64_t>(kTileValues / n, 1, kTileLines);
  const int64_t outer = turned ? 1 : shape.outer, across = turned ? shape.outer : inner;
  const int64_t tiles = ceil_div(across, lines);
  parallel_for(outer * tiles, std::max<int64_t>(1, kTileValues / (lines * n)), [&](int64_t begin, int64_t end) {
    std::vector<double> e(static_cast<size_t>(n * lines));
    std::vector<float> values(turned ? static_cast<size_t>(n * lines) : 0);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tiles * lines, count = std::min(lines, across - first);
      if (turned) {
        const int64_t line_bytes = n * kFloatBytes, tile_bytes = count * kFloatBytes;
        transpose_matrix(x + first * n, line_bytes, count, n, values.data(), tile_bytes, sizeof(float));
        Run({n, count, values.data(), count, values.data(), count}, e.data());
        transpose_matrix(values.data(), tile_bytes, n, count, y + first * n, line_bytes, sizeof(float));
      } else {
        const int64_t at = task / tiles * n * inner + first;
        Run({n, count, x + at, inner, y + at, inner}, e.data());
      }
    }
  });
}

// Long lines that lie side by side, turned so that they run on in memory.
void softmax_of_columns(const Lines& shape, const float* x, float* y) {
  constexpr int64_t kColumns = 16;  // of a turn
  const math::MathKernels& kernels = math::math_kernels();
  const int64_t n = shape.n, inner = shape.inner, columns = std::min(kColumns, inner), turns = ceil_div(inner, columns);
  parallel_for(shape.outer * turns, std::max<int64_t>(1, kTileValues / (columns * n)), [&](int64_t begin, int64_t end) {
    std::vector<double> e(static_cast<size_t>(n));
    std::vector<float> lines(static_cast<size_t>(columns * n)), results(lines.size());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % turns * columns, count = std::min(columns, inner - first);
      const int64_t at = i / turns * n * inner + first;
      transpose_matrix(x + at, inner * kFloatBytes, n, count, lines.data(), n * kFloatBytes, sizeof(float));
      for (int64_t k = 0; k < count; ++k)
        kernels.softmax_line(lines.data() + k * n, n, e.data(), results.data() + k * n);
      transpose_matrix(results.data(), n * kFloatBytes, count, n, y + at, inner * kFloatBytes, sizeof(float));
    }
  });
}

// Long lines go one by one.
void softmax(const Lines& shape, const float* x, float* y) {
  constexpr int64_t kLongLine = kTileValues / kTileLines;
  static_assert(kSumLanes == 16, "the lanes of softmax_line");
  if (shape.n < kLongLine) return by_tiles<softmax_tile>(shape, x, y);
  if (shape.inner != 1) return softmax_of_columns(shape, x, y);
  const math::MathKernels& kernels = math::math_kernels();
  parallel_for(shape.outer, std::max<int64_t>(1, kTileValues / shape.n), [&](int64_t begin, int64_t end) {
    std::vector<double> e(static_cast<size_t>(shape.n));
    for (int64_t i = begin; i < end; ++i) kernels.softmax_line(x + i * shape.n, shape.n, e.data(), y + i * shape.n);
  });
}

void hardmax_line(const float* x, float* y, int64_t n) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; ++i) at = x[i] > x[at] ? i : at;
  for (int64_t i = 0; i < n; ++i) y[i] = i == at ? 1.0F : 0.0F;
}

void hardmax(const Lines& lines, const float* x, float* y) {
  map_lines(lines, lines.n, x, y, [&](const float* from, float* to) { hardmax_line(from, to, lines.n); });
}

template <void (*Run)(const Lines&, const float*, float*)>
Status along_axis(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  if (x.dtype != DType::kFloat32) return kernel_error(fmt::format("type {}, expected float32", dtype_name(x.dtype)));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, x.shape));
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), x.shape.rank()));
  if (x.elements() == 0) return {};
  const Lines lines{x.shape.elements(0, axis), x.shape[axis], x.shape.elements(axis + 1, x.shape.rank())};
  Run(lines, x.as<float>().data(), args.outputs[0].as<float>().data());
  return {};
}

}  // namespace

void register_softmax(Registry& registry) {
  registry.add("Softmax", along_axis<softmax>);
  registry.add("LogSoftmax", along_axis<by_tiles<log_softmax_tile>>);
  registry.add("Hardmax", along_axis<hardmax>);
}

}  // namespace openrknn::cpu
