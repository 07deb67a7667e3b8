// Unary functions of float values.
#include "kernels/activation.hpp"

#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_float_unary(const InferInput& in) {
  if (!is_float(in.dtype(0)))
    return infer_error("operand 0", fmt::format("type {}, a float type is needed", dtype_name(in.dtype(0))));
  OPENRKNN_CHECK_OK(activation_of(in.op, in.attributes));
  return like_first(in);
}

Types infer_relu(const InferInput& in) {
  if (is_integer(in.dtype(0))) return like_first(in);
  return infer_float_unary(in);
}

Types infer_clip(const InferInput& in) {
  for (size_t i = 1; i < 3; ++i) {
    OPENRKNN_CHECK_OK(same_dtype(in, 0, i));
    if (in.has(i) && in.shape(i).elements() != 1) return infer_error(i == 1 ? "min" : "max", "it is no scalar");
  }
  return like_first(in);
}

Types infer_prelu(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_TRY(const Shape shape, broadcast(in.shape(0), in.shape(1)));
  if (!(shape == in.shape(0)))
    return infer_error("slope",
                       fmt::format("{} does not broadcast to {}", in.shape(1).to_string(), in.shape(0).to_string()));
  return one(in.dtype(0), shape);
}

OpDef unary(std::string_view name, std::string_view doc, std::vector<AttrSpec> attributes = {}, bool own = false) {
  return {.name = name,
          .op_class = OpClass::kActivation,
          .attributes = std::move(attributes),
          .infer = infer_float_unary,
          .doc = doc,
          .own = own};
}

}  // namespace

void register_activation(Registry& registry) {
  const AttrSpec approximate{"approximate", AttrKind::kString, false,
                             "none (default): by erf; tanh: by the tanh formula"};
  OpDef relu = unary("Relu", "max(x, 0)");
  relu.infer = infer_relu;
  registry.add(std::move(relu));
  registry.add(
      unary("LeakyRelu", "x < 0 ? alpha * x : x", {{"alpha", AttrKind::kFloat, false, "slope below 0; default 0.01"}}));
  registry.add(unary("Sigmoid", "1 / (1 + exp(-x))"));
  registry.add(unary("Tanh", "tanh(x)"));
  registry.add(
      unary("HardSigmoid", "clip(alpha * x + beta, 0, 1)",
            {{"alpha", AttrKind::kFloat, false, "default 0.2"}, {"beta", AttrKind::kFloat, false, "default 0.5"}}));
  registry.add(unary("HardSwish", "x * clip(x / 6 + 0.5, 0, 1)"));
  registry.add(unary("Elu", "x < 0 ? alpha * (exp(x) - 1) : x", {{"alpha", AttrKind::kFloat, false, "default 1"}}));
  registry.add(unary("Selu", "gamma * (x < 0 ? alpha * (exp(x) - 1) : x)",
                     {{"alpha", AttrKind::kFloat, false, "default 1.6732632"},
                      {"gamma", AttrKind::kFloat, false, "default 1.050701"}}));
  registry.add(
      unary("Celu", "x < 0 ? alpha * (exp(x / alpha) - 1) : x", {{"alpha", AttrKind::kFloat, false, "default 1"}}));
  registry.add(unary("Softplus", "log(1 + exp(x))"));
  registry.add(unary("Softsign", "x / (1 + |x|)"));
  registry.add(
      unary("ThresholdedRelu", "x > alpha ? x : 0", {{"alpha", AttrKind::kFloat, false, "threshold; default 1"}}));
  registry.add(unary("Swish", "x * sigmoid(alpha * x)", {{"alpha", AttrKind::kFloat, false, "default 1"}}));
  registry.add(unary("Mish", "x * tanh(log(1 + exp(x)))"));
  registry.add(unary("Gelu", "x * the normal distribution's value at x", {approximate}));
  registry.add(unary("exSwish", "x * sigmoid(x): a fused Sigmoid and Mul", {}, true));
  registry.add(unary("exGelu", "Gelu found as a chain of operators", {approximate}, true));
  registry.add(unary("exMish", "Mish found as a chain of operators", {}, true));
  registry.add({.name = "Clip",
                .op_class = OpClass::kActivation,
                .max_inputs = 3,
                .infer = infer_clip,
                .doc = "min(max(x, low), high): inputs min and max are scalars, either may be absent"});
  registry.add({.name = "PRelu",
                .op_class = OpClass::kActivation,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_prelu,
                .doc = "x < 0 ? slope * x : x; the slope broadcasts to x"});
}

}  // namespace openrknn::ops
