// Compiled with -mavx2; see CMakeLists.txt.
#include "kernels/math_kernels.hpp"

#if defined(__x86_64__)
namespace openrknn::math {
namespace {
#include "kernels/math_loops.inc"
}  // namespace

const MathKernels& math_kernels_avx2() {
  static const MathKernels table = {exp_floats, log_floats, tanh_floats,  sigmoid_floats,
                                    erf_floats, exp_lines,  divide_lines, softmax_line};
  return table;
}

}  // namespace openrknn::math
#endif
