// Pools in float: one output row at a time, so that the innermost loop runs over neighbouring outputs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/math.hpp"
#include "kernels/window.hpp"

namespace openrknn::cpu {
namespace {

using Axes = std::vector<WindowAxis>;

struct PoolPlan {
  Axes axes;  // three
  int64_t planes = 0;
};

Result<PoolPlan> read_plan(const KernelArgs& args, DType dtype = DType::kFloat32) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  if (x.dtype != dtype) return kernel_error(fmt::format("pools of {} are not supported", dtype_name(x.dtype)));
  if (x.shape.rank() < 3) return kernel_error(fmt::format("input {} has no spatial axis", x.shape.to_string()));
  const std::vector<int64_t> kernel = args.attributes.ints_or("kernel_shape", {});
  OPENRKNN_TRY(auto axes, window_axes(args.attributes, x.shape.dims().subspan(2), kernel));
  Shape out = x.shape;
  for (size_t i = 0; i < axes.size(); ++i) out.set(static_cast<int>(i) + 2, axes[i].out);
  OPENRKNN_CHECK_OK(require_output(args, 0, dtype, out));
  return PoolPlan{three_axes(std::move(axes)), x.shape[0] * x.shape[1]};
}

struct KeptPool final : Kept {
  PoolPlan plan;
};

// run(const PoolPlan&) with the plan of pools of T.
template <typename T, typename Run>
Status with_plan(const KernelArgs& args, const Run& run) {
  const auto prepare = [](const KernelArgs& a) -> Result<std::unique_ptr<KeptPool>> {
    auto made = std::make_unique<KeptPool>();
    OPENRKNN_TRY(made->plan, read_plan(a, dtype_of<T>()));
    return made;
  };
  return with_kept<KeptPool>(args, prepare, [&](const KeptPool& kept) { return run(kept.plan); });
}

// Calls body(input row, first output, outputs, input position of the first) for every part of the window that lies
// inside the data, in the order of the window's positions, for output row (z, y).
template <typename T, typename Body>
void visit_window(const Axes& axes, const T* plane, int64_t z, int64_t y, const Body& body) {
  const WindowAxis& inner = axes[2];
  for (int64_t i = 0; i < axes[0].kernel; ++i) {
    const int64_t iz = z * axes[0].stride - axes[0].pad_begin + i * axes[0].dilation;
    if (iz < 0 || iz >= axes[0].in) continue;
    for (int64_t j = 0; j < axes[1].kernel; ++j) {
      const int64_t iy = y * axes[1].stride - axes[1].pad_begin + j * axes[1].dilation;
      if (iy < 0 || iy >= axes[1].in) continue;
      const T* row = plane + (iz * axes[1].in + iy) * inner.in;
      for (int64_t k = 0; k < inner.kernel; ++k) {
        const int64_t start = k * inner.dilation - inner.pad_begin;
        const int64_t first = start < 0 ? ceil_div(-start, inner.stride) : 0;
        const int64_t last = start < inner.in ? std::min(inner.out, ceil_div(inner.in - start, inner.stride)) : 0;
        if (first < last) body(row, first, last - first, start + first * inner.stride);
      }
    }
  }
}

template <typename Row>
void for_rows(const PoolPlan& plan, const Row& row) {
  const int64_t rows = plan.axes[0].out * plan.axes[1].out;
  parallel_for(plan.planes, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, rows * plan.axes[2].out)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) {
                   for (int64_t r = 0; r < rows; ++r) row(p, r / plan.axes[1].out, r % plan.axes[1].out);
                 }
               });
}

template <typename T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();

template <typename T>
void max_pool_values(const PoolPlan& plan, const T* x, T* y) {
  const Axes& axes = plan.axes;
  const int64_t in_plane = axes[0].in * axes[1].in * axes[2].in;
  for_rows(plan, [&](int64_t p, int64_t z, int64_t r) {
    T* out = y + ((p * axes[0].out + z) * axes[1].out + r) * axes[2].out;
    std::fill_n(out, axes[2].out, kLowest<T>);
    const int64_t stride = axes[2].stride;
    visit_window(axes, x + p * in_plane, z, r, [&](const T* row, int64_t first, int64_t count, int64_t start) {
      T* to = out + first;
      const T* from = row + start;
      if (stride == 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
      } else {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride] > to[i] ? from[i * stride] : to[i];
      }
    });
  });
}

