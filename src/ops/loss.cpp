// Losses, forward only.
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_loss(const InferInput& in) {
  const Shape& x = in.shape(0);
  if (x.rank() < 2) return infer_error("operand 0", fmt::format("shape {} has no classes", x.to_string()));
  std::vector<int64_t> dims = x.to_vector();
  dims.erase(dims.begin() + 1);
  OPENRKNN_TRY(const Shape positions, Shape::make(dims));
  if (!(in.shape(1) == positions) || !is_integer(in.dtype(1)))
    return infer_error("operand 1", fmt::format("shape {} for {}", in.shape(1).to_string(), x.to_string()));
  if (in.has(2) && !(in.shape(2) == Shape{x[1]}))
    return infer_error("operand 2", fmt::format("shape {} for {} classes", in.shape(2).to_string(), x[1]));
  const bool whole = in.attributes.string_or("reduction", "mean") == "none";
  std::vector<TensorType> types = {{in.dtype(0), whole ? positions : Shape{}}, {in.dtype(0), x}};
  types.resize(in.outputs);
  return types;
}

}  // namespace

void register_loss(Registry& registry) {
  for (const std::string_view name : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    const bool softmax = name == "SoftmaxCrossEntropyLoss";
    registry.add({.name = name,
                  .op_class = OpClass::kCompute,
                  .min_inputs = 2,
                  .max_inputs = 3,
                  .max_outputs = softmax ? 2 : 1,
                  .attributes = {{"ignore_index", AttrKind::kInt, false, "a target that does not count"},
                                 {"reduction", AttrKind::kString, false, "mean (default), sum or none"}},
                  .infer = infer_loss,
                  .doc = softmax ? "Loss of scores against classes, and the logarithms of the probabilities"
                                 : "Loss of logarithms of probabilities against classes"});
  }
}

}  // namespace openrknn::ops
