#include "kernels/spatial_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/checked.hpp"

namespace openrknn {
namespace {

Error unfit(std::string where, std::string why) {
  return {ErrorCode::kShape, "the node's operands do not fit", std::move(where), std::move(why), "repair the model"};
}

Status require_rank(const Shape& shape, int rank, const char* operand) {
  if (shape.rank() == rank) return {};
  return unfit(operand, fmt::format("shape {}, rank {} expected", shape.to_string(), rank));
}

}  // namespace

Result<Shape> grid_sample_shape(const Shape& x, const Shape& grid) {
  const int spatial = x.rank() - 2;
  if (spatial < 1) return unfit("operand 0", fmt::format("shape {} has no spatial axis", x.to_string()));
  if (grid.rank() != x.rank() || grid[0] != x[0] || grid.dim(-1) != spatial) {
    return unfit("operand 1", fmt::format("grid {} for {}", grid.to_string(), x.to_string()));
  }
  std::vector<int64_t> dims = {x[0], x[1]};
  for (int i = 1; i <= spatial; ++i) dims.push_back(grid[i]);
  OPENRKNN_TRY(const Shape output, Shape::make(dims));
  if (output.elements() > 0 && x.elements() == 0) return unfit("operand 0", "there is nothing to sample");
  return output;
}

Result<Shape> affine_grid_shape(const Shape& theta, const std::vector<int64_t>& size) {
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial != 2 && spatial != 3) return unfit("size", fmt::format("{} extents, 4 or 5 expected", size.size()));
  if (!(theta == Shape{size[0] < 0 ? 0 : size[0], spatial, spatial + 1})) {
    return unfit("operand 0",
                 fmt::format("shape {}, expected [{}, {}, {}]", theta.to_string(), size[0], spatial, spatial + 1));
  }
  std::vector<int64_t> dims = {size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(spatial);
  return Shape::make(dims);
}

Result<Shape> roi_align_shape(const Attributes& attributes, const Shape& x, const Shape& rois, const Shape& batch) {
  OPENRKNN_CHECK_OK(require_rank(x, 4, "operand 0"));
  OPENRKNN_CHECK_OK(require_rank(rois, 2, "operand 1"));
  if (rois[1] != 4) return unfit("operand 1", fmt::format("shape {}, 4 numbers a region expected", rois.to_string()));
  if (!(batch == Shape{rois[0]}))
    return unfit("operand 2", fmt::format("shape {} for {} regions", batch.to_string(), rois[0]));
  const int64_t height = attributes.int_or("output_height", 1);
  const int64_t width = attributes.int_or("output_width", 1);
  if (height < 1 || width < 1) return unfit("attribute 'output_height'", fmt::format("{} x {}", height, width));
  return Shape::make(std::vector<int64_t>{rois[0], x[1], height, width});
}

Result<Shape> max_roi_pool_shape(const Attributes& attributes, const Shape& x, const Shape& rois) {
  OPENRKNN_CHECK_OK(require_rank(x, 4, "operand 0"));
  OPENRKNN_CHECK_OK(require_rank(rois, 2, "operand 1"));
  if (rois[1] != 5) return unfit("operand 1", fmt::format("shape {}, 5 numbers a region expected", rois.to_string()));
  const auto pooled = attributes.ints_or("pooled_shape", {});
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return unfit("attribute 'pooled_shape'", "two extents of at least 1 expected");
  return Shape::make(std::vector<int64_t>{rois[0], x[1], pooled[0], pooled[1]});
}

Result<UnpoolPlan> unpool_plan(const Attributes& attributes, const Shape& x, const Shape& indices,
                               const std::optional<std::vector<int64_t>>& output_shape) {
  if (x.rank() < 3) return unfit("operand 0", fmt::format("shape {} has no spatial axis", x.to_string()));
  if (!(indices == x)) {
    return unfit("operand 1", fmt::format("shape {}, operand 0 has {}", indices.to_string(), x.to_string()));
  }
  const auto kernel = attributes.ints_or("kernel_shape", {});
  OPENRKNN_TRY(const auto axes, transposed_window_axes(attributes, x.dims().subspan(2), kernel));
  std::vector<int64_t> dims = {x[0], x[1]};
  for (const WindowAxis& axis : axes) dims.push_back(axis.out);
  UnpoolPlan plan;
  OPENRKNN_TRY(plan.indexed, Shape::make(dims));
  plan.output = plan.indexed;
  if (!output_shape) return plan;
  OPENRKNN_TRY(plan.output, Shape::make(*output_shape));
  bool fits = plan.output.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = plan.output[i] >= plan.indexed[i];
  if (!fits) {
    return unfit("output_shape", fmt::format("{}, the pool's input has at least {}", plan.output.to_string(),
                                             plan.indexed.to_string()));
  }
  return plan;
}

Result<Col2ImPlan> col2im_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& image,
                               const std::vector<int64_t>& block) {
  OPENRKNN_CHECK_OK(require_rank(x, 3, "operand 0"));
  OPENRKNN_TRY(auto axes, window_axes(attributes, image, block));
  Col2ImPlan plan;
  std::optional<int64_t> taps = 1;
  std::optional<int64_t> columns = 1;
  for (const WindowAxis& axis : axes) {
    taps = taps ? checked_mul(*taps, axis.kernel) : taps;
    columns = columns ? checked_mul(*columns, axis.out) : columns;
  }
  if (!taps || x[1] % *taps != 0) return unfit("operand 0", fmt::format("{} rows are no whole blocks", x[1]));
  if (!columns || x[2] != *columns) {
    return unfit("operand 0", fmt::format("{} columns, the windows of the image are {}", x[2], columns.value_or(-1)));
  }
  plan.taps = *taps;
  plan.columns = *columns;
  plan.channels = x[1] / *taps;
  std::vector<int64_t> dims = {x[0], plan.channels};
  dims.insert(dims.end(), image.begin(), image.end());
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  plan.axes = three_axes(std::move(axes));
  return plan;
}