// Rows of a plane for GemmKernels::max_row, one output row's window at a time: where they lie, or copied with lowest
// values for the padding. Windows of neighbouring rows share copies.
class PoolLines {
 public:
  PoolLines(const Axes& axes, const float* end)
      : h_(axes[1]),
        w_(axes[2]),
        end_(end),
        floats_(align_up(w_.out, kSlack) * w_.stride + w_.kernel - 1),
        inside_(w_.pad_begin == 0 && (w_.out - 1) * w_.stride + w_.kernel <= w_.in),
        copies_(static_cast<size_t>(floats_ * h_.kernel), kLowest<float>),
        owners_(static_cast<size_t>(h_.kernel), -1),
        lines_(static_cast<size_t>(h_.kernel)) {}

  static bool fits(const Axes& axes) {
    const WindowAxis& w = axes[2];
    return axes[0].in == 1 && axes[0].out == 1 && axes[0].kernel == 1 && w.dilation == 1 && w.stride <= 2 &&
           axes[1].kernel <= 64 && w.kernel <= 64 && w.pad_begin < w.kernel;
  }

  void start_plane(const float* plane) {
    plane_ = plane;
    std::fill(owners_.begin(), owners_.end(), -1);
  }

  // Those of the window of output row y that lie inside.
  std::span<const float* const> window(int64_t y) {
    size_t count = 0;
    for (int64_t j = 0; j < h_.kernel; ++j) {
      const int64_t row = y * h_.stride - h_.pad_begin + j * h_.dilation;
      if (row >= 0 && row < h_.in) lines_[count++] = line(row, j);
    }
    return {lines_.data(), count};
  }

 private:
  static constexpr int64_t kSlack = 16;  // floats of the longest vector

  const float* line(int64_t row, int64_t j) {
    const float* from = plane_ + row * w_.in;
    if (inside_ && end_ - from >= floats_) return from;
    const auto slot = static_cast<size_t>(h_.dilation == 1 ? row % h_.kernel : j);
    float* copy = copies_.data() + static_cast<int64_t>(slot) * floats_;
    if (owners_[slot] != row || h_.dilation != 1)
      std::copy_n(from, std::min(w_.in, floats_ - w_.pad_begin), copy + w_.pad_begin);
    owners_[slot] = row;
    return copy;
  }

  const WindowAxis h_, w_;
  const float* end_;  // of the tensor
  const int64_t floats_;
  const bool inside_;  // no window reaches into the padding
  const float* plane_ = nullptr;
  std::vector<float> copies_;
  std::vector<int64_t> owners_;  // by copy: whose row it is
  std::vector<const float*> lines_;
};

void max_pool_in_vectors(const PoolPlan& plan, const float* x, float* y) {
  const Axes& axes = plan.axes;
  const WindowAxis& w = axes[2];
  const int64_t in_plane = axes[1].in * w.in;
  const GemmKernels& kernels = gemm_kernels();
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, axes[1].out * w.out));
  parallel_for(plan.planes, grain, [&](int64_t begin, int64_t end) {
    PoolLines lines(axes, x + plan.planes * in_plane);
    for (int64_t p = begin; p < end; ++p) {
      lines.start_plane(x + p * in_plane);
      for (int64_t r = 0; r < axes[1].out; ++r) {
        const auto window = lines.window(r);
        kernels.max_row(w.out, w.stride, static_cast<int64_t>(window.size()), w.kernel, window.data(),
                        y + (p * axes[1].out + r) * w.out);
      }
    }
  });
}

