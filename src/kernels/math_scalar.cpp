// The baseline of every processor.
#include "kernels/math_kernels.hpp"

namespace openrknn::math {
namespace {
#include "kernels/math_loops.inc"
}  // namespace

const MathKernels& math_kernels_scalar() {
  static const MathKernels table = {exp_floats, log_floats, tanh_floats,  sigmoid_floats,
                                    erf_floats, exp_lines,  divide_lines, softmax_line};
  return table;
}

}  // namespace openrknn::math
