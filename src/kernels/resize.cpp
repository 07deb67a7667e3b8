#include "kernels/resize.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace openrknn {
namespace {

Error bad(std::string where, std::string why) {
  return Error{ErrorCode::kShape, "unusable Resize", std::move(where), std::move(why), "repair the model"};
}

template <typename E, size_t N>
Result<E> choice(const Attributes& attributes, std::string_view name,
                 const std::array<std::pair<std::string_view, E>, N>& known) {
  const std::string value = attributes.string_or(name, known[0].first);
  for (const auto& [text, e] : known) {
    if (text == value) return e;
  }
  return bad(std::string(name), fmt::format("'{}' is not known", value));
}

constexpr std::array kModes{std::pair{std::string_view("nearest"), ResizeMode::kNearest},
                            std::pair{std::string_view("linear"), ResizeMode::kLinear},
                            std::pair{std::string_view("cubic"), ResizeMode::kCubic}};
constexpr std::array kNearest{std::pair{std::string_view("round_prefer_floor"), NearestMode::kRoundPreferFloor},
                              std::pair{std::string_view("round_prefer_ceil"), NearestMode::kRoundPreferCeil},
                              std::pair{std::string_view("floor"), NearestMode::kFloor},
                              std::pair{std::string_view("ceil"), NearestMode::kCeil}};
constexpr std::array kCoordinates{
    std::pair{std::string_view("half_pixel"), CoordinateMode::kHalfPixel},
    std::pair{std::string_view("half_pixel_symmetric"), CoordinateMode::kHalfPixelSymmetric},
    std::pair{std::string_view("pytorch_half_pixel"), CoordinateMode::kPytorchHalfPixel},
    std::pair{std::string_view("align_corners"), CoordinateMode::kAlignCorners},
    std::pair{std::string_view("asymmetric"), CoordinateMode::kAsymmetric},
    std::pair{std::string_view("tf_crop_and_resize"), CoordinateMode::kCropAndResize},
    std::pair{std::string_view("tf_half_pixel_for_nn"), CoordinateMode::kTfHalfPixelForNn}};
constexpr std::array kPolicies{std::pair{std::string_view("stretch"), AspectPolicy::kStretch},
                               std::pair{std::string_view("not_larger"), AspectPolicy::kNotLarger},
                               std::pair{std::string_view("not_smaller"), AspectPolicy::kNotSmaller}};

Result<std::vector<int>> resized_axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int> made;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) made.push_back(i);
    return made;
  }
  for (const int64_t a : axes) {
    OPENRKNN_TRY(const int axis, normalize_axis(a, rank));
    if (std::find(made.begin(), made.end(), axis) != made.end())
      return bad("axes", fmt::format("axis {} is named twice", axis));
    made.push_back(axis);
  }
  return made;
}

constexpr float kLargestExtent = 16777216.0F * 64.0F;

Status apply_scales(std::vector<ResizeAxis>& plan, const std::vector<int>& axes, const std::vector<float>& scales) {
  if (scales.size() != axes.size())
    return bad("scales", fmt::format("{} values for {} axes", scales.size(), axes.size()));
  for (size_t k = 0; k < axes.size(); ++k) {
    ResizeAxis& axis = plan[static_cast<size_t>(axes[k])];
    const float extent = std::floor(static_cast<float>(axis.in) * scales[k]);
    if (!(scales[k] > 0.0F) || !(extent < kLargestExtent)) return bad("scales", fmt::format("scale {}", scales[k]));
    axis.scale = scales[k];
    axis.out = static_cast<int64_t>(extent);
  }
  return {};
}

Status apply_sizes(std::vector<ResizeAxis>& plan, const std::vector<int>& axes, const std::vector<int64_t>& sizes,
                   AspectPolicy policy) {
  if (sizes.size() != axes.size()) return bad("sizes", fmt::format("{} values for {} axes", sizes.size(), axes.size()));
  float common = policy == AspectPolicy::kNotSmaller ? 0.0F : std::numeric_limits<float>::infinity();
  for (size_t k = 0; k < axes.size(); ++k) {
    ResizeAxis& axis = plan[static_cast<size_t>(axes[k])];
    if (sizes[k] < 0 || axis.in == 0 || static_cast<float>(sizes[k]) > kLargestExtent)
      return bad("sizes", fmt::format("extent {} from {}", sizes[k], axis.in));
    axis.out = sizes[k];
    axis.scale = static_cast<float>(sizes[k]) / static_cast<float>(axis.in);
    common = policy == AspectPolicy::kNotSmaller ? std::max(common, axis.scale) : std::min(common, axis.scale);
  }
  if (policy == AspectPolicy::kStretch) return {};
  for (const int a : axes) {
    ResizeAxis& axis = plan[static_cast<size_t>(a)];
    axis.scale = common;
    axis.out = static_cast<int64_t>(std::floor(common * static_cast<float>(axis.in) + 0.5F));
  }
  return {};
}

