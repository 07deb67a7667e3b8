// Float evaluation of one operator: shape inference on the actual operands, then the kernel of kernels/cpu.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/attributes.hpp"
#include "core/tensor.hpp"

namespace openrknn::ops {

// Results in fresh tensors. `inputs` may hold undefined Tensors for absent operands. Constants may depend on data here.
Result<std::vector<Tensor>> evaluate(std::string_view op, const Attributes& attributes, std::span<const Tensor> inputs,
                                     size_t outputs);

}  // namespace openrknn::ops
