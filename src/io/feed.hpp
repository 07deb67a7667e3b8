// Files turned into the tensor that a model input takes: .npy in the model's own shape, pictures resized to it.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.hpp"

namespace openrknn::io {

struct InputSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;        // the source model's
  bool nhwc = false;  // layout of a 4-D input: pictures are laid out accordingly
  bool bgr = false;   // pictures: swap red and blue
};

// Pictures: 8-bit values 0..255 as float32 (or the input's dtype), RGB, grey by luma for one channel, batch filled by
// repetition. npy: any numeric dtype that converts without loss, and float64 to float32; shape must match (an error
// gives both shapes, both dtypes and the layout). No mean or std here.
Result<Tensor> load_input(const std::string& path, const InputSpec& spec);

}  // namespace openrknn::io
