// Operators that look for, mark or accumulate elements.
#include <algorithm>

#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_top_k(const InferInput& in) {
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -1), in.shape(0).rank()));
  if (!known(in, 1)) return std::vector<TensorType>{{in.dtype(0), std::nullopt}, {DType::kInt64, std::nullopt}};
  const auto k = *in.ints(1);
  if (k.size() != 1 || k[0] < 0 || k[0] > in.shape(0)[axis])
    return infer_error("K", fmt::format("it must lie in 0..{}", in.shape(0)[axis]));
  Shape shape = in.shape(0);
  shape.set(axis, k[0]);
  return std::vector<TensorType>{{in.dtype(0), shape}, {DType::kInt64, shape}};
}

Types infer_non_zero(const InferInput& in) {
  if (!known(in, 0)) return one(DType::kInt64, std::nullopt);
  const auto values = to_doubles(in.constants[0]->view());
  const auto count =
      static_cast<int64_t>(std::count_if(values.begin(), values.end(), [](double v) { return v != 0.0; }));
  return one(DType::kInt64, Shape{in.shape(0).rank(), count});
}

Types infer_one_hot(const InferInput& in) {
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -1), in.shape(0).rank() + 1));
  if (in.shape(2).elements() != 2) return infer_error("values", "two elements expected: off and on");
  if (!known(in, 1)) return one(in.dtype(2), std::nullopt);
  const auto depth = *in.ints(1);
  if (depth.size() != 1) return infer_error("depth", "it is no scalar");
  std::vector<int64_t> dims = in.shape(0).to_vector();
  dims.insert(dims.begin() + axis, depth[0]);
  return computed(in.dtype(2), Shape::make(dims));
}

Types infer_trilu(const InferInput& in) {
  if (in.shape(0).rank() < 2)
    return infer_error("operand 0", fmt::format("rank {}, 2 or more expected", in.shape(0).rank()));
  return like_first(in);
}

}  // namespace

void register_select(Registry& registry) {
  OpDef top = compute_def("TopK", 2, 2, infer_top_k,
                          "The K largest or smallest along an axis, and where they are; ties: lower index first",
                          {{"axis", AttrKind::kInt, false, "default -1"},
                           {"largest", AttrKind::kInt, false, "0: the smallest; default 1"},
                           {"sorted", AttrKind::kInt, false, "results are always sorted"}});
  top.max_outputs = 2;
  registry.add(top);
  registry.add(compute_def("NonZero", 1, 1, infer_non_zero,
                           "Indices of the elements that are not 0; the shape depends on data"));
  registry.add(compute_def("OneHot", 3, 3, infer_one_hot, "One more axis, `on` at the index and `off` elsewhere",
                           {{"axis", AttrKind::kInt, false, "place of the new axis; default -1"}}));
  registry.add(compute_def("Trilu", 1, 2, infer_trilu,
                           "The upper or lower triangle of matrices; input 1 shifts the diagonal",
                           {{"upper", AttrKind::kInt, false, "0: the lower; default 1"}}));
  for (const std::string_view name : {"CumSum", "CumProd"}) {
    registry.add(compute_def(
        name, 2, 2, like_first,
        name == "CumSum" ? "Running sums along the axis in input 1" : "Running products along the axis in input 1",
        {{"exclusive", AttrKind::kInt, false, "1: without the element itself; default 0"},
         {"reverse", AttrKind::kInt, false, "1: from the end; default 0"}}));
  }
}

}  // namespace openrknn::ops
