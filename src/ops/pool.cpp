// Pools over windows and over whole planes.
#include "kernels/window.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_pool(const InferInput& in) {
  const Shape& x = in.shape(0);
  if (x.rank() < 3) return infer_error("operand 0", fmt::format("shape {} has no spatial axis", x.to_string()));
  const auto kernel = in.attributes.ints_or("kernel_shape", {});
  OPENRKNN_TRY(const auto axes, window_axes(in.attributes, x.dims().subspan(2), kernel));
  std::vector<int64_t> dims = {x[0], x[1]};
  for (const WindowAxis& axis : axes) dims.push_back(axis.out);
  return computed(in.dtype(0), Shape::make(dims));
}

Types infer_max_pool(const InferInput& in) {
  OPENRKNN_TRY(auto types, infer_pool(in));
  types.push_back({DType::kInt64, types[0].shape});
  return types;
}

Types infer_global(const InferInput& in) {
  Shape shape = in.shape(0);
  if (shape.rank() < 3) return infer_error("operand 0", fmt::format("shape {} has no spatial axis", shape.to_string()));
  for (int i = 2; i < shape.rank(); ++i) shape.set(i, 1);
  return one(in.dtype(0), shape);
}

Status check_order(const InferInput& in) {
  const int64_t p = in.attributes.int_or("p", 2);
  if (p < 1) return infer_error("attribute 'p'", fmt::format("{}, 1 or more expected", p));
  return {};
}

Types infer_lp_pool(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_order(in));
  return infer_pool(in);
}

Types infer_global_lp_pool(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_order(in));
  return infer_global(in);
}

std::vector<AttrSpec> window_attributes() {
  return {{"auto_pad", AttrKind::kString, false, "NOTSET (default), SAME_UPPER, SAME_LOWER or VALID"},
          {"ceil_mode", AttrKind::kInt, false, "1: a last window may stick out at the end; default 0"},
          {"dilations", AttrKind::kInts, false, "distance of window positions per axis, default 1"},
          {"kernel_shape", AttrKind::kInts, true, "extents of the window"},
          {"pads", AttrKind::kInts, false, "padding at the begin of all axes, then at the end, default 0"},
          {"strides", AttrKind::kInts, false, "step of the window per axis, default 1"}};
}

}  // namespace

void register_pool(Registry& registry) {
  std::vector<AttrSpec> max_attributes = window_attributes();
  max_attributes.push_back(
      {"storage_order", AttrKind::kInt, false, "of the indices result: 1: column major; default 0"});
  std::vector<AttrSpec> average_attributes = window_attributes();
  average_attributes.push_back({"count_include_pad", AttrKind::kInt, false, "1: the mean counts padding; default 0"});
  registry.add({.name = "MaxPool",
                .op_class = OpClass::kCompute,
                .max_outputs = 2,
                .attributes = std::move(max_attributes),
                .infer = infer_max_pool,
                .doc = "Largest element of a window; padding never wins; result 1 holds positions in the tensor"});
  registry.add({.name = "AveragePool",
                .op_class = OpClass::kCompute,
                .attributes = std::move(average_attributes),
                .infer = infer_pool,
                .doc = "Mean of a window"});
  registry.add({.name = "GlobalAveragePool",
                .op_class = OpClass::kCompute,
                .infer = infer_global,
                .doc = "Mean over all spatial positions"});
  registry.add({.name = "GlobalMaxPool",
                .op_class = OpClass::kCompute,
                .infer = infer_global,
                .doc = "Largest element over all spatial positions"});
  const AttrSpec order{"p", AttrKind::kInt, false, "order of the norm, default 2"};
  std::vector<AttrSpec> lp_attributes = window_attributes();
  lp_attributes.push_back(order);
  registry.add({.name = "LpPool",
                .op_class = OpClass::kCompute,
                .attributes = std::move(lp_attributes),
                .infer = infer_lp_pool,
                .doc = "Root p of the sum of p-th powers of magnitudes of a window"});
  registry.add({.name = "GlobalLpPool",
                .op_class = OpClass::kCompute,
                .attributes = {order},
                .infer = infer_global_lp_pool,
                .doc = "Root p of the sum of p-th powers of magnitudes over all spatial positions"});
}

}  // namespace openrknn::ops
