// The baseline of every processor.
#include "kernels/compiled_isa.hpp"
#include "kernels/math_kernels.hpp"

namespace openrknn::math {
namespace {
#include "kernels/math_loops.inc"
}  // namespace

const MathKernels& math_kernels_scalar() { return kTable; }

}  // namespace openrknn::math
