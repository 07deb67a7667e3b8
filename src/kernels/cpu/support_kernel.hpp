// Helpers shared by the float kernels: operand checks and integer operands.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/registry.hpp"

namespace openrknn::cpu {

inline Error kernel_error(std::string why, ErrorCode code = ErrorCode::kUnsupported) {
  return Error{code, "the operator cannot be evaluated", "", std::move(why), ""};
}

// The first `inputs` operands and `outputs` results are there.
inline Status require(const KernelArgs& args, size_t inputs, size_t outputs = 1) {
  for (size_t i = 0; i < inputs; ++i) {
    if (!args.has_input(i)) return kernel_error(fmt::format("operand {} is absent", i), ErrorCode::kInvalidArgument);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!args.has_output(i)) return kernel_error(fmt::format("result {} is absent", i), ErrorCode::kInvalidArgument);
  }
  return {};
}

// Result `i` has the dtype and shape that the operands ask for. Kernels that run from a file's data check before
// writing.
inline Status require_output(const KernelArgs& args, size_t i, DType dtype, const Shape& shape) {
  const MutableTensorView& out = args.outputs[i];
  if (out.dtype == dtype && out.shape == shape) return {};
  return kernel_error(fmt::format("result {} is {} {}, the operands give {} {}", i, dtype_name(out.dtype),
                                  out.shape.to_string(), dtype_name(dtype), shape.to_string()),
                      ErrorCode::kShape);
}

// run(const T&) with what prepare(args) makes: kept where the node keeps, made anew otherwise.
template <typename T, typename Prepare, typename Run>
Status with_kept(const KernelArgs& args, const Prepare& prepare, const Run& run) {
  if (args.memory != nullptr) {
    OPENRKNN_TRY(const T* kept, args.memory->keep<T>([&] { return prepare(args); }));
    return run(*kept);
  }
  OPENRKNN_TRY(const std::unique_ptr<T> made, prepare(args));
  return run(*made);
}

// Kernels that move raw elements: every operand in `inputs` and the result have one dtype of known size.
inline Status require_movable(const KernelArgs& args, size_t input = 0) {
  const DType dtype = args.inputs[input].dtype;
  if (dtype_size(dtype) == 0)
    return kernel_error(fmt::format("elements of type {} cannot be moved", dtype_name(dtype)));
  return {};
}

inline std::optional<std::vector<int64_t>> ints_operand(const KernelArgs& args, size_t i) {
  if (!args.has_input(i)) return std::nullopt;
  return to_ints(args.inputs[i]);
}

}  // namespace openrknn::cpu
