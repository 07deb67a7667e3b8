// Operators whose result has the operand's bytes under another shape.
#include "kernels/geometry.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_reshape(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), geometry::reshape(in.shape(0), *in.ints(1), in.attributes.int_or("allowzero", 0) != 0));
}

Types infer_flatten(const InferInput& in) {
  return computed(in.dtype(0), geometry::flatten(in.shape(0), in.attributes.int_or("axis", 1)));
}

Types infer_squeeze(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), geometry::squeeze(in.shape(0), in.ints(1)));
}

Types infer_unsqueeze(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), geometry::unsqueeze(in.shape(0), *in.ints(1)));
}

// Nothing is dropped at inference, nor at a ratio of 0.
Types infer_dropout(const InferInput& in) {
  if (!known(in, 2)) return std::vector<TensorType>{{in.dtype(0), std::nullopt}, {DType::kBool, std::nullopt}};
  if (const auto training = in.ints(2); training && !training->empty() && (*training)[0] != 0) {
    if (!known(in, 1)) return std::vector<TensorType>{{in.dtype(0), std::nullopt}, {DType::kBool, std::nullopt}};
    const bool drops = !in.has(1) || in.constants[1]->elements() != 1 || to_doubles(in.constants[1]->view())[0] != 0.0;
    if (drops) return infer_error("training_mode", "only inference is supported");
  }
  return std::vector<TensorType>{{in.dtype(0), in.shape(0)}, {DType::kBool, in.shape(0)}};
}

OpDef def(std::string_view name, int inputs, Infer infer, std::string_view doc) {
  return {.name = name,
          .op_class = OpClass::kDataMovement,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = infer,
          .doc = doc};
}

}  // namespace

void register_reshape(Registry& registry) {
  OpDef reshape = def("Reshape", 2, infer_reshape, "The shape in input 1: 0 keeps an extent, -1 takes the rest");
  reshape.attributes = {{"allowzero", AttrKind::kInt, false, "1: a 0 in the shape is an extent of 0; default 0"}};
  registry.add(reshape);
  OpDef flatten = def("Flatten", 1, infer_flatten, "Two axes: the product of those before `axis`, and of the rest");
  flatten.attributes = {{"axis", AttrKind::kInt, false, "first axis of the second product; default 1"}};
  registry.add(flatten);
  OpDef squeeze = def("Squeeze", 1, infer_squeeze, "Removes axes of extent 1: those in input 1, or all");
  squeeze.max_inputs = 2;
  registry.add(squeeze);
  registry.add(def("Unsqueeze", 2, infer_unsqueeze, "Inserts axes of extent 1 at the places in input 1"));
  registry.add(def("Identity", 1, like_first, "The operand itself"));
  OpDef dropout = def("Dropout", 1, infer_dropout, "The operand itself: inference only");
  dropout.max_inputs = 3;
  dropout.max_outputs = 2;
  dropout.attributes = {{"seed", AttrKind::kInt, false, "unused"},
                        {"ratio", AttrKind::kFloat, false, "unused, older opsets"}};
  registry.add(dropout);
}

}  // namespace openrknn::ops
