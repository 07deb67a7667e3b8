// Convolutions. Beyond ONNX they carry what fusion gives them: a residual, an activation.
#include "kernels/conv_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Status check_operands(const InferInput& in, const ConvPlan& plan) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 3));
  if (in.has(2) && !(in.shape(2) == Shape{plan.out_channels})) {
    return infer_error("operand 2",
                       fmt::format("bias {} for {} output channels", in.shape(2).to_string(), plan.out_channels));
  }
  if (in.has(3) && !(in.shape(3) == plan.output)) {
    return infer_error("operand 3",
                       fmt::format("residual {} for an output {}", in.shape(3).to_string(), plan.output.to_string()));
  }
  return {};
}

Types infer_conv(const InferInput& in) {
  OPENRKNN_TRY(const ConvPlan plan, conv_plan(in.attributes, in.shape(0), in.shape(1)));
  OPENRKNN_CHECK_OK(check_operands(in, plan));
  return one(in.dtype(0), plan.output);
}

Types infer_conv_transpose(const InferInput& in) {
  OPENRKNN_TRY(const ConvPlan plan, transposed_conv_plan(in.attributes, in.shape(0), in.shape(1)));
  OPENRKNN_CHECK_OK(check_operands(in, plan));
  return one(in.dtype(0), plan.output);
}

int64_t conv_macs(const InferInput& in, std::span<const TensorType> outputs) {
  // Every output element takes one product per weight of its output channel.
  return outputs[0].shape->elements() * (in.shape(1).elements() / std::max<int64_t>(1, in.shape(1)[0]));
}

int64_t conv_transpose_macs(const InferInput& in, std::span<const TensorType>) {
  // Every input element meets all weights of its input channel.
  return in.shape(0).elements() * (in.shape(1).elements() / std::max<int64_t>(1, in.shape(1)[0]));
}

std::vector<AttrSpec> attributes(bool transposed) {
  std::vector<AttrSpec> specs = {
      {"auto_pad", AttrKind::kString, false, "NOTSET (default), SAME_UPPER, SAME_LOWER or VALID"},
      {"dilations", AttrKind::kInts, false, "distance of taps per axis, default 1"},
      {"group", AttrKind::kInt, false, "groups of channels, default 1"},
      {"kernel_shape", AttrKind::kInts, false, "extents of the window, default those of the weights"},
      {"pads", AttrKind::kInts, false, "zeros at the begin of all axes, then at the end, default 0"},
      {"strides", AttrKind::kInts, false, "step of the window per axis, default 1"},
      {"activation", AttrKind::kString, false, "fused activation function, default none"},
      {"activation_min", AttrKind::kFloat, false, "lower bound of a fused Clip"},
      {"activation_max", AttrKind::kFloat, false, "upper bound of a fused Clip"},
      {"activation_alpha", AttrKind::kFloat, false, "alpha of the fused activation"},
      {"activation_beta", AttrKind::kFloat, false, "beta of the fused activation"},
  };
  if (transposed) {
    specs.push_back({"output_padding", AttrKind::kInts, false, "positions added at the end per axis, default 0"});
    specs.push_back({"output_shape", AttrKind::kInts, false, "spatial extents of the result; they decide the padding"});
  }
  return specs;
}

}  // namespace

void register_conv(Registry& registry) {
  registry.add({.name = "Conv",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 5,
                .attributes = attributes(false),
                .infer = infer_conv,
                .macs = conv_macs,
                .doc =
                    "Convolution over 1 to 3 axes, grouped or not; operands 3 (residual) and 4 (PRelu slope) and the "
                    "activation come from fusion"});
  registry.add({.name = "ConvTranspose",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 5,
                .attributes = attributes(true),
                .infer = infer_conv_transpose,
                .macs = conv_transpose_macs,
                .doc = "Transposed convolution over 1 to 3 axes; the same fusions as Conv"});
}

}  // namespace openrknn::ops
