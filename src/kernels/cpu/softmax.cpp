// Softmax, LogSoftmax and Hardmax along one axis. Exponentials and their sum are in double, rounded once at the end.
#include <vector>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_lines.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

float largest(const float* x, int64_t n) {
  float most = x[0];
  for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// exp(x - max) of a line, and its sum.
double exponentials(const float* x, int64_t n, double most, std::vector<double>& to) {
  to.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) to[static_cast<size_t>(i)] = math::exp(static_cast<double>(x[i]) - most);
  return lane_sum(n, [&to](int64_t i) { return to[static_cast<size_t>(i)]; });
}

void softmax_line(const float* x, float* y, int64_t n) {
  thread_local std::vector<double> e;
  const double sum = exponentials(x, n, largest(x, n), e);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(e[static_cast<size_t>(i)] / sum);
}

void log_softmax_line(const float* x, float* y, int64_t n) {
  thread_local std::vector<double> e;
  const double most = largest(x, n);
  const double log_sum = math::log(exponentials(x, n, most, e));
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) - most - log_sum);
}

void hardmax_line(const float* x, float* y, int64_t n) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; ++i) at = x[i] > x[at] ? i : at;
  for (int64_t i = 0; i < n; ++i) y[i] = i == at ? 1.0F : 0.0F;
}

template <void (*Line)(const float*, float*, int64_t)>
Status along_axis(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  const TensorView& x = args.inputs[0];
  if (x.dtype != DType::kFloat32) return kernel_error(fmt::format("type {}, expected float32", dtype_name(x.dtype)));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, x.shape));
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -1), x.shape.rank()));
  if (x.elements() == 0) return {};
  const Lines lines{x.shape.elements(0, axis), x.shape[axis], x.shape.elements(axis + 1, x.shape.rank())};
  map_lines(lines, lines.n, x.as<float>().data(), args.outputs[0].as<float>().data(),
            [&](const float* from, float* to) { Line(from, to, lines.n); });
  return {};
}

}  // namespace

void register_softmax(Registry& registry) {
  registry.add("Softmax", along_axis<softmax_line>);
  registry.add("LogSoftmax", along_axis<log_softmax_line>);
  registry.add("Hardmax", along_axis<hardmax_line>);
}

}  // namespace openrknn::cpu