namespace {

// [samples, channels, extents of the windows' positions]
bool is_field(const Shape& shape, int64_t samples, std::optional<int64_t> channels,
              const std::vector<WindowAxis>& axes) {
  if (shape.rank() != static_cast<int>(axes.size()) + 2) return false;
  bool fits = shape[0] == samples && channels && shape[1] == *channels;
  for (size_t i = 0; i < axes.size(); ++i) fits = fits && shape[static_cast<int>(i) + 2] == axes[i].out;
  return fits;
}

}  // namespace

Result<DeformConvPlan> deform_conv_plan(const Attributes& attributes, const Shape& x, const Shape& weights,
                                        const Shape& offset, const Shape* bias, const Shape* mask) {
  if (x.rank() < 3 || weights.rank() != x.rank()) {
    return unfit("operand 1", fmt::format("weights {} for {}", weights.to_string(), x.to_string()));
  }
  const auto taps = weights.dims().subspan(2);
  const std::vector<int64_t> kernel(taps.begin(), taps.end());
  if (attributes.ints_or("kernel_shape", kernel) != kernel)
    return unfit("attribute 'kernel_shape'", "it differs from the weights");
  DeformConvPlan plan;
  OPENRKNN_TRY(plan.axes, window_axes(attributes, x.dims().subspan(2), kernel));
  plan.group = attributes.int_or("group", 1);
  plan.offset_group = attributes.int_or("offset_group", 1);
  const bool grouped =
      plan.group >= 1 && x[1] % plan.group == 0 && weights[0] % plan.group == 0 && x[1] / plan.group == weights[1];
  if (!grouped) {
    return unfit("attribute 'group'",
                 fmt::format("{} groups of {} channels with weights {}", plan.group, x[1], weights.to_string()));
  }
  if (plan.offset_group < 1 || x[1] % plan.offset_group != 0) {
    return unfit("attribute 'offset_group'", fmt::format("{} groups of {} channels", plan.offset_group, x[1]));
  }
  plan.taps = weights.elements(2, weights.rank());
  const auto masks = checked_mul(plan.offset_group, plan.taps);
  const auto offsets = masks ? checked_mul(*masks, static_cast<int64_t>(plan.axes.size())) : masks;
  if (!is_field(offset, x[0], offsets, plan.axes)) {
    return unfit("operand 2", fmt::format("offsets {} do not fit the windows", offset.to_string()));
  }
  if (mask != nullptr && !is_field(*mask, x[0], masks, plan.axes)) {
    return unfit("operand 4", fmt::format("mask {} does not fit the windows", mask->to_string()));
  }
  if (bias != nullptr && !(*bias == Shape{weights[0]})) {
    return unfit("operand 3", fmt::format("bias {} for {} channels", bias->to_string(), weights[0]));
  }
  std::vector<int64_t> dims = {x[0], weights[0]};
  for (const WindowAxis& axis : plan.axes) dims.push_back(axis.out);
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  return plan;
}

Result<CenterPlan> center_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& wanted) {
  std::vector<int64_t> all(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const auto axes = attributes.ints_or("axes", all);
  if (axes.size() != wanted.size())
    return unfit("operand 1", fmt::format("{} extents for {} axes", wanted.size(), axes.size()));
  CenterPlan plan;
  plan.cut.assign(static_cast<size_t>(x.rank()), 0);
  plan.before.assign(static_cast<size_t>(x.rank()), 0);
  std::vector<int64_t> dims = x.to_vector();
  for (size_t i = 0; i < axes.size(); ++i) {
    OPENRKNN_TRY(const int axis, normalize_axis(axes[i], x.rank()));
    const auto a = static_cast<size_t>(axis);
    if (wanted[i] < 0) return unfit("operand 1", fmt::format("an extent of {}", wanted[i]));
    dims[a] = wanted[i];
    plan.cut[a] = std::max<int64_t>(0, x[axis] - wanted[i]) / 2;
    plan.before[a] = std::max<int64_t>(0, wanted[i] - x[axis]) / 2;
  }
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  return plan;
}

}  // namespace openrknn
