// ConvInteger, MatMulInteger, QLinearConv and QLinearMatMul: exact sums, then onnxruntime's float requantization.
#include <vector>

#include "base/parallel.hpp"
#include "kernels/conv_plan.hpp"
#include "kernels/cpu/support_conv_patches.hpp"
#include "kernels/cpu/support_integer_gemm.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_requantize.hpp"
#include "kernels/matmul_plan.hpp"
#include "kernels/quantize_plan.hpp"

namespace openrknn::cpu {
namespace {

Status eight_bits(const KernelArgs& args, size_t i) {
  const DType dtype = args.inputs[i].dtype;
  if (dtype == DType::kInt8 || dtype == DType::kUInt8) return {};
  return kernel_error(fmt::format("operand {} is {}, expected int8 or uint8", i, dtype_name(dtype)));
}

// Zero points as integers; {0} when absent. Those of 8-bit values have to be 8-bit values: the sums rely on it.
Result<std::vector<int64_t>> zero_points(const KernelArgs& args, size_t i) {
  if (!args.has_input(i)) return std::vector<int64_t>{0};
  OPENRKNN_CHECK_OK(eight_bits(args, i));
  return to_ints(args.inputs[i]);
}

Result<std::vector<float>> scales(const KernelArgs& args, size_t i) {
  if (!args.has_input(i) || !is_float(args.inputs[i].dtype) || args.inputs[i].elements() < 1)
    return kernel_error(fmt::format("operand {} is no scale", i));
  const Tensor made = cast(args.inputs[i], DType::kFloat32);
  const auto values = made.as<float>();
  return std::vector<float>(values.begin(), values.end());
}

// The values less their zero points, as floats. zero(line) gives that of a line of `length` elements.
template <typename ZeroOf>
std::vector<float> centred(const TensorView& view, int64_t length, ZeroOf&& zero) {
  std::vector<float> to(static_cast<size_t>(view.elements()));
  const auto fill = [&](auto values) {
    for (int64_t i = 0; i < view.elements(); ++i) {
      const int64_t value = values[static_cast<size_t>(i)];
      to[static_cast<size_t>(i)] = static_cast<float>(value - zero(i / length, i % length));
    }
  };
  if (view.dtype == DType::kInt8) {
    fill(view.as<int8_t>());
  } else {
    fill(view.as<uint8_t>());
  }
  return to;
}

// y = round(sum * scale(line, i)) + zero over lines of `length`.
template <typename ScaleOf>
Status requantize(const std::vector<int32_t>& sums, int64_t length, ScaleOf&& scale, int64_t zero,
                  const MutableTensorView& out) {
  const Requantizer round(out.dtype);
  const auto fill = [&](auto values) {
    const int64_t lines = length > 0 ? static_cast<int64_t>(sums.size()) / length : 0;
    parallel_for(lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(length, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        for (int64_t i = 0; i < length; ++i) {
          const auto at = static_cast<size_t>(line * length + i);
          using Value = typename decltype(values)::value_type;
          values[at] = static_cast<Value>(round(static_cast<float>(sums[at]) * scale(line, i), zero));
        }
      }
    });
  };
  if (out.dtype == DType::kInt8) {
    fill(out.as<int8_t>());
    return {};
  }
  if (out.dtype == DType::kUInt8) {
    fill(out.as<uint8_t>());
    return {};
  }
  return kernel_error(fmt::format("the result is {}, expected int8 or uint8", dtype_name(out.dtype)));
}

template <typename T>
T one_or(const std::vector<T>& values, int64_t i) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
}

struct ConvPositions {
  size_t w, zero_x, zero_w;
};

Status conv_sums(const KernelArgs& args, const ConvPositions& at, const ConvPlan& plan, int32_t* sums) {
  OPENRKNN_CHECK_OK(eight_bits(args, 0));
  OPENRKNN_CHECK_OK(eight_bits(args, at.w));
  OPENRKNN_TRY(const auto zero_x, zero_points(args, at.zero_x));
  OPENRKNN_TRY(const auto zero_w, zero_points(args, at.zero_w));
  if (zero_x.size() != 1 || (zero_w.size() != 1 && static_cast<int64_t>(zero_w.size()) != plan.out_channels))
    return kernel_error("the zero points do not fit", ErrorCode::kShape);
  const int64_t m = plan.group_out();
  const int64_t k = plan.group_in() * plan.taps();
  const auto x = centred(args.inputs[0], 1, [&](int64_t, int64_t) { return zero_x[0]; });
  const auto w = centred(args.inputs[at.w], std::max<int64_t>(k, 1),
                         [&](int64_t channel, int64_t) { return one_or(zero_w, channel); });
  const PatchGeometry geometry = patch_geometry(plan);
  const int64_t problems = plan.batch * plan.groups;
  std::vector<PatchSource> sources;
  for (int64_t p = 0; p < problems; ++p)
    sources.emplace_back(geometry, x.data() + p * plan.group_in() * geometry.in_pixels());
  integer_gemm(
      problems, m, geometry.out_pixels(), k,
      [&](int64_t p) {
        GemmProblem problem;
        problem.a = w.data() + p % plan.groups * m * k;
        problem.lda = k;
        problem.b = &sources[static_cast<size_t>(p)];
        return problem;
      },
      sums);
  return {};
}

Status conv_integer(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_TRY(const ConvPlan plan, conv_plan(args.attributes, args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kInt32, plan.output));
  if (plan.output.elements() == 0) return {};
  return conv_sums(args, {1, 2, 3}, plan, args.outputs[0].as<int32_t>().data());
}

