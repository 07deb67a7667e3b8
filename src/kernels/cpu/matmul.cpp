// MatMul and Gemm in float over kernels/gemm.hpp; integers by plain sums that wrap as the type does.
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_transposed.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_packed.hpp"
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

// Integers modulo 2^64: the low bits are those of any narrower type.
std::vector<uint64_t> wrapping(const TensorView& view) {
  std::vector<uint64_t> made;
  made.reserve(static_cast<size_t>(view.elements()));
  if (view.dtype == DType::kUInt64) {
    made.assign(view.as<uint64_t>().begin(), view.as<uint64_t>().end());
  } else {
    for (const int64_t v : to_ints(view)) made.push_back(static_cast<uint64_t>(v));
  }
  return made;
}

// c [m][n] = a [m][k] * b [k][n], modulo 2^64.
void multiply_wrapping(int64_t m, int64_t n, int64_t k, const uint64_t* a, const uint64_t* b, uint64_t* c) {
  parallel_for(m, std::max<int64_t>(1, 65536 / std::max<int64_t>(n * k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t l = 0; l < k; ++l) {
        const uint64_t factor = a[i * k + l];
        for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[l * n + j];
      }
    }
  });
}

bool holds_integers(const KernelArgs& args) { return is_integer(args.inputs[0].dtype); }

// All present operands have the type of the first, which is an integer of 32 or 64 bits.
Status require_integers(const KernelArgs& args, size_t count) {
  const DType dtype = args.inputs[0].dtype;
  if (dtype_size(dtype) < 4) return kernel_error(fmt::format("products of {} are not supported", dtype_name(dtype)));
  for (size_t i = 1; i < count; ++i) {
    if (!args.has_input(i) || args.inputs[i].dtype == dtype) continue;
    return kernel_error(
        fmt::format("operand {} is {}, expected {}", i, dtype_name(args.inputs[i].dtype), dtype_name(dtype)));
  }
  return {};
}

void store_wrapped(const std::vector<uint64_t>& values, const MutableTensorView& out) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype_size(out.dtype) == 8) {
      out.as<uint64_t>()[i] = values[i];
    } else {
      out.as<uint32_t>()[i] = static_cast<uint32_t>(values[i]);
    }
  }
}

Status matmul_integers(const KernelArgs& args, const MatMulPlan& plan) {
  OPENRKNN_CHECK_OK(require_integers(args, 2));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, plan.output));
  const auto a = wrapping(args.inputs[0]);
  const auto b = wrapping(args.inputs[1]);
  std::vector<uint64_t> c(static_cast<size_t>(plan.output.elements()));
  for (size_t p = 0; p < plan.a_batch.size(); ++p) {
    multiply_wrapping(plan.m, plan.n, plan.k, a.data() + plan.a_batch[p] * plan.m * plan.k,
                      b.data() + plan.b_batch[p] * plan.k * plan.n,
                      c.data() + static_cast<int64_t>(p) * plan.m * plan.n);
  }
  store_wrapped(c, args.outputs[0]);
  return {};
}

struct KeptMatMul final : Kept {
  MatMulPlan plan;
  std::optional<PackedMatrix> right;  // one constant matrix for all products
};

Result<std::unique_ptr<KeptMatMul>> prepare_matmul(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  auto made = std::make_unique<KeptMatMul>();
  OPENRKNN_TRY(made->plan, matmul_plan(args.inputs[0].shape, args.inputs[1].shape));
  if (holds_integers(args)) return made;
  OPENRKNN_CHECK_OK(require_floats(args, 2));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, made->plan.output));
  const MatMulPlan& plan = made->plan;
  if (args.constant(1) && !plan.b_batch.empty() && args.inputs[1].elements() == plan.k * plan.n)
    made->right.emplace(args.inputs[1].as<float>().data(), plan.k, plan.n, plan.n, 1);
  return made;
}

