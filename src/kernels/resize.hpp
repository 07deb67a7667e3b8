// ONNX Resize: what its attributes and operands ask for, and which input positions every output position is made of.
// Coordinates are computed in float32, operation by operation as the common runtimes do, since at ties the result of
// `nearest` hangs on the last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"

namespace openrknn {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class NearestMode : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
enum class CoordinateMode : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize,
  kTfHalfPixelForNn,  // opset 11 and 12 only
};
enum class AspectPolicy : uint8_t { kStretch, kNotLarger, kNotSmaller };

struct ResizeSettings {
  ResizeMode mode = ResizeMode::kNearest;
  NearestMode nearest = NearestMode::kRoundPreferFloor;
  CoordinateMode coordinate = CoordinateMode::kHalfPixel;
  AspectPolicy policy = AspectPolicy::kStretch;
  bool antialias = false;
  bool exclude_outside = false;
  float cubic_a = -0.75F;
  float extrapolation = 0.0F;
  std::vector<int64_t> axes;  // empty: all
};
Result<ResizeSettings> resize_settings(const Attributes& attributes);

struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  float scale = 1.0F;
  float roi_start = 0.0F;
  float roi_end = 1.0F;
  bool changes() const { return in != out || scale != 1.0F || roi_start != 0.0F || roi_end != 1.0F; }
};

struct ResizePlan {
  Shape shape;                   // of the result
  std::vector<ResizeAxis> axes;  // one per axis of the input
};
// `scales` or `sizes`, the other empty; `roi` only for tf_crop_and_resize.
Result<ResizePlan> plan_resize(const Shape& input, const ResizeSettings& settings, const std::vector<float>& roi,
                               const std::vector<float>& scales, const std::vector<int64_t>& sizes);

// The input coordinate of output position `x`.
float source_coordinate(CoordinateMode mode, const ResizeAxis& axis, int64_t x);
// The input position of every output position, inside the axis.
std::vector<int64_t> nearest_table(const ResizeSettings& settings, const ResizeAxis& axis);

// out[x] = sum over k of weights[x * taps + k] * in[indices[x * taps + k]].
struct ResizeTaps {
  int64_t taps = 0;
  std::vector<int64_t> indices;  // inside the axis
  std::vector<float> weights;
};
ResizeTaps interpolation_taps(const ResizeSettings& settings, const ResizeAxis& axis);
// Output positions outside the input: tf_crop_and_resize gives them the extrapolation value.
std::vector<bool> outside_positions(const ResizeSettings& settings, const ResizeAxis& axis);

}  // namespace openrknn