// x, x scale, x zero, w, w scale, w zero, y scale, y zero, bias
Status qlinear_conv(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 8));
  OPENRKNN_TRY(const ConvPlan plan, conv_plan(args.attributes, args.inputs[0].shape, args.inputs[3].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[7].dtype, plan.output));
  OPENRKNN_TRY(const auto x_scale, scales(args, 1));
  OPENRKNN_TRY(const auto w_scale, scales(args, 4));
  OPENRKNN_TRY(const auto y_scale, scales(args, 6));
  OPENRKNN_TRY(const auto y_zero, zero_points(args, 7));
  if (w_scale.size() != 1 && static_cast<int64_t>(w_scale.size()) != plan.out_channels)
    return kernel_error("the scales of the weights do not fit", ErrorCode::kShape);
  if (plan.output.elements() == 0) return {};
  std::vector<int32_t> sums(static_cast<size_t>(plan.output.elements()));
  OPENRKNN_CHECK_OK(conv_sums(args, {3, 2, 5}, plan, sums.data()));
  const int64_t pixels = plan.out_pixels();
  if (args.has_input(8)) {
    if (args.inputs[8].dtype != DType::kInt32 || !(args.inputs[8].shape == Shape{plan.out_channels}))
      return kernel_error("the bias does not fit", ErrorCode::kShape);
    const auto bias = args.inputs[8].as<int32_t>();
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / pixels % plan.out_channels);
      sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(bias[channel]));
    }
  }
  return requantize(
      sums, pixels,
      [&](int64_t line, int64_t) { return x_scale[0] * one_or(w_scale, line % plan.out_channels) / y_scale[0]; },
      y_zero[0], args.outputs[0]);
}

struct MatMulPositions {
  size_t b, zero_a, zero_b;
};

// Parameter `i` of an operand's rows or columns; `count` values are there.
Result<LineParameters> lines_of(const KernelArgs& args, size_t i, size_t operand, bool rows) {
  if (!args.has_input(i)) return LineParameters{};
  return line_parameters(args.inputs[i].shape, args.inputs[operand].shape, rows);
}

Status matmul_sums(const KernelArgs& args, const MatMulPositions& at, const MatMulPlan& plan, int32_t* sums) {
  OPENRKNN_CHECK_OK(eight_bits(args, 0));
  OPENRKNN_CHECK_OK(eight_bits(args, at.b));
  OPENRKNN_TRY(const auto zero_a, zero_points(args, at.zero_a));
  OPENRKNN_TRY(const auto zero_b, zero_points(args, at.zero_b));
  OPENRKNN_TRY(const LineParameters rows, lines_of(args, at.zero_a, 0, true));
  OPENRKNN_TRY(const LineParameters columns, lines_of(args, at.zero_b, at.b, false));
  const auto a = centred(args.inputs[0], plan.k, [&](int64_t line, int64_t) {
    return zero_a[static_cast<size_t>(line / plan.m * rows.matrix_step + line % plan.m * rows.line_step)];
  });
  const auto b = centred(args.inputs[at.b], plan.n, [&](int64_t line, int64_t column) {
    return zero_b[static_cast<size_t>(line / plan.k * columns.matrix_step + column * columns.line_step)];
  });
  integer_gemm(
      static_cast<int64_t>(plan.a_batch.size()), plan.m, plan.n, plan.k,
      [&](int64_t p) {
        GemmProblem problem;
        problem.a = a.data() + plan.a_batch[static_cast<size_t>(p)] * plan.m * plan.k;
        problem.lda = plan.k;
        problem.b_rows = b.data() + plan.b_batch[static_cast<size_t>(p)] * plan.k * plan.n;
        problem.ldb = plan.n;
        return problem;
      },
      sums);
  return {};
}

Status matmul_integer(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_TRY(const MatMulPlan plan, matmul_plan(args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kInt32, plan.output));
  return matmul_sums(args, {1, 2, 3}, plan, args.outputs[0].as<int32_t>().data());
}

// a, a scale, a zero, b, b scale, b zero, y scale, y zero
Status qlinear_matmul(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 8));
  OPENRKNN_TRY(const MatMulPlan plan, matmul_plan(args.inputs[0].shape, args.inputs[3].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[7].dtype, plan.output));
  OPENRKNN_TRY(const auto a_scale, scales(args, 1));
  OPENRKNN_TRY(const auto b_scale, scales(args, 4));
  OPENRKNN_TRY(const auto y_scale, scales(args, 6));
  OPENRKNN_TRY(const auto y_zero, zero_points(args, 7));
  OPENRKNN_TRY(const LineParameters rows, lines_of(args, 1, 0, true));
  OPENRKNN_TRY(const LineParameters columns, lines_of(args, 4, 3, false));
  std::vector<int32_t> sums(static_cast<size_t>(plan.output.elements()));
  OPENRKNN_CHECK_OK(matmul_sums(args, {3, 2, 5}, plan, sums.data()));
  return requantize(
      sums, plan.n,
      [&](int64_t line, int64_t column) {
        const auto p = static_cast<size_t>(line / plan.m);
        const int64_t row = plan.a_batch[p] * rows.matrix_step + line % plan.m * rows.line_step;
        const int64_t at = plan.b_batch[p] * columns.matrix_step + column * columns.line_step;
        return a_scale[static_cast<size_t>(row)] * b_scale[static_cast<size_t>(at)] / y_scale[0];
      },
      y_zero[0], args.outputs[0]);
}

}  // namespace

void register_integer(Registry& registry) {
  registry.add("ConvInteger", conv_integer);
  registry.add("MatMulInteger", matmul_integer);
  registry.add("QLinearConv", qlinear_conv);
  registry.add("QLinearMatMul", qlinear_matmul);
}

}  // namespace openrknn::cpu
