// Operators whose result has the operand's bytes under another shape.
#include <cstring>

#include "kernels/cpu/support_kernel.hpp"

namespace openrknn::cpu {
namespace {

// The shape was computed by inference; only the bytes matter here, so all these operators are one copy.
Status copy_bytes(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const MutableTensorView& out = args.outputs[0];
  if (in.dtype != out.dtype || in.elements() != out.elements()) {
    return kernel_error(fmt::format("{} {} cannot become {} {}", dtype_name(in.dtype), in.shape.to_string(),
                                    dtype_name(out.dtype), out.shape.to_string()),
                        ErrorCode::kShape);
  }
  if (out.bytes() > 0 && out.data != in.data) std::memcpy(out.data, in.data, out.bytes());
  return {};
}

// At inference Dropout passes its operand on, as at a ratio of 0; the optional mask keeps everything.
Status dropout(const KernelArgs& args) {
  if (const auto training = ints_operand(args, 2); training && !training->empty() && (*training)[0] != 0) {
    const bool drops = !args.has_input(1) || args.inputs[1].elements() != 1 || to_doubles(args.inputs[1])[0] != 0.0;
    if (drops) return kernel_error("Dropout in training mode");
  }
  OPENRKNN_CHECK_OK(copy_bytes(args));
  if (!args.has_output(1)) return {};
  OPENRKNN_CHECK_OK(require_output(args, 1, DType::kBool, args.inputs[0].shape));
  if (args.outputs[1].bytes() > 0) std::memset(args.outputs[1].data, 1, args.outputs[1].bytes());
  return {};
}

}  // namespace

void register_reshape(Registry& registry) {
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}) registry.add(op, copy_bytes);
  registry.add("Dropout", dropout);
}

}  // namespace openrknn::cpu
