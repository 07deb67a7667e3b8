// Operators whose result's extents depend on data: known when the operands are, in the golden run always.
#include "kernels/cpu/support_select.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

bool all_known(const InferInput& in) {
  for (size_t i = 0; i < in.inputs.size(); ++i) {
    if (!known(in, i)) return false;
  }
  return true;
}

Types infer_boxes(const InferInput& in) {
  if (!all_known(in)) return one(DType::kInt64, std::nullopt);
  std::vector<TensorView> views;
  for (size_t i = 0; i < in.inputs.size(); ++i) views.push_back(in.has(i) ? in.constants[i]->view() : TensorView{});
  OPENRKNN_TRY(const auto selected, cpu::select_boxes(in.attributes, views));
  return one(DType::kInt64, Shape{static_cast<int64_t>(selected.size() / 3), 3});
}

Types infer_unique(const InferInput& in) {
  std::vector<TensorType> types(4, TensorType{DType::kInt64, std::nullopt});
  types[0].dtype = in.dtype(0);
  const int rank = in.shape(0).rank();
  if (in.attributes.has("axis")) OPENRKNN_CHECK_OK(normalize_axis(in.attributes.int_or("axis", 0), rank));
  if (known(in, 0)) {
    OPENRKNN_TRY(const auto groups, cpu::unique_groups(in.attributes, in.constants[0]->view()));
    const auto count = static_cast<int64_t>(groups.first.size());
    types[0].shape = cpu::selected_shape(in.shape(0), groups.axis, count);
    types[1].shape = Shape{count};
    types[2].shape = Shape{static_cast<int64_t>(groups.group.size())};
    types[3].shape = Shape{count};
  }
  types.resize(in.outputs);
  return types;
}

Types infer_compress(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const auto kept, cpu::kept_positions(in.attributes, in.shape(0), in.constants[1]->view()));
  return one(in.dtype(0), cpu::selected_shape(in.shape(0), kept.axis, static_cast<int64_t>(kept.positions.size())));
}

}  // namespace

void register_subset(Registry& registry) {
  registry.add(
      {.name = "NonMaxSuppression",
       .op_class = OpClass::kCompute,
       .min_inputs = 2,
       .max_inputs = 5,
       .attributes = {{"center_point_box", AttrKind::kInt, false, "1: boxes are middle and extent; default 0"}},
       .infer = infer_boxes,
       .doc = "The best boxes of every class that do not overlap; the shape depends on data"});
  registry.add({.name = "Unique",
                .op_class = OpClass::kCompute,
                .max_outputs = 4,
                .attributes = {{"axis", AttrKind::kInt, false, "axis of the slices; default: single elements"},
                               {"sorted", AttrKind::kInt, false, "0: in the order of appearance; default 1"}},
                .infer = infer_unique,
                .doc = "Distinct elements or slices; the shape depends on data"});
  registry.add({.name = "Compress",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 2,
                .max_inputs = 2,
                .attributes = {{"axis", AttrKind::kInt, false, "axis of the slices; default: single elements"}},
                .infer = infer_compress,
                .doc = "Elements or slices where the condition in input 1 is true; the shape depends on data"});
}

}  // namespace openrknn::ops
