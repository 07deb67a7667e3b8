// Shapes of the operators that sample, pool by regions, or fold spatial axes; shared by shape inference and the
// kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"
#include "kernels/window.hpp"

namespace openrknn {

// x [N, C, spatial...], grid [N, positions..., one coordinate a spatial axis].
Result<Shape> grid_sample_shape(const Shape& x, const Shape& grid);

// theta [N, 2, 3] or [N, 3, 4]; size: extents of the tensor that the grid is for.
Result<Shape> affine_grid_shape(const Shape& theta, const std::vector<int64_t>& size);

// rois [R, 4], batch [R].
Result<Shape> roi_align_shape(const Attributes& attributes, const Shape& x, const Shape& rois, const Shape& batch);

// rois [R, 5]: the number of the sample, then the corners.
Result<Shape> max_roi_pool_shape(const Attributes& attributes, const Shape& x, const Shape& rois);

struct UnpoolPlan {
  Shape indexed;  // the tensor that the indices speak of
  Shape output;
};
Result<UnpoolPlan> unpool_plan(const Attributes& attributes, const Shape& x, const Shape& indices,
                               const std::optional<std::vector<int64_t>>& output_shape);

struct Col2ImPlan {
  std::vector<WindowAxis> axes;  // three
  int64_t channels = 0;
  int64_t taps = 0;     // positions of the window
  int64_t columns = 0;  // windows
  Shape output;
};
Result<Col2ImPlan> col2im_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& image,
                               const std::vector<int64_t>& block);

struct DeformConvPlan {
  std::vector<WindowAxis> axes;  // as many as there are spatial axes
  int64_t group = 1;
  int64_t offset_group = 1;
  int64_t taps = 1;
  Shape output;
};
// `bias` and `mask` may be null.
Result<DeformConvPlan> deform_conv_plan(const Attributes& attributes, const Shape& x, const Shape& weights,
                                        const Shape& offset, const Shape* bias, const Shape* mask);

// Per axis: how many elements are cut in front of the operand, or put in front of it.
struct CenterPlan {
  Shape output;
  std::vector<int64_t> cut;
  std::vector<int64_t> before;
};
Result<CenterPlan> center_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& wanted);

}  // namespace openrknn
