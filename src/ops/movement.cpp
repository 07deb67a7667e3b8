// Operators that move elements without changing them.
#include "kernels/geometry.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_concat(const InferInput& in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.inputs.size(); ++i) {
    if (!in.has(i)) return infer_error(fmt::format("operand {}", i), "it is absent");
    OPENRKNN_CHECK_OK(same_dtype(in, 0, i));
    shapes.push_back(in.shape(i));
  }
  return computed(in.dtype(0), geometry::concat(shapes, in.attributes.int_or("axis", 0)));
}

Types infer_split(const InferInput& in) {
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", 0), in.shape(0).rank()));
  const int64_t wanted = in.attributes.int_or("num_outputs", static_cast<int64_t>(in.outputs));
  if (!in.has(1) && wanted != static_cast<int64_t>(in.outputs)) {
    return infer_error("num_outputs", fmt::format("{} for a node with {} results", wanted, in.outputs));
  }
  if (!known(in, 1)) return std::vector<TensorType>(in.outputs, TensorType{in.dtype(0), std::nullopt});
  OPENRKNN_TRY(const auto sizes, geometry::split(in.shape(0), axis, in.ints(1), in.outputs));
  std::vector<TensorType> types;
  for (const int64_t size : sizes) {
    Shape shape = in.shape(0);
    shape.set(axis, size);
    types.push_back({in.dtype(0), shape});
  }
  return types;
}

Types infer_slice(const InferInput& in) {
  for (size_t i = 1; i < 5; ++i) {
    if (!known(in, i)) return one(in.dtype(0), std::nullopt);
  }
  OPENRKNN_TRY(const auto plan, geometry::slice(in.shape(0), *in.ints(1), *in.ints(2), in.ints(3), in.ints(4)));
  return one(in.dtype(0), plan.shape);
}

Types infer_pad(const InferInput& in) {
  OPENRKNN_CHECK_OK(geometry::pad_mode(in.attributes.string_or("mode", "constant")));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  if (!known(in, 1) || !known(in, 3)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const auto plan, geometry::pad(in.shape(0), *in.ints(1), in.ints(3)));
  return one(in.dtype(0), plan.shape);
}

Types infer_transpose(const InferInput& in) {
  OPENRKNN_TRY(const auto perm, geometry::permutation(in.shape(0).rank(), in.attributes.ints_or("perm", {})));
  return one(in.dtype(0), geometry::permuted(in.shape(0), perm));
}

Types infer_tile(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), geometry::tile(in.shape(0), *in.ints(1)));
}

Types infer_expand(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), geometry::expand(in.shape(0), *in.ints(1)));
}

}  // namespace

void register_movement(Registry& registry) {
  registry.add({.name = "Concat",
                .op_class = OpClass::kDataMovement,
                .max_inputs = -1,
                .attributes = {{"axis", AttrKind::kInt, true, "axis along which the operands are joined"}},
                .infer = infer_concat,
                .doc = "Joins tensors along one axis"});
  registry.add(
      {.name = "Split",
       .op_class = OpClass::kDataMovement,
       .max_inputs = 2,
       .max_outputs = -1,
       .attributes = {{"axis", AttrKind::kInt, false, "axis that is cut; default 0"},
                      {"num_outputs", AttrKind::kInt, false, "number of equal parts when input 1 (sizes) is absent"}},
       .infer = infer_split,
       .doc = "Cuts a tensor into parts along one axis"});
  registry.add({.name = "Slice",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 3,
                .max_inputs = 5,
                .infer = infer_slice,
                .doc = "Takes a strided box: inputs starts, ends, axes, steps; steps may be negative"});
  registry.add({.name = "Pad",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 2,
                .max_inputs = 4,
                .attributes = {{"mode", AttrKind::kString, false, "constant (default), reflect, edge or wrap"}},
                .infer = infer_pad,
                .doc = "Adds (or, negative, removes) elements around a tensor: inputs pads, value, axes"});
  registry.add({.name = "Transpose",
                .op_class = OpClass::kDataMovement,
                .attributes = {{"perm", AttrKind::kInts, false, "order of the axes; default: reversed"}},
                .infer = infer_transpose,
                .doc = "Permutes the axes"});
  registry.add({.name = "Tile",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_tile,
                .doc = "Repeats a tensor along every axis: input 1 gives the counts"});
  registry.add({.name = "Expand",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_expand,
                .doc = "Broadcasts a tensor with the shape in input 1"});
}

}  // namespace openrknn::ops