// The kernels of linear and cubic (Keys) interpolation at distance d.
double filter(const ResizeSettings& settings, double d) {
  d = std::fabs(d);
  if (settings.mode == ResizeMode::kLinear) return std::max(0.0, 1.0 - d);
  const double a = settings.cubic_a;
  if (d < 1.0) return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
  if (d < 2.0) return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
  return 0.0;
}

}  // namespace

Result<ResizeSettings> resize_settings(const Attributes& attributes) {
  ResizeSettings s;
  OPENRKNN_TRY(s.mode, choice(attributes, "mode", kModes));
  OPENRKNN_TRY(s.nearest, choice(attributes, "nearest_mode", kNearest));
  OPENRKNN_TRY(s.coordinate, choice(attributes, "coordinate_transformation_mode", kCoordinates));
  OPENRKNN_TRY(s.policy, choice(attributes, "keep_aspect_ratio_policy", kPolicies));
  s.antialias = attributes.int_or("antialias", 0) != 0;
  s.exclude_outside = attributes.int_or("exclude_outside", 0) != 0;
  s.cubic_a = attributes.float_or("cubic_coeff_a", s.cubic_a);
  s.extrapolation = attributes.float_or("extrapolation_value", 0.0F);
  s.axes = attributes.ints_or("axes", {});
  return s;
}

Result<ResizePlan> plan_resize(const Shape& input, const ResizeSettings& settings, const std::vector<float>& roi,
                               const std::vector<float>& scales, const std::vector<int64_t>& sizes) {
  if (scales.empty() == sizes.empty()) return bad("scales", "either scales or sizes is needed, and not both");
  OPENRKNN_TRY(const auto axes, resized_axes(settings.axes, input.rank()));
  ResizePlan plan;
  for (const int64_t extent : input.dims()) {
    ResizeAxis axis;
    axis.in = axis.out = extent;
    plan.axes.push_back(axis);
  }
  if (!scales.empty()) {
    OPENRKNN_CHECK_OK(apply_scales(plan.axes, axes, scales));
  } else {
    OPENRKNN_CHECK_OK(apply_sizes(plan.axes, axes, sizes, settings.policy));
  }
  if (settings.coordinate == CoordinateMode::kCropAndResize) {
    if (roi.size() != 2 * axes.size()) return bad("roi", fmt::format("{} values for {} axes", roi.size(), axes.size()));
    for (size_t k = 0; k < axes.size(); ++k) {
      plan.axes[static_cast<size_t>(axes[k])].roi_start = roi[k];
      plan.axes[static_cast<size_t>(axes[k])].roi_end = roi[k + axes.size()];
    }
  }
  std::vector<int64_t> dims;
  for (const ResizeAxis& axis : plan.axes) {
    if (axis.in == 0 && axis.out > 0) return bad("operand 0", "an empty axis cannot grow");
    dims.push_back(axis.out);
  }
  OPENRKNN_TRY(plan.shape, Shape::make(dims));
  return plan;
}

float source_coordinate(CoordinateMode mode, const ResizeAxis& axis, int64_t x) {
  const auto position = static_cast<float>(x);
  const auto in = static_cast<float>(axis.in);
  const auto out = static_cast<float>(axis.out);
  switch (mode) {
    case CoordinateMode::kPytorchHalfPixel:
      if (axis.out == 1) return 0.0F;
      return (position + 0.5F) / axis.scale - 0.5F;
    case CoordinateMode::kHalfPixelSymmetric: {
      const float adjustment = out / (axis.scale * in);
      return in / 2.0F * (1.0F - adjustment) + (position + 0.5F) / axis.scale - 0.5F;
    }
    case CoordinateMode::kAlignCorners:
      return axis.out == 1 ? 0.0F : position * (in - 1.0F) / (out - 1.0F);
    case CoordinateMode::kAsymmetric:
      return position / axis.scale;
    case CoordinateMode::kTfHalfPixelForNn:
      return (position + 0.5F) / axis.scale;
    case CoordinateMode::kCropAndResize:
      if (axis.out == 1) return 0.5F * (axis.roi_start + axis.roi_end) * (in - 1.0F);
      return axis.roi_start * (in - 1.0F) + position * (axis.roi_end - axis.roi_start) * (in - 1.0F) / (out - 1.0F);
    default:
      return (position + 0.5F) / axis.scale - 0.5F;
  }
}

