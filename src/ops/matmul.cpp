// Products of matrices.
#include "kernels/matmul_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_matmul(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_TRY(const MatMulPlan plan, matmul_plan(in.shape(0), in.shape(1)));
  return one(in.dtype(0), plan.output);
}

int64_t matmul_macs(const InferInput& in, std::span<const TensorType> outputs) {
  return outputs[0].shape->elements() * in.shape(0).dim(-1);
}

Types infer_gemm(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  OPENRKNN_TRY(const GemmPlan plan,
               gemm_plan(in.attributes, in.shape(0), in.shape(1), in.has(2) ? &in.shape(2) : nullptr));
  return one(in.dtype(0), Shape{plan.m, plan.n});
}

int64_t gemm_macs(const InferInput& in, std::span<const TensorType> outputs) {
  const int64_t k = in.shape(0)[in.attributes.int_or("transA", 0) != 0 ? 0 : 1];
  return outputs[0].shape->elements() * k;
}

}  // namespace

void register_matmul(Registry& registry) {
  registry.add({.name = "MatMul",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_matmul,
                .macs = matmul_macs,
                .doc = "Matrix product with numpy's rules for vectors and broadcasting"});
  registry.add({.name = "Gemm",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 3,
                .attributes = {{"alpha", AttrKind::kFloat, false, "factor of the product, default 1"},
                               {"beta", AttrKind::kFloat, false, "factor of the third operand, default 1"},
                               {"transA", AttrKind::kInt, false, "1: the first operand is transposed; default 0"},
                               {"transB", AttrKind::kInt, false, "1: the second operand is transposed; default 0"}},
                .infer = infer_gemm,
                .macs = gemm_macs,
                .doc = "alpha * A * B + beta * C for matrices"});
}

}  // namespace openrknn::ops
