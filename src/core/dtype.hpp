// Element types, with ONNX's names and meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace openrknn {

enum class DType : uint8_t {
  kUndefined,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kInt4,
  kUInt4,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kString,
};

// Bytes of one element in memory. 4-bit types are held one to a byte; kString and kUndefined have size 0.
size_t dtype_size(DType dtype);
// "float32", "int8", ... (numpy's names where numpy has the type).
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// The number of ONNX's TensorProto.DataType, which is what the attribute `to` of Cast holds in a Graph; 0 when it has
// none.
int64_t onnx_number(DType dtype);
std::optional<DType> dtype_from_onnx_number(int64_t number);
bool is_float(DType dtype);    // any floating type
bool is_integer(DType dtype);  // any integer type, bool excluded
bool is_signed_integer(DType dtype);
// Smallest and largest value of an integer type of at most 32 bits.
int64_t dtype_min(DType dtype);
int64_t dtype_max(DType dtype);

// The DType of a C++ type.
template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kFloat64;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::kInt8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::kInt16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kUInt8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::kUInt16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::kUInt32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::kUInt64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}

}  // namespace openrknn
