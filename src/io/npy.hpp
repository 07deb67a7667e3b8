// NumPy's .npy files, versions 1.0 to 3.0, C and Fortran order, either byte order.
#pragma once

#include <span>
#include <string>

#include "core/tensor.hpp"

namespace openrknn::io {

// Row-major whatever the file's order. Errors name the file and what was wrong (magic, header, dtype, size).
Result<Tensor> read_npy(const std::string& path);
Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name);
// bfloat16, float8 and 4-bit types, which npy lacks, are widened to float32 or int8.
Status write_npy(const std::string& path, const TensorView& tensor);

}  // namespace openrknn::io