// The coordinate is computed in fp32, whose rounding moves a tie a little to either side: so near, it is a tie.
constexpr double kTie = 1e-6;

std::vector<int64_t> nearest_table(const ResizeSettings& settings, const ResizeAxis& axis) {
  std::vector<int64_t> table(static_cast<size_t>(axis.out));
  for (size_t i = 0; i < table.size(); ++i) {
    if (!axis.changes()) {
      table[i] = static_cast<int64_t>(i);
      continue;
    }
    // In double the halves added here are exact.
    const double x = source_coordinate(settings.coordinate, axis, static_cast<int64_t>(i));
    double nearest = 0.0;
    switch (settings.nearest) {
      case NearestMode::kRoundPreferFloor:
        nearest = std::ceil(x - 0.5 - kTie);
        break;
      case NearestMode::kRoundPreferCeil:
        nearest = std::floor(x + 0.5 + kTie);
        break;
      case NearestMode::kFloor:
        nearest = std::floor(x);
        break;
      case NearestMode::kCeil:
        nearest = std::ceil(x);
        break;
    }
    table[i] =
        static_cast<int64_t>(std::clamp(nearest == nearest ? nearest : 0.0, 0.0, static_cast<double>(axis.in - 1)));
  }
  return table;
}

ResizeTaps interpolation_taps(const ResizeSettings& settings, const ResizeAxis& axis) {
  // Smoothing widens the filter by the inverse of the scale.
  const double narrow = settings.antialias ? std::min(1.0, static_cast<double>(axis.scale)) : 1.0;
  const double reach = (settings.mode == ResizeMode::kLinear ? 1.0 : 2.0) / narrow;
  const auto last = static_cast<double>(axis.in - 1);
  const bool plain_linear = settings.mode == ResizeMode::kLinear && narrow == 1.0;
  // A filter wider than the axis meets the same edge again and again: the reach is bounded.
  const auto half = static_cast<int64_t>(std::ceil(std::min(reach, 2.0 * static_cast<double>(axis.in) + 2.0)));
  ResizeTaps made;
  made.taps = 2 * half;
  for (int64_t o = 0; o < axis.out; ++o) {
    double x = source_coordinate(settings.coordinate, axis, o);
    if (!(std::fabs(x) < 1e9)) x = 0.0;
    if (plain_linear) x = std::clamp(x, 0.0, last);
    const auto first = static_cast<int64_t>(std::floor(x)) - half + 1;
    std::vector<double> weights;
    double sum = 0.0;
    for (int64_t k = 0; k < made.taps; ++k) {
      const int64_t i = first + k;
      const bool outside = i < 0 || i >= axis.in;
      const double w =
          settings.exclude_outside && outside ? 0.0 : filter(settings, (static_cast<double>(i) - x) * narrow);
      made.indices.push_back(std::clamp<int64_t>(i, 0, axis.in - 1));
      weights.push_back(w);
      sum += w;
    }
    const bool normalize = (settings.exclude_outside || narrow != 1.0) && sum != 0.0;
    for (const double w : weights) made.weights.push_back(static_cast<float>(normalize ? w / sum : w));
  }
  return made;
}

std::vector<bool> outside_positions(const ResizeSettings& settings, const ResizeAxis& axis) {
  std::vector<bool> outside(static_cast<size_t>(axis.out), false);
  if (settings.coordinate != CoordinateMode::kCropAndResize || !axis.changes()) return outside;
  for (size_t i = 0; i < outside.size(); ++i) {
    const float x = source_coordinate(settings.coordinate, axis, static_cast<int64_t>(i));
    outside[i] = !(x >= 0.0F && x <= static_cast<float>(axis.in - 1));
  }
  return outside;
}

}  // namespace openrknn
