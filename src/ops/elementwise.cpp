// Arithmetic under numpy broadcasting.
#include "kernels/activation.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Result<Shape> broadcast_all(const InferInput& in) {
  Shape shape = in.shape(0);
  for (size_t i = 1; i < in.inputs.size(); ++i) {
    if (!in.has(i)) return infer_error(fmt::format("operand {}", i), "it is absent");
    OPENRKNN_CHECK_OK(same_dtype(in, 0, i));
    OPENRKNN_TRY(shape, broadcast(shape, in.shape(i)));
  }
  return shape;
}

Types infer_broadcast(const InferInput& in) {
  OPENRKNN_CHECK_OK(fused_activation(in.attributes));
  return computed(in.dtype(0), broadcast_all(in));
}

Types infer_mod(const InferInput& in) {
  if (is_float(in.dtype(0)) && in.attributes.int_or("fmod", 0) == 0)
    return infer_error("fmod", "float operands need fmod = 1");
  return computed(in.dtype(0), broadcast_all(in));
}

Types infer_pow(const InferInput& in) { return computed(in.dtype(0), broadcast(in.shape(0), in.shape(1))); }

OpDef binary(std::string_view name, std::string_view doc, std::vector<AttrSpec> attributes = {}) {
  return {.name = name,
          .op_class = OpClass::kElementwise,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = std::move(attributes),
          .infer = infer_broadcast,
          .doc = doc};
}

OpDef variadic(std::string_view name, std::string_view doc) {
  return {.name = name, .op_class = OpClass::kElementwise, .max_inputs = -1, .infer = infer_broadcast, .doc = doc};
}

std::vector<AttrSpec> fused() {
  return {{"activation", AttrKind::kString, false, "own extension: fused function of the result (Relu, Clip, ...)"},
          {"activation_min", AttrKind::kFloat, false, "lower bound of a fused Clip"},
          {"activation_max", AttrKind::kFloat, false, "upper bound of a fused Clip"},
          {"activation_alpha", AttrKind::kFloat, false, "alpha of the fused function"},
          {"activation_beta", AttrKind::kFloat, false, "beta of the fused function"}};
}

}  // namespace

void register_elementwise(Registry& registry) {
  registry.add(binary("Add", "a + b", fused()));
  registry.add(binary("Sub", "a - b", fused()));
  registry.add(binary("Mul", "a * b", fused()));
  registry.add(binary("Div", "a / b; integers truncate, division by 0 is an error"));
  OpDef mod = binary("Mod", "a modulo b with the sign of b, or of a when fmod is 1",
                     {{"fmod", AttrKind::kInt, false, "1: C's fmod; default 0"}});
  mod.infer = infer_mod;
  registry.add(mod);
  OpDef pow = binary("Pow", "a to the power b; the result has a's type");
  pow.infer = infer_pow;
  registry.add(pow);
  registry.add(variadic("Min", "Smallest of the operands"));
  registry.add(variadic("Max", "Largest of the operands"));
  registry.add(variadic("Sum", "Sum of the operands"));
  registry.add(variadic("Mean", "Mean of the operands"));
  registry.add(binary("BitwiseAnd", "a & b of integers"));
  registry.add(binary("BitwiseOr", "a | b of integers"));
  registry.add(binary("BitwiseXor", "a ^ b of integers"));
  registry.add(binary("BitShift", "a shifted by b bits, unsigned integers",
                      {{"direction", AttrKind::kString, true, "LEFT or RIGHT"}}));
}

}  // namespace openrknn::ops
