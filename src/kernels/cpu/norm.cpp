// Normalisations in float; statistics are summed in double and rounded once.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_norm.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

Status require_float(const KernelArgs& args, size_t i, int64_t count) {
  const TensorView& v = args.inputs[i];
  if (v.dtype == DType::kFloat32 && v.elements() == count) return {};
  return kernel_error(fmt::format("operand {} is {} {}, expected {} float32 values", i, dtype_name(v.dtype),
                                  v.shape.to_string(), count),
                      ErrorCode::kShape);
}

// The input is float32 of at least `rank` axes and the result is like it.
Status require_like_input(const KernelArgs& args, int rank) {
  const TensorView& x = args.inputs[0];
  if (x.dtype != DType::kFloat32 || x.shape.rank() < rank) {
    return kernel_error(fmt::format("input {} {}, expected float32 of rank {} or more", dtype_name(x.dtype),
                                    x.shape.to_string(), rank));
  }
  return require_output(args, 0, DType::kFloat32, x.shape);
}

struct Moments {
  double mean;
  double variance;  // of the population
};

Moments moments_of(const float* x, int64_t n) {
  const auto count = static_cast<double>(n);
  const double mean = gemm_kernels().sum(n, x) / count;
  const double squares = lane_sum(n, [x, mean](int64_t i) {
    const double d = static_cast<double>(x[i]) - mean;
    return d * d;
  });
  return {mean, squares / count};
}

void for_lines(int64_t lines, int64_t n, const std::function<void(int64_t)>& body) {
  parallel_for(lines, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// Mean and variance of a channel over the batch and all positions.
Moments channel_moments(const float* x, const Shape& shape, int64_t channel) {
  const int64_t n = shape.elements(2, shape.rank());
  std::vector<float> values(static_cast<size_t>(shape[0] * n));
  for (int64_t i = 0; i < shape[0]; ++i) std::copy_n(x + (i * shape[1] + channel) * n, n, values.data() + i * n);
  return moments_of(values.data(), shape[0] * n);
}

// In training mode the statistics are the operand's own; results 1 and 2 are the running ones, carried on.
Result<std::vector<Moments>> batch_moments(const KernelArgs& args, bool training) {
  const Shape& shape = args.inputs[0].shape;
  const float* x = args.inputs[0].as<float>().data();
  const double momentum = args.attributes.float_or("momentum", 0.9F);
  std::vector<Moments> moments(static_cast<size_t>(shape[1]));
  for (int64_t c = 0; c < shape[1]; ++c) {
    const auto i = static_cast<size_t>(c);
    const Moments running{args.inputs[3].as<float>()[i], args.inputs[4].as<float>()[i]};
    moments[i] = training ? channel_moments(x, shape, c) : running;
    for (const size_t result : {size_t{1}, size_t{2}}) {
      if (!args.has_output(result)) continue;
      OPENRKNN_CHECK_OK(require_output(args, result, DType::kFloat32, Shape{shape[1]}));
      const double before = result == 1 ? running.mean : running.variance;
      const double now = result == 1 ? moments[i].mean : moments[i].variance;
      args.outputs[result].as<float>()[i] = static_cast<float>(before * momentum + now * (1.0 - momentum));
    }
  }
  return moments;
}

Status batch_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 5));
  OPENRKNN_CHECK_OK(require_like_input(args, 2));
  const Shape& shape = args.inputs[0].shape;
  const int64_t channels = shape[1];
  for (size_t i = 1; i < 5; ++i) OPENRKNN_CHECK_OK(require_float(args, i, channels));
  const double epsilon = args.attributes.float_or("epsilon", 1e-5F);
  OPENRKNN_TRY(const auto moments, batch_moments(args, args.attributes.int_or("training_mode", 0) != 0));
  const int64_t n = shape.elements(2, shape.rank());
  const float* x = args.inputs[0].as<float>().data();
  float* y = args.outputs[0].as<float>().data();
  for_lines(shape[0] * channels, n, [&](int64_t line) {
    const auto c = static_cast<size_t>(line % channels);
    const Stages::Affine affine = batch_affine(args.inputs[1].as<float>()[c], args.inputs[2].as<float>()[c],
                                               moments[c].mean, moments[c].variance, epsilon);
    gemm_kernels().scale(n, x + line * n, affine.factor, affine.term, y + line * n);
  });
  return {};
}

// Instance and group normalisation: statistics over `group` channels and all positions, then a factor and a term per
// channel.
void normalize_groups(const KernelArgs& args, int64_t channels, int64_t group) {
  const Shape& shape = args.inputs[0].shape;
  const double epsilon = args.attributes.float_or("epsilon", 1e-5F);
  const int64_t n = shape.elements(2, shape.rank());
  const float* x = args.inputs[0].as<float>().data();
  float* y = args.outputs[0].as<float>().data();
  for_lines(shape[0] * channels / group, n * group, [&](int64_t g) {
    const Moments m = moments_of(x + g * group * n, group * n);
    const double inverse = 1.0 / std::sqrt(m.variance + epsilon);
    for (int64_t line = g * group; line < (g + 1) * group; ++line) {
      const auto c = static_cast<size_t>(line % channels);
      const double factor = args.inputs[1].as<float>()[c] * inverse;
      gemm_kernels().scale(n, x + line * n, factor, args.inputs[2].as<float>()[c] - m.mean * factor, y + line * n);
    }
  });
}

