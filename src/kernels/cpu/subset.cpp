// NonMaxSuppression, Unique, Compress: results whose extents depend on the data.
#include <cstring>
#include <vector>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/cpu/support_select.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

Status write_ints(const KernelArgs& args, size_t i, const Shape& shape, const std::vector<int64_t>& values) {
  if (!args.has_output(i)) return {};
  OPENRKNN_CHECK_OK(require_output(args, i, DType::kInt64, shape));
  if (!values.empty()) std::memcpy(args.outputs[i].data, values.data(), values.size() * sizeof(int64_t));
  return {};
}

Status non_max_suppression(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_TRY(const auto selected, select_boxes(args.attributes, args.inputs));
  return write_ints(args, 0, Shape{static_cast<int64_t>(selected.size() / 3), 3}, selected);
}

// Copies the elements, or the slices along the axis, at `positions`.
Status gather_positions(const KernelArgs& args, const std::optional<int>& axis, const std::vector<int64_t>& positions) {
  const TensorView& x = args.inputs[0];
  OPENRKNN_CHECK_OK(
      require_output(args, 0, x.dtype, selected_shape(x.shape, axis, static_cast<int64_t>(positions.size()))));
  if (args.outputs[0].elements() == 0) return {};
  std::vector<std::vector<int64_t>> tables;
  const Shape from = axis ? x.shape : Shape{x.elements()};
  for (int i = 0; i < from.rank(); ++i) {
    if (i == axis.value_or(0)) {
      tables.push_back(positions);
      continue;
    }
    std::vector<int64_t> all(static_cast<size_t>(from[i]));
    for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int64_t>(k);
    tables.push_back(std::move(all));
  }
  copy_by_tables(x.data, from, tables, args.outputs[0].data, dtype_size(x.dtype));
  return {};
}

Status unique(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1, 0));
  OPENRKNN_CHECK_OK(require_movable(args));
  OPENRKNN_TRY(const UniqueGroups groups, unique_groups(args.attributes, args.inputs[0]));
  if (args.has_output(0)) OPENRKNN_CHECK_OK(gather_positions(args, groups.axis, groups.first));
  const Shape per_group{static_cast<int64_t>(groups.first.size())};
  OPENRKNN_CHECK_OK(write_ints(args, 1, per_group, groups.first));
  OPENRKNN_CHECK_OK(write_ints(args, 2, Shape{static_cast<int64_t>(groups.group.size())}, groups.group));
  return write_ints(args, 3, per_group, groups.counts);
}

Status compress(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  OPENRKNN_TRY(const KeptPositions kept, kept_positions(args.attributes, args.inputs[0].shape, args.inputs[1]));
  return gather_positions(args, kept.axis, kept.positions);
}

}  // namespace

void register_subset(Registry& registry) {
  registry.add("NonMaxSuppression", non_max_suppression);
  registry.add("Unique", unique);
  registry.add("Compress", compress);
}

}  // namespace openrknn::cpu
