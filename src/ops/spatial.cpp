// Operators that sample at computed positions, pool by regions, or put windows back.
#include "kernels/spatial_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_grid_sample(const InferInput& in) {
  return computed(in.dtype(0), grid_sample_shape(in.shape(0), in.shape(1)));
}

Types infer_affine_grid(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  return computed(in.dtype(0), affine_grid_shape(in.shape(0), *in.ints(1)));
}

Types infer_roi_align(const InferInput& in) {
  return computed(in.dtype(0), roi_align_shape(in.attributes, in.shape(0), in.shape(1), in.shape(2)));
}

Types infer_max_roi_pool(const InferInput& in) {
  return computed(in.dtype(0), max_roi_pool_shape(in.attributes, in.shape(0), in.shape(1)));
}

Types infer_unpool(const InferInput& in) {
  if (!known(in, 2)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const UnpoolPlan plan, unpool_plan(in.attributes, in.shape(0), in.shape(1), in.ints(2)));
  return one(in.dtype(0), plan.output);
}

Types infer_col2im(const InferInput& in) {
  if (!known(in, 1) || !known(in, 2)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const Col2ImPlan plan, col2im_plan(in.attributes, in.shape(0), *in.ints(1), *in.ints(2)));
  return one(in.dtype(0), plan.output);
}

Types infer_center_crop_pad(const InferInput& in) {
  if (!known(in, 1)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const CenterPlan plan, center_plan(in.attributes, in.shape(0), *in.ints(1)));
  return one(in.dtype(0), plan.output);
}

Types infer_det(const InferInput& in) {
  const Shape& x = in.shape(0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2))
    return infer_error("operand 0", fmt::format("{} holds no square matrices", x.to_string()));
  return computed(in.dtype(0), Shape::make(x.dims().first(static_cast<size_t>(x.rank()) - 2)));
}

Types infer_deform_conv(const InferInput& in) {
  const auto given = [&](size_t i) { return in.has(i) ? &in.shape(i) : nullptr; };
  OPENRKNN_TRY(const DeformConvPlan plan,
               deform_conv_plan(in.attributes, in.shape(0), in.shape(1), in.shape(2), given(3), given(4)));
  return one(in.dtype(0), plan.output);
}

int64_t deform_conv_macs(const InferInput& in, std::span<const TensorType> outputs) {
  return outputs[0].shape->elements() * in.shape(1).elements(1, in.shape(1).rank());
}

constexpr AttrSpec kStrides{"strides", AttrKind::kInts, false, "step of the window per axis, default 1"};
constexpr AttrSpec kDilations{"dilations", AttrKind::kInts, false, "distance of taps per axis, default 1"};
constexpr AttrSpec kPads{"pads", AttrKind::kInts, false,
                         "padding at the begin of all axes, then at the end, default 0"};

void register_samplers(Registry& registry) {
  registry.add(compute_def("GridSample", 2, 2, infer_grid_sample, "Samples operand 0 at the positions in operand 1",
                           {{"align_corners", AttrKind::kInt, false, "1: -1 and 1 are centres of elements; default 0"},
                            {"mode", AttrKind::kString, false, "linear (default), nearest or cubic"},
                            {"padding_mode", AttrKind::kString, false, "zeros (default), border or reflection"}}));
  registry.add(
      compute_def("AffineGrid", 2, 2, infer_affine_grid, "Positions for GridSample: matrices times a regular grid",
                  {{"align_corners", AttrKind::kInt, false, "1: -1 and 1 are centres of elements; default 0"}}));
  registry.add(compute_def(
      "RoiAlign", 3, 3, infer_roi_align, "Pools regions at interpolated points: operands x, rois, batch_indices",
      {{"coordinate_transformation_mode", AttrKind::kString, false, "half_pixel (default) or output_half_pixel"},
       {"mode", AttrKind::kString, false, "avg (default) or max"},
       {"output_height", AttrKind::kInt, false, "bins of a region, default 1"},
       {"output_width", AttrKind::kInt, false, "bins of a region, default 1"},
       {"sampling_ratio", AttrKind::kInt, false, "points of a bin per axis; default 0: as many as elements"},
       {"spatial_scale", AttrKind::kFloat, false, "factor of the regions' coordinates, default 1"}}));
  registry.add(
      compute_def("MaxRoiPool", 2, 2, infer_max_roi_pool, "Largest element of every bin of regions",
                  {{"pooled_shape", AttrKind::kInts, true, "bins of a region: height, width"},
                   {"spatial_scale", AttrKind::kFloat, false, "factor of the regions' coordinates, default 1"}}));
}

}  // namespace

void register_spatial(Registry& registry) {
  register_samplers(registry);
  registry.add(compute_def("MaxUnpool", 2, 3, infer_unpool,
                           "Elements of operand 0 at the places that MaxPool found them",
                           {{"kernel_shape", AttrKind::kInts, true, "extents of the window"}, kPads, kStrides}));
  registry.add(compute_def("Col2Im", 3, 3, infer_col2im,
                           "Adds columns of windows up to an image: operands x, image, block",
                           {kDilations, kPads, kStrides}));
  OpDef crop = compute_def("CenterCropPad", 2, 2, infer_center_crop_pad,
                           "Cuts or pads around the middle to the extents in operand 1",
                           {{"axes", AttrKind::kInts, false, "axes that operand 1 speaks of; default: all"}});
  crop.op_class = OpClass::kDataMovement;
  registry.add(std::move(crop));
  registry.add(compute_def("Det", 1, 1, infer_det, "Determinants of the matrices of the last two axes"));
  OpDef deform = compute_def(
      "DeformConv", 3, 5, infer_deform_conv, "Convolution with moved taps: operands x, weights, offsets, bias, mask",
      {kDilations,
       {"group", AttrKind::kInt, false, "groups of channels, default 1"},
       {"kernel_shape", AttrKind::kInts, false, "extents of the window, default those of the weights"},
       {"offset_group", AttrKind::kInt, false, "groups of channels with offsets of their own, default 1"},
       kPads,
       kStrides});
  deform.macs = deform_conv_macs;
  registry.add(std::move(deform));
}

}  // namespace openrknn::ops