Status instance_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_like_input(args, 3));
  const int64_t channels = args.inputs[0].shape[1];
  for (size_t i = 1; i < 3; ++i) OPENRKNN_CHECK_OK(require_float(args, i, channels));
  if (args.outputs[0].elements() > 0) normalize_groups(args, channels, 1);
  return {};
}

Status group_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_like_input(args, 3));
  const int64_t channels = args.inputs[0].shape[1];
  const int64_t groups = args.attributes.int_or("num_groups", 0);
  if (groups < 1 || channels % groups != 0) {
    return kernel_error(fmt::format("{} groups of {} channels", groups, channels), ErrorCode::kShape);
  }
  for (size_t i = 1; i < 3; ++i) OPENRKNN_CHECK_OK(require_float(args, i, channels));
  if (args.outputs[0].elements() > 0) normalize_groups(args, channels, channels / groups);
  return {};
}

Status layer_normalization(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_like_input(args, 1));
  const Shape& shape = args.inputs[0].shape;
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), shape.rank()));
  const int64_t lines = shape.elements(0, axis);
  const int64_t n = shape.elements(axis, shape.rank());
  OPENRKNN_CHECK_OK(require_float(args, 1, n));
  if (args.has_input(2)) OPENRKNN_CHECK_OK(require_float(args, 2, n));
  for (size_t i = 1; i < 3; ++i) {
    if (!args.has_output(i)) continue;
    if (args.outputs[i].dtype != DType::kFloat32 || args.outputs[i].elements() != lines) {
      return kernel_error(fmt::format("result {} needs {} float32 values", i, lines), ErrorCode::kShape);
    }
  }
  const double epsilon = args.attributes.float_or("epsilon", 1e-5F);
  const float* x = args.inputs[0].as<float>().data();
  const float* scale = args.inputs[1].as<float>().data();
  const float* bias = args.has_input(2) ? args.inputs[2].as<float>().data() : nullptr;
  float* y = args.outputs[0].as<float>().data();
  if (n == 0) return {};
  for_lines(lines, n, [&](int64_t line) {
    const Moments m = moments_of(x + line * n, n);
    const double inverse = 1.0 / std::sqrt(m.variance + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      const double normal = (static_cast<double>(x[line * n + i]) - m.mean) * inverse;
      const double scaled = normal * scale[i];
      y[line * n + i] = static_cast<float>(bias != nullptr ? scaled + bias[i] : scaled);
    }
    if (args.has_output(1)) args.outputs[1].as<float>()[static_cast<size_t>(line)] = static_cast<float>(m.mean);
    if (args.has_output(2)) args.outputs[2].as<float>()[static_cast<size_t>(line)] = static_cast<float>(inverse);
  });
  return {};
}

// 1 / x^beta; the common exponents need only square roots.
double inverse_power(double x, double beta) {
  if (beta == 0.75) return 1.0 / (std::sqrt(x) * std::sqrt(std::sqrt(x)));
  if (beta == 0.5) return 1.0 / std::sqrt(x);
  if (beta == 1.0) return 1.0 / x;
  return math::pow(x, -beta);
}

Status lrn(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_like_input(args, 2));
  const int64_t size = args.attributes.int_or("size", 0);
  if (size < 1) return kernel_error(fmt::format("size {} of the window", size), ErrorCode::kInvalidArgument);
  const double alpha = static_cast<double>(args.attributes.float_or("alpha", 1e-4F)) / static_cast<double>(size);
  const double beta = args.attributes.float_or("beta", 0.75F);
  const double bias = args.attributes.float_or("bias", 1.0F);
  const Shape& shape = args.inputs[0].shape;
  const int64_t channels = shape[1];
  const int64_t n = shape.elements(2, shape.rank());
  const float* x = args.inputs[0].as<float>().data();
  float* y = args.outputs[0].as<float>().data();
  for_lines(shape[0] * channels, n, [&](int64_t line) {
    const int64_t c = line % channels;
    const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
    const int64_t last = std::min(channels - 1, c + size / 2);
    std::vector<double> sums(static_cast<size_t>(n), 0.0);
    for (int64_t other = first; other <= last; ++other) {
      const float* row = x + (line - c + other) * n;
      for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(i)] += static_cast<double>(row[i]) * row[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      const double factor = inverse_power(bias + alpha * sums[static_cast<size_t>(i)], beta);
      y[line * n + i] = static_cast<float>(static_cast<double>(x[line * n + i]) * factor);
    }
  });
  return {};
}

}  // namespace

void register_norm(Registry& registry) {
  registry.add("BatchNormalization", batch_normalization);
  registry.add("InstanceNormalization", instance_normalization);
  registry.add("GroupNormalization", group_normalization);
  registry.add("LayerNormalization", layer_normalization);
  registry.add("LRN", lrn);
}

}  // namespace openrknn::cpu
