// MatMul and Gemm in float over kernels/gemm.hpp.
#include <vector>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_transposed.hpp"
#include "kernels/gemm.hpp"
#include "kernels/matmul_plan.hpp"

namespace openrknn::cpu {
namespace {

Status require_floats(const KernelArgs& args, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!args.has_input(i) || args.inputs[i].dtype == DType::kFloat32) continue;
    return kernel_error(fmt::format("operand {} is {}, expected float32", i, dtype_name(args.inputs[i].dtype)));
  }
  return {};
}

Status matmul(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_floats(args, 2));
  OPENRKNN_TRY(const MatMulPlan plan, matmul_plan(args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, plan.output));
  const float* a = args.inputs[0].as<float>().data();
  const float* b = args.inputs[1].as<float>().data();
  float* c = args.outputs[0].as<float>().data();
  gemm(static_cast<int64_t>(plan.a_batch.size()), plan.m, plan.n, plan.k, [&](int64_t p) {
    GemmProblem problem;
    problem.a = a + plan.a_batch[static_cast<size_t>(p)] * plan.m * plan.k;
    problem.lda = plan.k;
    problem.b_rows = b + plan.b_batch[static_cast<size_t>(p)] * plan.k * plan.n;
    problem.ldb = plan.n;
    problem.c = c + p * plan.m * plan.n;
    problem.ldc = plan.n;
    return problem;
  });
  return {};
}

std::vector<float> transposed(const float* data, int64_t rows, int64_t columns) {
  std::vector<float> to(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[static_cast<size_t>(c * rows + r)] = data[r * columns + c];
  }
  return to;
}

// y = alpha * y + beta * c, c broadcast to [m][n].
void scale_and_add(const GemmPlan& plan, float alpha, float beta, const TensorView& c, float* y) {
  if (alpha != 1.0F) {
    for (int64_t i = 0; i < plan.m * plan.n; ++i) y[i] *= alpha;
  }
  if (!c.present() || beta == 0.0F) return;
  const float* values = c.as<float>().data();
  const int rank = c.shape.rank();
  const int64_t column_step = rank >= 1 && c.shape.dim(-1) != 1 ? 1 : 0;
  const int64_t row_step = rank == 2 && c.shape[0] != 1 ? c.shape[1] : 0;
  for (int64_t i = 0; i < plan.m; ++i) {
    for (int64_t j = 0; j < plan.n; ++j) {
      const float term = values[i * row_step + j * column_step];
      y[i * plan.n + j] += beta == 1.0F ? term : beta * term;
    }
  }
}

Status gemm_operator(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_floats(args, 3));
  const TensorView& a = args.inputs[0];
  const TensorView& b = args.inputs[1];
  const TensorView c = args.has_input(2) ? args.inputs[2] : TensorView{};
  OPENRKNN_TRY(const GemmPlan plan, gemm_plan(args.attributes, a.shape, b.shape, c.present() ? &c.shape : nullptr));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, Shape{plan.m, plan.n}));
  float* y = args.outputs[0].as<float>().data();
  const float* left = a.as<float>().data();
  std::vector<float> turned;
  if (plan.transpose_a) {
    turned = transposed(left, plan.k, plan.m);
    left = turned.data();
  }
  const float* right = b.as<float>().data();
  if (plan.transpose_b) {
    multiply_transposed(plan.m, plan.n, plan.k, left, right, y);
  } else {
    gemm(1, plan.m, plan.n, plan.k,
         [&](int64_t) { return GemmProblem{left, plan.k, nullptr, right, plan.n, y, plan.n, nullptr}; });
  }
  scale_and_add(plan, args.attributes.float_or("alpha", 1.0F), args.attributes.float_or("beta", 1.0F), c, y);
  return {};
}

}  // namespace

void register_matmul(Registry& registry) {
  registry.add("MatMul", matmul);
  registry.add("Gemm", gemm_operator);
}

}  // namespace openrknn::cpu
