// Conv and ConvTranspose in float, with the operands and attributes that fusion adds: act(conv(x, w) + b + residual).
#include "kernels/conv_plan.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_kernel.hpp"

namespace openrknn::cpu {
namespace {

Status require_float(const KernelArgs& args, size_t i, const Shape& shape, const char* what) {
  const TensorView& view = args.inputs[i];
  if (view.dtype == DType::kFloat32 && view.shape == shape) return {};
  return kernel_error(fmt::format("{} (operand {}) is {} {}, expected float32 {}", what, i, dtype_name(view.dtype),
                                  view.shape.to_string(), shape.to_string()),
                      ErrorCode::kShape);
}

Result<ConvFusion> read_fusion(const KernelArgs& args, const ConvPlan& plan) {
  ConvFusion fusion;
  OPENRKNN_TRY(fusion.activation, fused_activation(args.attributes));
  if (args.has_input(3)) {
    OPENRKNN_CHECK_OK(require_float(args, 3, plan.output, "the residual"));
    fusion.residual = args.inputs[3].as<float>().data();
  }
  if (fusion.activation.kind == Activation::kPRelu) {
    if (!args.has_input(4)) return kernel_error("the fused PRelu has no slope (operand 4)");
    const TensorView& slope = args.inputs[4];
    const int64_t count = slope.elements();
    if (slope.dtype != DType::kFloat32 || (count != 1 && count != plan.out_channels)) {
      return kernel_error(fmt::format("the PRelu slope is {} {}, expected float32 with 1 or {} values",
                                      dtype_name(slope.dtype), slope.shape.to_string(), plan.out_channels));
    }
    fusion.slopes = slope.as<float>().data();
    fusion.one_slope = count == 1;
  }
  return fusion;
}

Result<ConvOperands> read_operands(const KernelArgs& args, const ConvPlan& plan) {
  for (size_t i = 0; i < 2; ++i) {
    OPENRKNN_CHECK_OK(require_float(args, i, args.inputs[i].shape, i == 0 ? "the input" : "the weights"));
  }
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, plan.output));
  ConvOperands operands;
  operands.x = args.inputs[0].as<float>().data();
  operands.w = args.inputs[1].as<float>().data();
  operands.y = args.outputs[0].as<float>().data();
  if (args.has_input(2)) {
    OPENRKNN_CHECK_OK(require_float(args, 2, Shape{plan.out_channels}, "the bias"));
    operands.bias = args.inputs[2].as<float>().data();
  }
  OPENRKNN_TRY(operands.fusion, read_fusion(args, plan));
  return operands;
}

Status conv(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_TRY(const ConvPlan plan, conv_plan(args.attributes, args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_TRY(ConvOperands operands, read_operands(args, plan));
  operands.packed = args.packed;
  if (plan.output.elements() == 0) return {};
  if (is_planar_depthwise(plan)) {
    conv_depthwise(plan, operands);
  } else if (is_by_channels(plan)) {
    conv_by_channels(plan, operands);
  } else if (is_direct(plan, operands)) {
    conv_direct(plan, operands);
  } else {
    conv_by_gemm(plan, operands);
  }
  return {};
}

Status conv_transpose(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_TRY(const ConvPlan plan, transposed_conv_plan(args.attributes, args.inputs[0].shape, args.inputs[1].shape));
  OPENRKNN_TRY(const ConvOperands operands, read_operands(args, plan));
  if (plan.output.elements() == 0) return {};
  return conv_transposed(plan, operands);
}

}  // namespace

void register_conv(Registry& registry) {
  registry.add("Conv", conv);
  registry.add("ConvTranspose", conv_transpose);
}

}  // namespace openrknn::cpu