// Position in the tensor of the largest element of each window, the first of equals; -1 for a window in the padding.
// `column_major`: the spatial axes count as if the first of them ran fastest.
template <typename T>
void max_pool_indices(const PoolPlan& plan, const T* x, bool column_major, int64_t* indices) {
  const Axes& axes = plan.axes;
  const int64_t in_plane = axes[0].in * axes[1].in * axes[2].in;
  for_rows(plan, [&](int64_t p, int64_t z, int64_t r) {
    const T* plane = x + p * in_plane;
    int64_t* out = indices + ((p * axes[0].out + z) * axes[1].out + r) * axes[2].out;
    std::fill_n(out, axes[2].out, -1);
    visit_window(axes, plane, z, r, [&](const T* row, int64_t first, int64_t count, int64_t start) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = row - plane + start + i * axes[2].stride;
        int64_t& best = out[first + i];
        if (best < 0 || plane[at] > plane[best]) best = at;
      }
    });
    for (int64_t i = 0; i < axes[2].out; ++i) {
      if (out[i] < 0) continue;
      const int64_t w = out[i] % axes[2].in;
      const int64_t h = out[i] / axes[2].in % axes[1].in;
      const int64_t d = out[i] / axes[2].in / axes[1].in;
      out[i] = p * in_plane + (column_major ? d + axes[0].in * (h + axes[1].in * w) : out[i]);
    }
  });
}

template <typename T>
Status max_pool_of(const KernelArgs& args, const PoolPlan& plan) {
  const T* x = args.inputs[0].as<T>().data();
  T* y = args.outputs[0].as<T>().data();
  bool done = false;
  if constexpr (std::is_same_v<T, float>) {
    done = PoolLines::fits(plan.axes);
    if (done) max_pool_in_vectors(plan, x, y);
  }
  if (!done) max_pool_values(plan, x, y);
  if (!args.has_output(1)) return {};
  OPENRKNN_CHECK_OK(require_output(args, 1, DType::kInt64, args.outputs[0].shape));
  max_pool_indices(plan, x, args.attributes.int_or("storage_order", 0) != 0, args.outputs[1].as<int64_t>().data());
  return {};
}

template <typename T>
Status max_pool_of(const KernelArgs& args) {
  return with_plan<T>(args, [&](const PoolPlan& plan) { return max_pool_of<T>(args, plan); });
}

Status max_pool(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  if (args.inputs[0].dtype == DType::kInt8) return max_pool_of<int8_t>(args);
  if (args.inputs[0].dtype == DType::kUInt8) return max_pool_of<uint8_t>(args);
  return max_pool_of<float>(args);
}

// How many window positions of output `o` count: those inside the data, or inside the padded data.
int64_t counted(const WindowAxis& axis, int64_t o, bool include_padding) {
  const int64_t start = o * axis.stride - axis.pad_begin;
  const int64_t low = include_padding ? -axis.pad_begin : 0;
  const int64_t high = include_padding ? axis.in + axis.pad_end : axis.in;
  int64_t n = 0;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t at = start + k * axis.dilation;
    n += at >= low && at < high ? 1 : 0;
  }
  return n;
}

Status average_pool(const KernelArgs& args, const PoolPlan& plan) {
  const Axes& axes = plan.axes;
  const bool include_padding = args.attributes.int_or("count_include_pad", 0) != 0;
  std::vector<double> counts(static_cast<size_t>(axes[2].out));
  for (int64_t i = 0; i < axes[2].out; ++i) {
    counts[static_cast<size_t>(i)] = static_cast<double>(counted(axes[2], i, include_padding));
  }
  const float* x = args.inputs[0].as<float>().data();
  float* y = args.outputs[0].as<float>().data();
  const int64_t in_plane = axes[0].in * axes[1].in * axes[2].in;
  for_rows(plan, [&](int64_t p, int64_t z, int64_t r) {
    thread_local std::vector<double> sums;
    sums.assign(static_cast<size_t>(axes[2].out), 0.0);
    visit_window(axes, x + p * in_plane, z, r, [&](const float* row, int64_t first, int64_t count, int64_t start) {
      double* to = sums.data() + first;
      for (int64_t i = 0; i < count; ++i) to[i] += static_cast<double>(row[start + i * axes[2].stride]);
    });
    const auto rows = static_cast<double>(counted(axes[0], z, include_padding) * counted(axes[1], r, include_padding));
    float* out = y + ((p * axes[0].out + z) * axes[1].out + r) * axes[2].out;
    for (size_t i = 0; i < sums.size(); ++i) {
      // A window that lies wholly in the padding has no mean: 0.
      const double n = rows * counts[i];
      out[i] = n > 0.0 ? static_cast<float>(sums[i] / n) : 0.0F;
    }
  });
  return {};
}

