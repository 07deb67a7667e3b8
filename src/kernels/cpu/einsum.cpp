// Einsum: operands are contracted from left to right, each pair as a batch of matrix products over arrays that are
// brought into the order batch, rows, sums, columns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/cpu/support_sums.hpp"
#include "kernels/einsum_plan.hpp"
#include "kernels/gemm.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

using Indices = std::vector<int>;

bool has(const Indices& indices, int index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

// An array whose axes are indices of the equation, each once; row-major.
template <typename T>
struct Term {
  Indices indices;
  Tensor values;  // one axis: there may be more indices than a shape has axes

  const T* data() const { return static_cast<const T*>(values.data()); }
  T* data() { return static_cast<T*>(values.mutable_data()); }
};

template <typename T>
class Contraction {
 public:
  explicit Contraction(const EinsumPlan& plan) : plan_(plan) {}

  // An operand with its diagonals taken; axes that are repeated to a larger extent are left out.
  Result<Term<T>> operand(size_t k, const TensorView& view, const T* data) const {
    Term<T> term;
    std::vector<int64_t> steps;
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      const int index = plan_.operands[k][static_cast<size_t>(axis)];
      if (view.shape[axis] == 1 && extent(index) != 1) continue;
      const int64_t step = view.shape.strides()[static_cast<size_t>(axis)];
      const auto at = std::find(term.indices.begin(), term.indices.end(), index);
      if (at != term.indices.end()) {
        steps[static_cast<size_t>(at - term.indices.begin())] += step;
        continue;
      }
      term.indices.push_back(index);
      steps.push_back(step);
    }
    OPENRKNN_TRY(term.values, array(term.indices));
    copy(data, term.indices, steps, term.data());
    return term;
  }

  // Sums away the indices that are not in `kept`.
  Result<Term<T>> reduced(Term<T> term, const Indices& kept) const {
    Indices stay;
    Indices summed;
    for (const int index : term.indices) (has(kept, index) ? stay : summed).push_back(index);
    if (summed.empty()) return term;
    OPENRKNN_TRY(const int64_t rows, size_of(stay));
    OPENRKNN_TRY(const int64_t n, size_of(summed));
    Indices order = stay;
    order.insert(order.end(), summed.begin(), summed.end());
    OPENRKNN_TRY(const Term<T> sorted, permuted(term, order));
    Term<T> result{stay, {}};
    OPENRKNN_TRY(result.values, array(stay));
    T* to = result.data();
    for (int64_t r = 0; r < rows; ++r) to[r] = sum(sorted.data() + r * n, n);
    return result;
  }

  // The product of two terms, summed over the indices that are not in `kept`.
  Result<Term<T>> product(Term<T> a, Term<T> b, const Indices& kept) const {
    Indices both = kept;
    both.insert(both.end(), b.indices.begin(), b.indices.end());
    OPENRKNN_TRY(a, reduced(std::move(a), both));
    both = kept;
    both.insert(both.end(), a.indices.begin(), a.indices.end());
    OPENRKNN_TRY(b, reduced(std::move(b), both));
    Indices batch;
    Indices rows;
    Indices sums;
    Indices columns;
    for (const int index : a.indices) {
      (!has(b.indices, index) ? rows : has(kept, index) ? batch : sums).push_back(index);
    }
    for (const int index : b.indices) {
      if (!has(a.indices, index)) columns.push_back(index);
    }
    OPENRKNN_TRY(const int64_t problems, size_of(batch));
    OPENRKNN_TRY(const int64_t m, size_of(rows));
    OPENRKNN_TRY(const int64_t n, size_of(columns));
    OPENRKNN_TRY(const int64_t k, size_of(sums));
    OPENRKNN_TRY(const Term<T> left, permuted(a, joined({batch, rows, sums})));
    OPENRKNN_TRY(const Term<T> right, permuted(b, joined({batch, sums, columns})));
    Term<T> result{joined({batch, rows, columns}), {}};
    OPENRKNN_TRY(result.values, array(result.indices));
    multiply(problems, m, n, k, left.data(), right.data(), result.data());
    return result;
  }

  Result<Term<T>> permuted(const Term<T>& term, const Indices& order) const {
    if (term.indices == order) return term;
    std::vector<int64_t> own(term.indices.size(), 1);
    for (size_t i = own.size(); i-- > 1;) own[i - 1] = own[i] * extent(term.indices[i]);
    std::vector<int64_t> steps;
    for (const int index : order) {
      const auto at = std::find(term.indices.begin(), term.indices.end(), index);
      steps.push_back(own[static_cast<size_t>(at - term.indices.begin())]);
    }
    Term<T> result{order, {}};
    OPENRKNN_TRY(result.values, array(order));
    copy(term.data(), order, steps, result.data());
    return result;
  }

 private:
  int64_t extent(int index) const { return plan_.extents[static_cast<size_t>(index)]; }

  static Indices joined(std::initializer_list<Indices> parts) {
    Indices all;
    for (const Indices& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  Result<int64_t> size_of(const Indices& indices) const {
    std::optional<int64_t> count = 1;
    for (const int index : indices) count = count ? checked_mul(*count, extent(index)) : count;
    if (!count) return kernel_error("an intermediate result is too large", ErrorCode::kResource);
    return *count;
  }

  // For an intermediate result, which may be much larger than operands and result.
  Result<Tensor> array(const Indices& indices) const {
    OPENRKNN_TRY(const int64_t count, size_of(indices));
    OPENRKNN_TRY(const Shape shape, Shape::make(std::vector<int64_t>{count}));
    return Tensor::make(dtype_of<T>(), shape);
  }

  void copy(const T* from, const Indices& indices, const std::vector<int64_t>& steps, T* to) const {
    std::vector<StridedLoop> loops(indices.size());
    int64_t step = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      loops[i] = {extent(indices[i]), steps[i], step};
      step *= loops[i].extent;
    }
    if (step > 0) copy_strided(from, to, loops, sizeof(T));
  }

  static T sum(const T* x, int64_t n) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(lane_sum(n, [x](int64_t i) { return static_cast<double>(x[i]); }));
    } else {
      uint64_t total = 0;
      for (int64_t i = 0; i < n; ++i) total += static_cast<uint64_t>(x[i]);
      return static_cast<T>(total);
    }
  }

  static void multiply(int64_t problems, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
    if constexpr (std::is_same_v<T, float>) {
      gemm(problems, m, n, k, [&](int64_t p) {
        return GemmProblem{a + p * m * k, k, nullptr, b + p * k * n, n, c + p * m * n, n, nullptr};
      });
    } else {
      using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
      for (int64_t i = 0; i < problems * m * n; ++i) {
        const T* row = a + i / n * k;
        const T* column = b + i / (m * n) * k * n + i % n;
        Sum total{0};
        for (int64_t l = 0; l < k; ++l) total += static_cast<Sum>(row[l]) * static_cast<Sum>(column[l * n]);
        c[i] = static_cast<T>(total);
      }
    }
  }

  const EinsumPlan& plan_;
};

