// BatchNormalization as a factor and a term per channel, in double.
#pragma once

#include <cmath>

#include "kernels/cpu/support_stages.hpp"

namespace openrknn::cpu {

inline Stages::Affine batch_affine(float scale, float bias, double mean, double variance, double epsilon) {
  const double factor = scale / std::sqrt(variance + epsilon);
  return {factor, bias - mean * factor};
}

}  // namespace openrknn::cpu
