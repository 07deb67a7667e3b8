// Elementwise kernels compute in five types; the others go through one of them and back.
#pragma once

#include <cstring>
#include <initializer_list>

#include "kernels/cpu/support_kernel.hpp"

namespace openrknn::cpu {

// float16, bfloat16 -> float32; integers below 32 bits and uint32 -> int64; kUndefined when there is no way.
inline DType compute_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt64:
      return dtype;
    case DType::kFloat16:
    case DType::kBFloat16:
      return DType::kFloat32;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
      return DType::kInt64;
    default:
      return DType::kUndefined;
  }
}

// Calls f(T{}) with the C++ type of a compute type.
template <typename F>
Status with_compute_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt64:
      return f(uint64_t{});
    default:
      return kernel_error(fmt::format("{} values are not supported", dtype_name(dtype)));
  }
}

// An operand as the compute type: itself, or a converted copy kept here.
class Promoted {
 public:
  Promoted(const TensorView& view, DType compute) : view_(view) {
    if (view.dtype == compute) return;
    copy_ = cast(view, compute);
    view_ = copy_.view();
  }
  const TensorView& view() const { return view_; }
  template <typename T>
  const T* data() const {
    return view_.as<T>().data();
  }

 private:
  TensorView view_;
  Tensor copy_;
};

// Runs f(T{}, T* result) and converts the result to the type of `out`.
template <typename T, typename F>
Status compute_as(const MutableTensorView& out, F&& f) {
  if (out.dtype == dtype_of<T>()) return f(T{}, out.as<T>().data());
  OPENRKNN_TRY(Tensor wide, Tensor::make(dtype_of<T>(), out.shape));
  OPENRKNN_CHECK_OK(f(T{}, wide.mutable_as<T>().data()));
  const Tensor back = cast(wide.view(), out.dtype);
  if (out.bytes() > 0) std::memcpy(out.data, back.data(), out.bytes());
  return {};
}

// The same in the compute type of `out`.
template <typename F>
Status compute_into(const MutableTensorView& out, DType compute, F&& f) {
  return with_compute_type(compute, [&](auto tag) -> Status { return compute_as<decltype(tag)>(out, f); });
}

// Functions of real numbers: float64 computes in itself, the other float types in float32.
inline DType real_type(DType dtype) { return is_float(dtype) ? compute_type(dtype) : DType::kUndefined; }

template <typename F>
Status compute_reals_into(const MutableTensorView& out, F&& f) {
  if (real_type(out.dtype) == DType::kFloat32) return compute_as<float>(out, f);
  if (real_type(out.dtype) == DType::kFloat64) return compute_as<double>(out, f);
  return kernel_error(fmt::format("{} values are not supported", dtype_name(out.dtype)));
}

// The listed operands, where they are given, have the type of the first of them, which is a float type.
inline Status require_reals(const KernelArgs& args, std::initializer_list<size_t> operands) {
  const DType dtype = args.inputs[*operands.begin()].dtype;
  if (real_type(dtype) == DType::kUndefined)
    return kernel_error(fmt::format("operand {} is {}, a float type expected", *operands.begin(), dtype_name(dtype)));
  for (const size_t i : operands) {
    if (!args.has_input(i) || args.inputs[i].dtype == dtype) continue;
    return kernel_error(
        fmt::format("operand {} is {}, expected {}", i, dtype_name(args.inputs[i].dtype), dtype_name(dtype)),
        ErrorCode::kShape);
  }
  return {};
}

}  // namespace openrknn::cpu