template <typename T>
Status contract(const EinsumPlan& plan, std::span<const TensorView> operands, T* to) {
  const Contraction<T> contraction(plan);
  Term<T> result;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Promoted data(operands[k], dtype_of<T>());
    OPENRKNN_TRY(Term<T> term, contraction.operand(k, operands[k], data.template data<T>()));
    Indices kept = plan.output;
    for (size_t later = k + 1; later < operands.size(); ++later)
      kept.insert(kept.end(), plan.operands[later].begin(), plan.operands[later].end());
    if (k == 0) {
      OPENRKNN_TRY(result, contraction.reduced(std::move(term), kept));
    } else {
      OPENRKNN_TRY(result, contraction.product(std::move(result), std::move(term), kept));
    }
  }
  OPENRKNN_TRY(const Term<T> ordered, contraction.permuted(result, plan.output));
  std::copy_n(ordered.data(), plan.shape.elements(), to);
  return {};
}

Status einsum(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, std::max<size_t>(args.inputs.size(), 1)));
  const DType dtype = args.inputs[0].dtype;
  std::vector<Shape> shapes;
  for (const TensorView& in : args.inputs) {
    if (in.dtype != dtype) return kernel_error("operands of different types", ErrorCode::kShape);
    shapes.push_back(in.shape);
  }
  OPENRKNN_TRY(const EinsumPlan plan, einsum_plan(args.attributes.string_or("equation", ""), shapes));
  OPENRKNN_CHECK_OK(require_output(args, 0, dtype, plan.shape));
  if (plan.shape.elements() == 0) return {};
  return compute_into(args.outputs[0], compute_type(dtype),
                      [&](auto tag, auto* to) -> Status { return contract<decltype(tag)>(plan, args.inputs, to); });
}

}  // namespace

void register_einsum(Registry& registry) { registry.add("Einsum", einsum); }

}  // namespace openrknn::cpu
