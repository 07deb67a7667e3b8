// GridSample over any number of spatial axes, and AffineGrid. Positions and weights are in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/spatial_plan.hpp"

namespace openrknn::cpu {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Settings {
  Mode mode;
  Padding padding;
  bool align_corners;
};

Result<Settings> read_settings(const Attributes& attributes) {
  const std::string mode = attributes.string_or("mode", "linear");
  const std::string padding = attributes.string_or("padding_mode", "zeros");
  Settings s{Mode::kLinear, Padding::kZeros, attributes.int_or("align_corners", 0) != 0};
  if (mode == "nearest") {
    s.mode = Mode::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    s.mode = Mode::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return kernel_error(fmt::format("mode '{}' is not linear, nearest or cubic", mode));
  }
  if (padding == "border") {
    s.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    s.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return kernel_error(fmt::format("padding mode '{}' is not zeros, border or reflection", padding));
  }
  return s;
}

// Folds x into [low, high] like light between two mirrors.
double reflect(double x, double low, double high) {
  const double span = high - low;
  if (!(span > 0.0)) return low;
  const double folded = std::fmod(std::fabs(x - low), 2.0 * span);
  return low + (folded <= span ? folded : 2.0 * span - folded);
}

// The elements along one axis that a position is made of.
struct Taps {
  int count = 0;
  std::array<int64_t, 4> index{};  // -1: outside, worth 0
  std::array<double, 4> weight{};
};

class Sampler {
 public:
  Sampler(const Settings& settings, int64_t extent)
      : settings_(settings),
        extent_(extent),
        low_(settings.align_corners ? 0.0 : -0.5),
        high_(static_cast<double>(extent) - (settings.align_corners ? 1.0 : 0.5)) {}

  // `normal`: -1 and 1 are the ends of the axis.
  Taps taps(double normal) const {
    double x = position(normal);
    if (settings_.mode == Mode::kNearest) x = std::nearbyint(x);
    if (x < low_ || x > high_) {
      const auto last = static_cast<double>(extent_ - 1);
      // The four elements of a cubic each stop at the border, as in onnxruntime and PyTorch.
      if (settings_.padding == Padding::kBorder && settings_.mode != Mode::kCubic) x = std::clamp(x, 0.0, last);
      if (settings_.padding == Padding::kReflection) x = reflect(x, low_, high_);
      // Far away all taps are outside: the cast below needs a small number.
      x = std::clamp(x, -4.0, static_cast<double>(extent_) + 4.0);
    }
    const double floor = std::floor(x);
    const auto at = static_cast<int64_t>(floor);
    switch (settings_.mode) {
      case Mode::kNearest:
        return {1, {resolve(at)}, {1.0}};
      case Mode::kLinear:
        return {2, {resolve(at), resolve(at + 1)}, {1.0 - (x - floor), x - floor}};
      case Mode::kCubic:
        return cubic(at, x - floor);
    }
    return {};
  }

 private:
  double position(double normal) const {
    if (!(normal == normal)) return -4.0;  // not a number: outside
    const double limited = std::clamp(normal, -1e15, 1e15);
    const auto n = static_cast<double>(extent_);
    return settings_.align_corners ? (limited + 1.0) / 2.0 * (n - 1.0) : ((limited + 1.0) * n - 1.0) / 2.0;
  }

  int64_t resolve(int64_t at) const {
    if (at >= 0 && at < extent_) return at;
    if (settings_.padding == Padding::kBorder) return std::clamp<int64_t>(at, 0, extent_ - 1);
    if (settings_.padding == Padding::kZeros) return -1;
    return std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(at), low_, high_)), 0, extent_ - 1);
  }

  // The cubic convolution with a = -0.75.
  Taps cubic(int64_t at, double t) const {
    constexpr double kA = -0.75;
    const auto near = [](double d) { return ((kA + 2.0) * d - (kA + 3.0)) * d * d + 1.0; };
    const auto far = [](double d) { return ((kA * d - 5.0 * kA) * d + 8.0 * kA) * d - 4.0 * kA; };
    return {4,
            {resolve(at - 1), resolve(at), resolve(at + 1), resolve(at + 2)},
            {far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)}};
  }

  Settings settings_;
  int64_t extent_;
  double low_;
  double high_;
};

struct Term {
  int64_t offset;
  double weight;
};

// The products of the axes' taps; the last axis runs fastest.
void combine(const std::vector<Taps>& axes, const std::vector<int64_t>& strides, std::vector<Term>& terms) {
  terms.assign(1, {0, 1.0});
  std::vector<Term> next;
  for (size_t a = 0; a < axes.size(); ++a) {
    next.clear();
    for (const Term& term : terms) {
      for (int k = 0; k < axes[a].count; ++k) {
        const auto i = static_cast<size_t>(k);
        if (axes[a].index[i] < 0) continue;
        next.push_back({term.offset + axes[a].index[i] * strides[a], term.weight * axes[a].weight[i]});
      }
    }
    terms.swap(next);
  }
}

