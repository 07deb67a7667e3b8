// The program's inputs and outputs: what the application gives and gets.
#pragma once

#include "core/tensor.hpp"
#include "model/program.hpp"
#include "sim/view.hpp"

namespace openrknn::sim {

// real = value as float32, (real - mean) / std of its channel, then the tensor's own type and layout.
Status store_input(const model::Program& program, const model::Port& port, const Tensor& given, const View& view);
// The raw elements, row-major, in the shape given.
Result<Tensor> load_raw(const model::TensorDesc& tensor, const View& view, const Shape& shape);
// The same as float32.
Result<Tensor> load_real(const model::TensorDesc& tensor, const View& view, const Shape& shape);

}  // namespace openrknn::sim