Status multiply(const KernelArgs& args, const KeptMatMul& kept) {
  const MatMulPlan& plan = kept.plan;
  if (holds_integers(args)) return matmul_integers(args, plan);
  const float* a = args.inputs[0].as<float>().data();
  const float* b = args.inputs[1].as<float>().data();
  float* c = args.outputs[0].as<float>().data();
  const auto products = static_cast<int64_t>(plan.a_batch.size());
  if (kept.right) {  // the matrices of a are one matrix of more rows
    kept.right->multiply({products * plan.m, a, plan.k, c, plan.n});
    return {};
  }
  gemm(products, plan.m, plan.n, plan.k, [&](int64_t p) {
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

Status matmul(const KernelArgs& args) {
  return with_kept<KeptMatMul>(args, prepare_matmul, [&](const KeptMatMul& kept) { return multiply(args, kept); });
}

template <typename T>
std::vector<T> transposed(const T* data, int64_t rows, int64_t columns) {
  std::vector<T> to(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[static_cast<size_t>(c * rows + r)] = data[r * columns + c];
  }
  return to;
}

// y = alpha * y + beta * c, c broadcast to [m][n]; `values` are those of c.
template <typename T>
void scale_and_add(const GemmPlan& plan, T alpha, T beta, const TensorView& c, const T* values, T* y) {
  if (alpha != T{1}) {
    for (int64_t i = 0; i < plan.m * plan.n; ++i) y[i] *= alpha;
  }
  if (!c.present() || beta == T{0}) return;
  const int rank = c.shape.rank();
  const int64_t column_step = rank >= 1 && c.shape.dim(-1) != 1 ? 1 : 0;
  const int64_t row_step = rank == 2 && c.shape[0] != 1 ? c.shape[1] : 0;
  for (int64_t i = 0; i < plan.m; ++i) {
    for (int64_t j = 0; j < plan.n; ++j) {
      const T term = values[i * row_step + j * column_step];
      y[i * plan.n + j] += beta == T{1} ? term : beta * term;
    }
  }
}

// A factor of integers modulo 2^64; nothing when it is no whole number.
std::optional<uint64_t> whole_factor(float value) {
  constexpr float kLimit = 0x1p62F;
  if (!(std::fabs(value) < kLimit) || value != std::trunc(value)) return std::nullopt;
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

Status gemm_integers(const KernelArgs& args, const GemmPlan& plan, const TensorView& c) {
  OPENRKNN_CHECK_OK(require_integers(args, 3));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, Shape{plan.m, plan.n}));
  const auto alpha = whole_factor(args.attributes.float_or("alpha", 1.0F));
  const auto beta = whole_factor(args.attributes.float_or("beta", 1.0F));
  if (!alpha || !beta) return kernel_error("a Gemm of integers with a factor that is no whole number");
  auto left = wrapping(args.inputs[0]);
  auto right = wrapping(args.inputs[1]);
  if (plan.transpose_a) left = transposed(left.data(), plan.k, plan.m);
  if (plan.transpose_b) right = transposed(right.data(), plan.n, plan.k);
  std::vector<uint64_t> y(static_cast<size_t>(plan.m * plan.n));
  multiply_wrapping(plan.m, plan.n, plan.k, left.data(), right.data(), y.data());
  const auto added = c.present() ? wrapping(c) : std::vector<uint64_t>{};
  scale_and_add(plan, *alpha, *beta, c, added.data(), y.data());
  store_wrapped(y, args.outputs[0]);
  return {};
}

struct KeptGemm final : Kept {
  GemmPlan plan;
  float alpha = 1.0F;
  float beta = 1.0F;
  std::optional<PackedMatrix> right;
  bool adds_row = false;  // c is one row, added as it is
};

Result<std::unique_ptr<KeptGemm>> prepare_gemm(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  auto made = std::make_unique<KeptGemm>();
  const Shape* c = args.has_input(2) ? &args.inputs[2].shape : nullptr;
  OPENRKNN_TRY(made->plan, gemm_plan(args.attributes, args.inputs[0].shape, args.inputs[1].shape, c));
  const GemmPlan& plan = made->plan;
  made->alpha = args.attributes.float_or("alpha", 1.0F);
  made->beta = args.attributes.float_or("beta", 1.0F);
  if (holds_integers(args)) return made;
  OPENRKNN_CHECK_OK(require_floats(args, 3));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, Shape{plan.m, plan.n}));
  if (!args.constant(1)) return made;
  made->right.emplace(args.inputs[1].as<float>().data(), plan.k, plan.n, plan.transpose_b ? 1 : plan.n,
                      plan.transpose_b ? plan.k : 1);
  made->adds_row = c != nullptr && c->elements() == plan.n && c->rank() >= 1 && c->dim(-1) == plan.n &&
                   made->alpha == 1.0F && made->beta == 1.0F;
  return made;
}

Status multiply(const KernelArgs& args, const KeptGemm& kept) {
  const GemmPlan& plan = kept.plan;
  const TensorView c = args.has_input(2) ? args.inputs[2] : TensorView{};
  if (holds_integers(args)) return gemm_integers(args, plan, c);
  float* y = args.outputs[0].as<float>().data();
  const float* left = args.inputs[0].as<float>().data();
  std::vector<float> turned;
  if (plan.transpose_a) {
    turned = transposed(left, plan.k, plan.m);
    left = turned.data();
  }
  const float* right = args.inputs[1].as<float>().data();
  const float* added = c.present() ? c.as<float>().data() : nullptr;
  if (kept.right) {
    kept.right->multiply({plan.m, left, plan.k, y, plan.n, kept.adds_row ? added : nullptr});
    if (kept.adds_row) return {};
  } else if (plan.transpose_b) {
    multiply_transposed(plan.m, plan.n, plan.k, left, right, y);
  } else {
    gemm(1, plan.m, plan.n, plan.k,
         [&](int64_t) { return GemmProblem{left, plan.k, nullptr, right, plan.n, y, plan.n, nullptr}; });
  }
  scale_and_add(plan, kept.alpha, kept.beta, c, added, y);
  return {};
}

Status gemm_operator(const KernelArgs& args) {
  return with_kept<KeptGemm>(args, prepare_gemm, [&](const KeptGemm& kept) { return multiply(args, kept); });
}

}  // namespace

void register_matmul(Registry& registry) {
  registry.add("MatMul", matmul);
  registry.add("Gemm", gemm_operator);
}

}  // namespace openrknn::cpu
