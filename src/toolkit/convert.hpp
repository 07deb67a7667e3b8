// Between the public types of include/openrknn and the types of src/.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/tensor.hpp"
#include "openrknn/toolkit.hpp"

namespace openrknn::facade {

toolkit::Error to_public(const Error& error);
Error to_internal(const toolkit::Error& error);
toolkit::DType to_public(DType dtype);
DType to_internal(toolkit::DType dtype);
toolkit::Tensor to_public(const TensorView& tensor);
// Checks that the bytes are as many as shape and dtype say.
Result<Tensor> to_internal(const toolkit::Tensor& tensor, const std::string& name);
// The same values as `dtype`: conversions without loss, and float64 to float32. `name` is for the message.
Result<Tensor> coerce(const Tensor& tensor, DType dtype, const std::string& name);

template <typename T>
toolkit::Result<T> to_public(Result<T> result) {
  if (!result.ok()) return to_public(result.error());
  return std::move(result).value();
}
inline toolkit::Status to_public(const Status& status) {
  if (!status.ok()) return to_public(status.error());
  return {};
}
template <typename T>
Result<T> to_internal(toolkit::Result<T> result) {
  if (!result.ok()) return to_internal(result.error());
  return std::move(result).value();
}

// Calls work, which gives a Result; memory that runs out inside (or the budget) is an error of it.
template <typename Work>
auto within_memory(const std::string& where, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kResource, "not enough memory", where,
                 "all tensors together need more than the machine has or the budget allows",
                 "use a smaller model or input, or allow more with --memory-budget"};
  }
}

// Reorders a 4-D tensor between NCHW and NHWC.
Tensor swap_layout(const TensorView& tensor, bool to_nhwc);

}  // namespace openrknn::facade
