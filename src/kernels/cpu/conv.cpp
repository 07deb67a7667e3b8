// Conv and ConvTranspose in float, with the operands and attributes that fusion adds: act(conv(x, w) + b + residual).
#include "kernels/conv_plan.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_norm.hpp"

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
  }
  if (fusion.activation.kind == Activation::kPRelu) {
    if (!args.has_input(4)) return kernel_error("the fused PRelu has no slope (operand 4)");
    const TensorView& slope = args.inputs[4];
    const int64_t count = slope.elements();
    if (slope.dtype != DType::kFloat32 || (count != 1 && count != plan.out_channels)) {
      return kernel_error(fmt::format("the PRelu slope is {} {}, expected float32 with 1 or {} values",
                                      dtype_name(slope.dtype), slope.shape.to_string(), plan.out_channels));
    }
    fusion.one_slope = count == 1;
  }
  return fusion;
}

struct KeptConv final : Kept {
  ConvPlan plan;
  ConvFusion fusion;  // without the operands
  ConvStages behind;
  ConvMethodPtr method;
};

// One value, one per channel, or one per element.
Result<ConvStages::Kind> stage_kind(const TensorView& in, const ConvPlan& plan) {
  const Shape& out = plan.output;
  const Shape& s = in.shape;
  if (in.dtype == DType::kFloat32 && s.rank() <= out.rank()) {
    if (s.elements() == 1) return ConvStages::Kind::kOne;
    if (s == out) return ConvStages::Kind::kByElement;
    const int channel_axis = 1 - (out.rank() - s.rank());
    if (s.elements() == plan.out_channels && channel_axis >= 0 && s[channel_axis] == plan.out_channels)
      return ConvStages::Kind::kByChannel;
  }
  return kernel_error(
      fmt::format("a stage reads {} {} behind a result {}", dtype_name(in.dtype), s.to_string(), out.to_string()),
      ErrorCode::kShape);
}

// Factor and term of a BatchNormalization, as norm.cpp has them.
Status add_affines(const KernelArgs& args, const Stage& stage, const ConvPlan& plan,
                   std::vector<std::vector<Stages::Affine>>& affines) {
  const Shape by_channel{plan.out_channels};
  for (size_t i = 0; i < 4; ++i) {
    if (!args.has_input(stage.b.number + i)) return kernel_error("a normalization lacks operands");
    OPENRKNN_CHECK_OK(require_float(args, stage.b.number + i, by_channel, "an operand of the normalization"));
  }
  const auto operand = [&](size_t i) { return args.inputs[stage.b.number + i].as<float>(); };
  affines.resize(static_cast<size_t>(plan.out_channels));
  for (size_t c = 0; c < affines.size(); ++c)
    affines[c].push_back(batch_affine(operand(0)[c], operand(1)[c], operand(2)[c], operand(3)[c], stage.epsilon));
  return {};
}

Result<ConvStages> read_stages(const KernelArgs& args, const ConvPlan& plan) {
  ConvStages behind;
  behind.stages = Stages(args.stages);
  for (const size_t i : behind.stages.inputs()) {
    if (!args.has_input(i)) return kernel_error("a stage lacks its operand");
    OPENRKNN_TRY(const ConvStages::Kind kind, stage_kind(args.inputs[i], plan));
    behind.kinds.push_back(kind);
    behind.alike = behind.alike && kind != ConvStages::Kind::kByChannel;
  }
  for (const Stage& stage : args.stages) {
    if (stage.op == Stage::Op::kNormalize) OPENRKNN_CHECK_OK(add_affines(args, stage, plan, behind.affines));
  }
  behind.alike = behind.alike && behind.affines.empty();
  return behind;
}

Status check_operands(const KernelArgs& args, const ConvPlan& plan) {
  for (size_t i = 0; i < 2; ++i) {
    OPENRKNN_CHECK_OK(require_float(args, i, args.inputs[i].shape, i == 0 ? "the input" : "the weights"));
  }
  if (args.has_input(2)) OPENRKNN_CHECK_OK(require_float(args, 2, Shape{plan.out_channels}, "the bias"));
  return require_output(args, 0, DType::kFloat32, plan.output);
}

template <bool kTransposed>
Result<std::unique_ptr<KeptConv>> prepare(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  auto made = std::make_unique<KeptConv>();
  const Shape& x = args.inputs[0].shape;
  const Shape& w = args.inputs[1].shape;
  OPENRKNN_TRY(made->plan,
               kTransposed ? transposed_conv_plan(args.attributes, x, w) : conv_plan(args.attributes, x, w));
  OPENRKNN_CHECK_OK(check_operands(args, made->plan));
  OPENRKNN_TRY(made->fusion, read_fusion(args, made->plan));
  OPENRKNN_TRY(made->behind, read_stages(args, made->plan));
  if (made->plan.output.elements() == 0) return made;
  const float* constant = args.constant(1) ? args.inputs[1].as<float>().data() : nullptr;
  if (!kTransposed) {
    made->method = conv_method(made->plan, constant);
  } else {
    made->method = is_blockwise(made->plan) ? conv_blockwise(made->plan, constant) : conv_transposed(made->plan);
  }
  return made;
}

Status run(const KernelArgs& args, const KeptConv& kept) {
  if (kept.method == nullptr) return {};
  const auto floats = [&](size_t i) {
    return args.has_input(i) ? static_cast<const float*>(args.inputs[i].data) : nullptr;
  };
  ConvOperands operands{floats(0), floats(1), floats(2), static_cast<float*>(args.outputs[0].data), kept.fusion};
  operands.fusion.residual = floats(3);
  operands.fusion.inputs = args.inputs.data();
  operands.fusion.behind = kept.behind.stages.empty() ? nullptr : &kept.behind;
  if (operands.fusion.activation.kind == Activation::kPRelu) operands.fusion.slopes = floats(4);
  return kept.method->run(operands);
}

template <bool kTransposed>
Status conv(const KernelArgs& args) {
  return with_kept<KeptConv>(args, prepare<kTransposed>, [&](const KeptConv& kept) { return run(args, kept); });
}

}  // namespace

ConvMethodPtr conv_method(const ConvPlan& plan, const float* constant) {
  // One input channel for many results is better read once for several of them.
  constexpr int64_t kManyResults = 8;
  const bool shared = plan.groups == 1 && plan.out_channels >= kManyResults &&
                      (is_by_channels(plan) || is_direct(plan, constant != nullptr));
  if (is_planar_depthwise(plan) && !shared) return conv_depthwise(plan);
  if (is_by_channels(plan)) return conv_by_channels(plan, constant);
  if (is_direct(plan, constant != nullptr)) return conv_direct(plan, constant);
  return conv_by_gemm(plan);
}

void register_conv(Registry& registry) {
  registry.add("Conv", conv<false>);
  registry.add("ConvTranspose", conv<true>);
}

}  // namespace openrknn::cpu
