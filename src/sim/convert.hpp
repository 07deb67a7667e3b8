// From integers to reals and back, for conversion tasks and for the program's inputs and outputs.
#pragma once

#include <cstdint>

#include "model/program.hpp"

namespace openrknn::sim {

// n elements of a's type and scale to b's, values kept:
//   integers with a scale to fp32: float(x - zero_point) * scale;
//   fp32 to integers with a scale: nearest integer (ties to even) of x / scale, plus the zero point, saturated; NaN
//   gives the zero point;
//   fp16 through fp32 with one rounding; integers without a scale as C++ converts them, saturated.
void convert_elements(const model::TensorDesc& a, const void* from, int64_t n, const model::TensorDesc& b, void* to);

// The same over threads.
void convert_all(const model::TensorDesc& a, const void* from, int64_t n, const model::TensorDesc& b, void* to);
// fp32 without a scale.
model::TensorDesc real_desc();

}  // namespace openrknn::sim
