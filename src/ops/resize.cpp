#include "kernels/resize.hpp"

#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

// Whether an operand is there and has elements: older models pass an empty tensor for an absent one.
bool given(const InferInput& in, size_t i) { return in.has(i) && in.shape(i).elements() > 0; }

Types infer_resize(const InferInput& in) {
  OPENRKNN_TRY(const ResizeSettings settings, resize_settings(in.attributes));
  const bool crops = settings.coordinate == CoordinateMode::kCropAndResize;
  if ((given(in, 2) && !known(in, 2)) || (given(in, 3) && !known(in, 3))) return one(in.dtype(0), std::nullopt);
  const auto floats = [&](size_t i) {
    std::vector<float> made;
    if (!given(in, i)) return made;
    for (const double v : to_doubles(in.constants[i]->view())) made.push_back(static_cast<float>(v));
    return made;
  };
  // The shape does not depend on what the region holds.
  std::vector<float> roi;
  if (crops && given(in, 1))
    roi = known(in, 1) ? floats(1) : std::vector<float>(static_cast<size_t>(in.shape(1).elements()), 0.0F);
  OPENRKNN_TRY(const auto plan,
               plan_resize(in.shape(0), settings, roi, floats(2), given(in, 3) ? *in.ints(3) : std::vector<int64_t>{}));
  return one(in.dtype(0), plan.shape);
}

}  // namespace

void register_resize(Registry& registry) {
  registry.add(
      {.name = "Resize",
       .op_class = OpClass::kCompute,
       .min_inputs = 1,
       .max_inputs = 4,
       .attributes = {{"mode", AttrKind::kString, false, "nearest (default), linear or cubic"},
                      {"coordinate_transformation_mode", AttrKind::kString, false,
                       "half_pixel (default), half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
                       "tf_crop_and_resize, tf_half_pixel_for_nn"},
                      {"nearest_mode", AttrKind::kString, false,
                       "round_prefer_floor (default), round_prefer_ceil, floor, ceil"},
                      {"antialias", AttrKind::kInt, false, "1: widen the filter when shrinking; default 0"},
                      {"axes", AttrKind::kInts, false, "axes that scales, sizes and roi speak of; default: all"},
                      {"cubic_coeff_a", AttrKind::kFloat, false, "default -0.75"},
                      {"exclude_outside", AttrKind::kInt, false, "1: no weight outside the tensor; default 0"},
                      {"extrapolation_value", AttrKind::kFloat, false,
                       "outside the tensor with tf_crop_and_resize; default 0"},
                      {"keep_aspect_ratio_policy", AttrKind::kString, false,
                       "stretch (default), not_larger, not_smaller; with sizes"}},
       .infer = infer_resize,
       .doc = "Resamples a tensor: inputs roi, scales, sizes, of which scales or sizes is given"});
}

}  // namespace openrknn::ops
