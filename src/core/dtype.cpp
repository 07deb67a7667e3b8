#include "core/dtype.hpp"

#include <array>

namespace openrknn {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
  int64_t min;
  int64_t max;
  int64_t onnx;
};

constexpr std::array kRows = {
    Row{DType::kUndefined, "undefined", 0, 0, 0, 0},
    Row{DType::kFloat32, "float32", 4, 0, 0, 1},
    Row{DType::kFloat64, "float64", 8, 0, 0, 11},
    Row{DType::kFloat16, "float16", 2, 0, 0, 10},
    Row{DType::kBFloat16, "bfloat16", 2, 0, 0, 16},
    Row{DType::kInt8, "int8", 1, -128, 127, 3},
    Row{DType::kInt16, "int16", 2, -32768, 32767, 5},
    Row{DType::kInt32, "int32", 4, INT32_MIN, INT32_MAX, 6},
    Row{DType::kInt64, "int64", 8, INT64_MIN, INT64_MAX, 7},
    Row{DType::kUInt8, "uint8", 1, 0, 255, 2},
    Row{DType::kUInt16, "uint16", 2, 0, 65535, 4},
    Row{DType::kUInt32, "uint32", 4, 0, UINT32_MAX, 12},
    Row{DType::kUInt64, "uint64", 8, 0, INT64_MAX, 13},
    Row{DType::kBool, "bool", 1, 0, 1, 9},
    Row{DType::kInt4, "int4", 1, -8, 7, 22},
    Row{DType::kUInt4, "uint4", 1, 0, 15, 21},
    Row{DType::kFloat8E4M3FN, "float8e4m3fn", 1, 0, 0, 17},
    Row{DType::kFloat8E4M3FNUZ, "float8e4m3fnuz", 1, 0, 0, 18},
    Row{DType::kFloat8E5M2, "float8e5m2", 1, 0, 0, 19},
    Row{DType::kFloat8E5M2FNUZ, "float8e5m2fnuz", 1, 0, 0, 20},
    Row{DType::kString, "string", 0, 0, 0, 8},
};

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t dtype_size(DType dtype) { return row(dtype).size; }
std::string_view dtype_name(DType dtype) { return row(dtype).name; }
int64_t dtype_min(DType dtype) { return row(dtype).min; }
int64_t dtype_max(DType dtype) { return row(dtype).max; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

int64_t onnx_number(DType dtype) { return row(dtype).onnx; }

std::optional<DType> dtype_from_onnx_number(int64_t number) {
  for (const Row& r : kRows) {
    if (r.onnx == number && number != 0) return r.dtype;
  }
  return std::nullopt;
}

bool is_float(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return true;
    default:
      return false;
  }
}

bool is_signed_integer(DType dtype) { return is_integer(dtype) && row(dtype).min < 0; }

bool is_integer(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kUndefined && dtype != DType::kString && !is_float(dtype);
}

}  // namespace openrknn