Status average_pool(const KernelArgs& args) {
  return with_plan<float>(args, [&](const PoolPlan& plan) { return average_pool(args, plan); });
}

// Root p of the sum of p-th powers; 1 and 2 need no power function.
double power(double magnitude, int64_t p) {
  if (p == 1) return magnitude;
  return p == 2 ? magnitude * magnitude : math::pow(magnitude, static_cast<double>(p));
}
double root(double sum, int64_t p) {
  if (p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : math::pow(sum, 1.0 / static_cast<double>(p));
}

Result<int64_t> read_order(const KernelArgs& args) {
  const int64_t p = args.attributes.int_or("p", 2);
  if (p < 1) return kernel_error(fmt::format("p is {}, 1 or more expected", p), ErrorCode::kInvalidArgument);
  return p;
}

Status lp_pool(const KernelArgs& args) {
  OPENRKNN_TRY(const PoolPlan plan, read_plan(args));
  OPENRKNN_TRY(const int64_t p, read_order(args));
  const Axes& axes = plan.axes;
  const float* x = args.inputs[0].as<float>().data();
  float* y = args.outputs[0].as<float>().data();
  const int64_t in_plane = axes[0].in * axes[1].in * axes[2].in;
  for_rows(plan, [&](int64_t plane, int64_t z, int64_t r) {
    thread_local std::vector<double> sums;
    sums.assign(static_cast<size_t>(axes[2].out), 0.0);
    visit_window(axes, x + plane * in_plane, z, r, [&](const float* row, int64_t first, int64_t count, int64_t start) {
      double* to = sums.data() + first;
      for (int64_t i = 0; i < count; ++i) {
        to[i] += power(std::fabs(static_cast<double>(row[start + i * axes[2].stride])), p);
      }
    });
    float* out = y + ((plane * axes[0].out + z) * axes[1].out + r) * axes[2].out;
    for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(root(sums[i], p));
  });
  return {};
}

template <typename Body>
Status global_pool(const KernelArgs& args, const Body& body) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  if (x.dtype != DType::kFloat32 || x.shape.rank() < 3) {
    return kernel_error(
        fmt::format("a global pool of {} {} is not supported", dtype_name(x.dtype), x.shape.to_string()));
  }
  Shape out = x.shape;
  for (int i = 2; i < out.rank(); ++i) out.set(i, 1);
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, out));
  const int64_t n = x.shape.elements(2, x.shape.rank());
  if (n == 0) return kernel_error("a global pool over nothing", ErrorCode::kShape);
  const float* from = x.as<float>().data();
  float* to = args.outputs[0].as<float>().data();
  parallel_for(x.shape[0] * x.shape[1], std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) to[p] = body(from + p * n, n);
  });
  return {};
}

Status global_average_pool(const KernelArgs& args) {
  return global_pool(args, [](const float* x, int64_t n) {
    return static_cast<float>(gemm_kernels().sum(n, x) / static_cast<double>(n));
  });
}

Status global_max_pool(const KernelArgs& args) {
  return global_pool(args, [](const float* x, int64_t n) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
  });
}

Status global_lp_pool(const KernelArgs& args) {
  OPENRKNN_TRY(const int64_t p, read_order(args));
  return global_pool(args, [p](const float* x, int64_t n) {
    const double sum = lane_sum(n, [x, p](int64_t i) { return power(std::fabs(static_cast<double>(x[i])), p); });
    return static_cast<float>(root(sum, p));
  });
}

}  // namespace

void register_pool(Registry& registry) {
  registry.add("MaxPool", max_pool);
  registry.add("AveragePool", average_pool);
  registry.add("GlobalAveragePool", global_average_pool);
  registry.add("GlobalMaxPool", global_max_pool);
  registry.add("LpPool", lp_pool);
  registry.add("GlobalLpPool", global_lp_pool);
}

}  // namespace openrknn::cpu