template <typename T>
void sample(const Settings& settings, const Shape& x_shape, const T* x, const T* grid, const Shape& out_shape, T* to) {
  const int spatial = x_shape.rank() - 2;
  const int64_t plane = x_shape.elements(2, x_shape.rank());
  const int64_t positions = out_shape.elements(2, out_shape.rank());
  const int64_t channels = x_shape[1];
  std::vector<Sampler> samplers;
  std::vector<int64_t> strides;
  for (int a = 0; a < spatial; ++a) {
    samplers.emplace_back(settings, x_shape[a + 2]);
    strides.push_back(x_shape.strides()[static_cast<size_t>(a) + 2]);
  }
  parallel_for(x_shape[0] * positions, 64, [&](int64_t begin, int64_t end) {
    std::vector<Taps> taps(samplers.size());
    std::vector<Term> terms;
    for (int64_t i = begin; i < end; ++i) {
      // The grid names the last axis first.
      for (size_t a = 0; a < taps.size(); ++a) {
        taps[a] = samplers[a].taps(static_cast<double>(grid[i * spatial + spatial - 1 - static_cast<int64_t>(a)]));
      }
      combine(taps, strides, terms);
      const T* from = x + i / positions * channels * plane;
      T* result = to + i / positions * channels * positions + i % positions;
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0.0;
        for (const Term& term : terms) sum += static_cast<double>(from[c * plane + term.offset]) * term.weight;
        result[c * positions] = static_cast<T>(sum);
      }
    }
  });
}

Status grid_sample(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  OPENRKNN_CHECK_OK(require_reals(args, {1}));
  const TensorView& x = args.inputs[0];
  const TensorView& grid = args.inputs[1];
  OPENRKNN_TRY(const Shape shape, grid_sample_shape(x.shape, grid.shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, shape));
  OPENRKNN_TRY(const Settings settings, read_settings(args.attributes));
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted values(x, dtype_of<T>());
    const Promoted positions(grid, dtype_of<T>());
    sample(settings, x.shape, values.data<T>(), positions.data<T>(), shape, to);
    return {};
  });
}

// Positions of an axis in [-1, 1]: its elements' centres, the outermost of them at the ends with align_corners.
std::vector<double> axis_positions(int64_t n, bool align_corners) {
  std::vector<double> at(static_cast<size_t>(n), 0.0);
  const auto extent = static_cast<double>(n);
  for (size_t i = 0; i < at.size(); ++i) {
    const auto k = static_cast<double>(i);
    if (!align_corners) at[i] = (2.0 * k + 1.0) / extent - 1.0;
    if (align_corners && n > 1) at[i] = 2.0 * k / (extent - 1.0) - 1.0;
  }
  return at;
}

Status affine_grid(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& theta = args.inputs[0];
  const auto size = to_ints(args.inputs[1]);
  OPENRKNN_TRY(const Shape shape, affine_grid_shape(theta.shape, size));
  OPENRKNN_CHECK_OK(require_output(args, 0, theta.dtype, shape));
  const bool align_corners = args.attributes.int_or("align_corners", 0) != 0;
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (shape.elements() == 0) return {};
  std::vector<std::vector<double>> at;
  for (size_t a = 2; a < size.size(); ++a) at.push_back(axis_positions(size[a], align_corners));
  const int64_t positions = shape.elements(1, shape.rank() - 1);
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted matrices(theta, dtype_of<T>());
    for (int64_t i = 0; i < size[0] * positions; ++i) {
      std::array<double, 3> point{};  // x first: the last axis
      int64_t rest = i % positions;
      for (int64_t a = 0; a < spatial; ++a) {
        const auto& axis = at[static_cast<size_t>(spatial - 1 - a)];
        point[static_cast<size_t>(a)] = axis[static_cast<size_t>(rest) % axis.size()];
        rest /= static_cast<int64_t>(axis.size());
      }
      const T* matrix = matrices.data<T>() + i / positions * spatial * (spatial + 1);
      for (int64_t r = 0; r < spatial; ++r) {
        const T* row = matrix + r * (spatial + 1);
        auto sum = static_cast<double>(row[spatial]);
        for (int64_t k = 0; k < spatial; ++k) sum += static_cast<double>(row[k]) * point[static_cast<size_t>(k)];
        to[i * spatial + r] = static_cast<T>(sum);
      }
    }
    return {};
  });
}

}  // namespace

void register_grid_sample(Registry& registry) {
  registry.add("GridSample", grid_sample);
  registry.add("AffineGrid", affine_grid);
}

}  // namespace openrknn::cpu
