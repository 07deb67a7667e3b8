#include "toolkit/convert.hpp"

#include <fmt/core.h>

#include <array>

namespace openrknn::facade {

static_assert(static_cast<int>(toolkit::DType::kString) == static_cast<int>(DType::kString));
static_assert(static_cast<int>(toolkit::DType::kBool) == static_cast<int>(DType::kBool));
static_assert(static_cast<int>(toolkit::ErrorCode::kInternal) == static_cast<int>(ErrorCode::kInternal));

toolkit::Error to_public(const Error& e) {
  return {static_cast<toolkit::ErrorCode>(e.code), e.what, e.where, e.why, e.hint};
}

Error to_internal(const toolkit::Error& e) { return {static_cast<ErrorCode>(e.code), e.what, e.where, e.why, e.hint}; }

toolkit::DType to_public(DType dtype) { return static_cast<toolkit::DType>(dtype); }
DType to_internal(toolkit::DType dtype) { return static_cast<DType>(dtype); }

toolkit::Tensor to_public(const TensorView& tensor) {
  toolkit::Tensor out{to_public(tensor.dtype), tensor.shape.to_vector(), {}};
  const auto* data = static_cast<const std::byte*>(tensor.data);
  if (tensor.bytes() > 0) out.data.assign(data, data + tensor.bytes());
  return out;
}

Result<Tensor> to_internal(const toolkit::Tensor& tensor, const std::string& name) {
  OPENRKNN_TRY(const Shape shape, Shape::make(tensor.shape));
  const DType dtype = to_internal(tensor.dtype);
  const size_t expected = static_cast<size_t>(shape.elements()) * dtype_size(dtype);
  if (dtype_size(dtype) == 0 || expected != tensor.data.size()) {
    return Error{ErrorCode::kInvalidArgument, "cannot take a tensor", name,
                 fmt::format("{} of {} needs {} bytes, it has {}", shape.to_string(), dtype_name(dtype), expected,
                             tensor.data.size()),
                 "give a numeric dtype, the shape and exactly its elements"};
  }
  OPENRKNN_TRY(Tensor out, Tensor::make(dtype, shape));
  if (expected > 0) std::memcpy(out.mutable_data(), tensor.data.data(), expected);
  return out;
}

Result<Tensor> coerce(const Tensor& tensor, DType dtype, const std::string& name) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = cast(tensor.view(), dtype);
  if (tensor.dtype() == DType::kFloat64 && dtype == DType::kFloat32) return out;
  const std::vector<double> before = to_doubles(tensor.view());
  const std::vector<double> after = to_doubles(out.view());
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i] || (before[i] != before[i] && after[i] != after[i])) continue;
    return Error{ErrorCode::kInvalidArgument, "cannot take an input", name,
                 fmt::format("{} does not convert to {} without loss: element {} is {}", dtype_name(tensor.dtype()),
                             dtype_name(dtype), i, before[i]),
                 fmt::format("give {} data", dtype_name(dtype))};
  }
  return out;
}

Tensor swap_layout(const TensorView& tensor, bool to_nhwc) {
  const Shape& s = tensor.shape;
  const std::array<int, 4> order = to_nhwc ? std::array<int, 4>{0, 2, 3, 1} : std::array<int, 4>{0, 3, 1, 2};
  Tensor out(tensor.dtype, Shape{s[order[0]], s[order[1]], s[order[2]], s[order[3]]});
  const auto strides = s.strides();
  const size_t size = dtype_size(tensor.dtype);
  const auto* from = static_cast<const std::byte*>(tensor.data);
  auto* to = static_cast<std::byte*>(out.mutable_data());
  const auto stride = [&](int axis) { return strides[static_cast<size_t>(order[static_cast<size_t>(axis)])]; };
  for (int64_t a = 0; a < out.shape()[0]; ++a) {
    for (int64_t b = 0; b < out.shape()[1]; ++b) {
      for (int64_t c = 0; c < out.shape()[2]; ++c) {
        for (int64_t d = 0; d < out.shape()[3]; ++d, to += size) {
          const int64_t at = a * stride(0) + b * stride(1) + c * stride(2) + d * stride(3);
          std::memcpy(to, from + static_cast<size_t>(at) * size, size);
        }
      }
    }
  }
  return out;
}

}  // namespace openrknn::facade
