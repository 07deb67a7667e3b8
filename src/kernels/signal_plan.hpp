// Shapes of DFT, STFT and the weights of audio front ends, shared by shape inference and the kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace openrknn {

struct DftPlan {
  int axis = 0;
  int64_t length = 0;  // of the transform
  bool inverse = false;
  bool onesided = false;  // forward: only the first half is written; inverse: only it is read, the result is real
  Shape output;
};
// x [..., 1 or 2]: real numbers, or real and imaginary part.
Result<DftPlan> dft_plan(const Attributes& attributes, const Shape& x,
                         const std::optional<std::vector<int64_t>>& length,
                         const std::optional<std::vector<int64_t>>& axis);

struct StftPlan {
  int64_t step = 0;
  int64_t length = 0;  // of a frame
  Shape output;        // samples, frames, frequencies, 2
};
// `window` may be null; x [samples, length, 1 or 2].
Result<StftPlan> stft_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& step,
                           const Shape* window, const std::optional<std::vector<int64_t>>& length);

// HannWindow, HammingWindow, BlackmanWindow: [size].
Result<Shape> window_shape(const std::vector<int64_t>& size);

// The attribute output_datatype: a float type.
Result<DType> signal_dtype(const Attributes& attributes);

// MelWeightMatrix: [dft_length / 2 + 1, bins].
Result<Shape> mel_shape(const std::vector<int64_t>& bins, const std::vector<int64_t>& dft_length);

}  // namespace openrknn
