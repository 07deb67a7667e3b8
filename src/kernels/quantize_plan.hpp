// Which scale belongs to which element: per tensor, per axis or per block. Shared by shape inference and the kernels.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace openrknn {

struct QuantizePlan {
  // The elements as [outer][extent][inner]; the scales as [outer][ceil(extent / block)][inner] with the steps below.
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t block = 1;
  int64_t outer_step = 0, axis_step = 0, inner_step = 0;  // of the scales; all 0: one scale
};

// Attributes axis and block_size of QuantizeLinear and DequantizeLinear.
Result<QuantizePlan> quantize_plan(const Attributes& attributes, const Shape& x, const Shape& scale);

// The types that linear quantization has here: integers of up to 16 bits, 4-bit ones included.
bool is_quantized_type(DType dtype);

// Parameters of a matrix operand of MatMulInteger and QLinearMatMul: element matrix * matrix_step + line * line_step.
struct LineParameters {
  int64_t matrix_step = 0;
  int64_t line_step = 0;
};

// `rows`: one per row, else one per column. Scalars, vectors, and [..., M, 1] or [..., 1, N] are allowed.
Result<LineParameters> line_parameters(const Shape& parameter, const Shape& operand, bool rows);

}  // namespace openrknn
