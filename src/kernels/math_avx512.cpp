// Compiled with -mavx512f and its companions; see CMakeLists.txt.
#include "kernels/compiled_isa.hpp"
#include "kernels/math_kernels.hpp"

#if defined(__x86_64__)
namespace openrknn::math {
namespace {
#include "kernels/math_loops.inc"
}  // namespace

const MathKernels& math_kernels_avx512() { return kTable; }

}  // namespace openrknn::math
#endif
