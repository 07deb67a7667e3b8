// Gather and scatter by index.
#include "kernels/geometry.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Status integer_indices(const InferInput& in) {
  if (is_integer(in.dtype(1))) return {};
  return infer_error("indices", fmt::format("type {}, an integer type is needed", dtype_name(in.dtype(1))));
}

Types infer_gather(const InferInput& in) {
  OPENRKNN_CHECK_OK(integer_indices(in));
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", 0), in.shape(0).rank()));
  return computed(in.dtype(0), geometry::gather(in.shape(0), in.shape(1), axis));
}

Types infer_gather_elements(const InferInput& in) {
  OPENRKNN_CHECK_OK(integer_indices(in));
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", 0), in.shape(0).rank()));
  OPENRKNN_CHECK_OK(geometry::check_elementwise_indices(in.shape(0), in.shape(1), axis));
  return one(in.dtype(0), in.shape(1));
}

Types infer_gather_nd(const InferInput& in) {
  OPENRKNN_CHECK_OK(integer_indices(in));
  return computed(in.dtype(0), geometry::gather_nd(in.shape(0), in.shape(1), in.attributes.int_or("batch_dims", 0)));
}

Types infer_scatter_nd(const InferInput& in) {
  OPENRKNN_CHECK_OK(integer_indices(in));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  OPENRKNN_CHECK_OK(geometry::check_scatter_nd(in.shape(0), in.shape(1), in.shape(2)));
  return like_first(in);
}

Types infer_scatter_elements(const InferInput& in) {
  OPENRKNN_CHECK_OK(integer_indices(in));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", 0), in.shape(0).rank()));
  OPENRKNN_CHECK_OK(geometry::check_elementwise_indices(in.shape(0), in.shape(1), axis));
  if (!(in.shape(1) == in.shape(2))) return infer_error("updates", "its shape is not that of indices");
  return like_first(in);
}

Types infer_tensor_scatter(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -2), in.shape(0).rank()));
  OPENRKNN_CHECK_OK(geometry::check_cache_update(in.shape(0), in.shape(1), axis));
  return like_first(in);
}

OpDef def(std::string_view name, int inputs, Infer infer, std::string_view doc, std::vector<AttrSpec> attributes) {
  return {.name = name,
          .op_class = OpClass::kDataMovement,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .attributes = std::move(attributes),
          .infer = infer,
          .doc = doc};
}

}  // namespace

void register_gather(Registry& registry) {
  const AttrSpec axis{"axis", AttrKind::kInt, false, "axis that is indexed; default 0"};
  const AttrSpec reduction{"reduction", AttrKind::kString, false, "none (default), add, mul, max or min"};
  registry.add(def("Gather", 2, infer_gather, "Slices of input 0 at the indices in input 1", {axis}));
  registry.add(def("GatherElements", 2, infer_gather_elements, "One element per index along an axis", {axis}));
  registry.add(def("GatherND", 2, infer_gather_nd, "Slices at index tuples",
                   {{"batch_dims", AttrKind::kInt, false, "leading axes that run along; default 0"}}));
  registry.add(def("ScatterND", 3, infer_scatter_nd, "Input 0 with input 2 written at the index tuples in input 1",
                   {reduction}));
  registry.add(def("ScatterElements", 3, infer_scatter_elements,
                   "Input 0 with elements of input 2 written at indices along an axis", {axis, reduction}));
  OpDef cache = def("TensorScatter", 3, infer_tensor_scatter,
                    "Input 0 with input 1 written along an axis, from the position in input 2 of every sample on",
                    {{"axis", AttrKind::kInt, false, "axis that is written along; default -2"},
                     {"mode", AttrKind::kString, false, "linear (default) or circular: past the end at the begin"}});
  cache.min_inputs = 2;
  registry.add(std::move(cache));
}

}  // namespace openrknn::ops
