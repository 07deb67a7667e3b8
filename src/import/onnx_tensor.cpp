#include "import/onnx_tensor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/checked.hpp"
#include "base/half.hpp"

namespace openrknn::import {
namespace {

struct OnnxType {
  std::string_view name;
  DType dtype;
};
// Indexed by TensorProto.DataType.
constexpr std::array<OnnxType, 24> kTypes{{{"undefined", DType::kUndefined},
                                           {"float", DType::kFloat32},
                                           {"uint8", DType::kUInt8},
                                           {"int8", DType::kInt8},
                                           {"uint16", DType::kUInt16},
                                           {"int16", DType::kInt16},
                                           {"int32", DType::kInt32},
                                           {"int64", DType::kInt64},
                                           {"string", DType::kUndefined},
                                           {"bool", DType::kBool},
                                           {"float16", DType::kFloat16},
                                           {"double", DType::kFloat64},
                                           {"uint32", DType::kUInt32},
                                           {"uint64", DType::kUInt64},
                                           {"complex64", DType::kUndefined},
                                           {"complex128", DType::kUndefined},
                                           {"bfloat16", DType::kBFloat16},
                                           {"float8e4m3fn", DType::kFloat8E4M3FN},
                                           {"float8e4m3fnuz", DType::kFloat8E4M3FNUZ},
                                           {"float8e5m2", DType::kFloat8E5M2},
                                           {"float8e5m2fnuz", DType::kFloat8E5M2FNUZ},
                                           {"uint4", DType::kUInt4},
                                           {"int4", DType::kInt4},
                                           {"float4e2m1", DType::kUndefined}}};

Error tensor_error(ErrorCode code, const std::string& name, std::string why, std::string hint) {
  return Error{code, "cannot read a tensor of the model", fmt::format("tensor '{}'", name), std::move(why),
               std::move(hint)};
}

bool is_four_bit(DType dtype) { return dtype == DType::kInt4 || dtype == DType::kUInt4; }

// Bytes of the stored form: 4-bit types two to a byte.
size_t stored_bytes(DType dtype, int64_t elements) {
  const auto n = static_cast<size_t>(elements);
  return is_four_bit(dtype) ? (n + 1) / 2 : n * dtype_size(dtype);
}

void unpack_four_bit(std::span<const std::byte> packed, Tensor& out) {
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  const bool is_signed = out.dtype() == DType::kInt4;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto byte = static_cast<uint8_t>(packed[static_cast<size_t>(i / 2)]);
    const int nibble = (i % 2 == 0) ? byte & 0xF : byte >> 4;
    to[i] = static_cast<uint8_t>(is_signed && nibble > 7 ? nibble - 16 : nibble);
  }
}

template <typename To, typename Field>
void copy_field(const Field& field, Tensor& out) {
  auto to = out.mutable_as<To>();
  for (int i = 0; i < field.size(); ++i) to[static_cast<size_t>(i)] = static_cast<To>(field.Get(i));
}

// Elements of the typed field for `dtype`; -1 when there is no such field.
int typed_count(const onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return proto.float_data_size();
    case DType::kFloat64:
      return proto.double_data_size();
    case DType::kInt64:
      return proto.int64_data_size();
    case DType::kUInt32:
    case DType::kUInt64:
      return proto.uint64_data_size();
    default:
      return proto.int32_data_size();
  }
}

void copy_typed(const onnx::TensorProto& proto, Tensor& out) {
  switch (out.dtype()) {
    case DType::kFloat32:
      return copy_field<float>(proto.float_data(), out);
    case DType::kFloat64:
      return copy_field<double>(proto.double_data(), out);
    case DType::kInt64:
      return copy_field<int64_t>(proto.int64_data(), out);
    case DType::kUInt32:
      return copy_field<uint32_t>(proto.uint64_data(), out);
    case DType::kUInt64:
      return copy_field<uint64_t>(proto.uint64_data(), out);
    case DType::kInt32:
      return copy_field<int32_t>(proto.int32_data(), out);
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16: {  // halves are kept as their bits
      auto* to = static_cast<uint16_t*>(out.mutable_data());
      for (int i = 0; i < proto.int32_data_size(); ++i) to[i] = static_cast<uint16_t>(proto.int32_data(i));
      return;
    }
    default: {
      auto* to = static_cast<uint8_t*>(out.mutable_data());
      for (int i = 0; i < proto.int32_data_size(); ++i) to[i] = static_cast<uint8_t>(proto.int32_data(i));
      return;
    }
  }
}

void make_bools_canonical(Tensor& out) {
  if (out.dtype() != DType::kBool) return;
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  for (int64_t i = 0; i < out.elements(); ++i) to[i] = to[i] != 0 ? 1 : 0;
}

std::optional<int64_t> parse_int(const std::string& text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<DType> dtype_from_onnx(int number) {
  if (number <= 0 || number >= static_cast<int>(kTypes.size())) return std::nullopt;
  const DType dtype = kTypes[static_cast<size_t>(number)].dtype;
  if (dtype == DType::kUndefined) return std::nullopt;
  return dtype;
}

std::string onnx_type_name(int number) {
  if (number < 0 || number >= static_cast<int>(kTypes.size())) return fmt::format("type {}", number);
  return std::string(kTypes[static_cast<size_t>(number)].name);
}

DType computed_dtype(DType dtype) {
  const bool converted = dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat64;
  return converted ? DType::kFloat32 : dtype;
}

bool has_non_finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return false;
  const auto values = tensor.as<float>();
  return std::any_of(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
}

Status TensorReader::charge(int64_t bytes, const std::string& name) {
  if (bytes > budget_) {
    return tensor_error(ErrorCode::kResource, name,
                        fmt::format("it needs {} bytes, {} of the memory budget are left", bytes, budget_),
                        "raise the memory budget if the model is really this large");
  }
  budget_ -= bytes;
  return {};
}

Result<TensorReader::External> TensorReader::external_of(const onnx::TensorProto& proto,
                                                         const std::string& name) const {
  External external;
  for (const auto& pair : proto.external_data()) {
    if (pair.key() == "location") external.location = pair.value();
    const bool number = pair.key() == "offset" || pair.key() == "length";
    if (!number) continue;
    const auto value = parse_int(pair.value());
    if (!value || *value < 0) {
      return tensor_error(ErrorCode::kFormat, name,
                          fmt::format("{} '{}' of its external data is no number of bytes", pair.key(), pair.value()),
                          "export the model again");
    }
    if (pair.key() == "offset") external.offset = *value;
    if (pair.key() == "length") external.length = *value;
  }
  if (external.location.empty())
    return tensor_error(ErrorCode::kFormat, name, "its external data have no location", "export the model again");
  return external;
}

Result<std::span<const std::byte>> TensorReader::external_bytes(const onnx::TensorProto& proto, const std::string& name,
                                                                size_t needed) {
  namespace fs = std::filesystem;
  OPENRKNN_TRY(const External external, external_of(proto, name));
  if (!files_.contains(external.location)) {
    const fs::path location(external.location);
    const auto outside = [&] {
      return tensor_error(ErrorCode::kInvalidArgument, name,
                          fmt::format("its external data '{}' lie outside the model's folder", external.location),
                          "put the data file beside the model");
    };
    if (location.is_absolute() || std::find(location.begin(), location.end(), fs::path("..")) != location.end())
      return outside();
    std::error_code failure;
    fs::path folder = fs::path(model_path_).parent_path();
    if (folder.empty()) folder = ".";
    folder = fs::weakly_canonical(folder, failure);
    const fs::path target = fs::weakly_canonical(folder / location, failure);  // symbolic links resolved
    if (failure || std::mismatch(folder.begin(), folder.end(), target.begin(), target.end()).first != folder.end())
      return outside();
    if (!fs::is_regular_file(target, failure)) {
      return tensor_error(ErrorCode::kNotFound, name, fmt::format("its data file '{}' is not there", target.string()),
                          "copy the data file beside the model");
    }
    auto file = MappedFile::open(target.string());
    if (!file.ok()) return file.error().within(fmt::format("tensor '{}'", name));
    files_.emplace(external.location, std::move(*file));
  }
  const auto all = files_.find(external.location)->second.bytes();
  const auto length = external.length ? static_cast<size_t>(*external.length) : needed;
  const auto offset = static_cast<size_t>(external.offset);
  if (length != needed || offset > all.size() || needed > all.size() - offset) {
    return tensor_error(ErrorCode::kFormat, name,
                        fmt::format("it needs {} bytes at offset {} of '{}', which has {} (length given: {})", needed,
                                    offset, external.location, all.size(), length),
                        "the data file may be cut short: copy it again");
  }
  return all.subspan(offset, needed);
}

Result<Tensor> TensorReader::decode(const onnx::TensorProto& proto, const std::string& name, DType dtype,
                                    const Shape& shape) {
  const int64_t elements = shape.elements();
  const size_t bytes = stored_bytes(dtype, elements);
  std::span<const std::byte> raw;
  bool is_raw = false;
  if (proto.data_location() == 1 || (proto.external_data_size() > 0 && !proto.has_raw_data())) {
    OPENRKNN_TRY(raw, external_bytes(proto, name, bytes));
    is_raw = true;
  } else if (proto.has_raw_data()) {
    raw = std::as_bytes(std::span(proto.raw_data().data(), proto.raw_data().size()));
    is_raw = true;
    if (raw.size() != bytes) {
      return tensor_error(ErrorCode::kFormat, name,
                          fmt::format("shape {} of {} needs {} bytes, the file has {}", shape.to_string(),
                                      dtype_name(dtype), bytes, raw.size()),
                          "the file may be damaged: export it again");
    }
  } else {
    const int64_t expected = is_four_bit(dtype) ? (elements + 1) / 2 : elements;
    const int count = typed_count(proto, dtype);
    if (count != expected) {
      return tensor_error(ErrorCode::kFormat, name,
                          fmt::format("shape {} has {} elements, the file has {}", shape.to_string(), elements, count),
                          "the file may be damaged: export it again");
    }
  }
  OPENRKNN_TRY(Tensor out, Tensor::make(dtype, shape));
  if (is_four_bit(dtype)) {
    std::vector<std::byte> packed(raw.begin(), raw.end());
    if (!is_raw) {
      for (const int value : proto.int32_data()) packed.push_back(static_cast<std::byte>(value & 0xFF));
    }
    unpack_four_bit(packed, out);
  } else if (is_raw) {
    if (bytes > 0) std::memcpy(out.mutable_data(), raw.data(), bytes);
  } else {
    copy_typed(proto, out);
  }
  make_bools_canonical(out);
  return out;
}

Result<Tensor> TensorReader::read(const onnx::TensorProto& proto, const std::string& name) {
  const auto dtype = dtype_from_onnx(proto.data_type());
  if (!dtype) {
    return tensor_error(ErrorCode::kUnsupported, name,
                        fmt::format("elements of type {} are not supported", onnx_type_name(proto.data_type())),
                        "cut the graph before its use");
  }
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  auto shape = Shape::make(dims);
  if (!shape.ok()) return shape.error().within(fmt::format("tensor '{}'", name));
  OPENRKNN_CHECK_OK(charge(shape->elements() * static_cast<int64_t>(dtype_size(computed_dtype(*dtype))), name));
  OPENRKNN_TRY(Tensor out, decode(proto, name, *dtype, *shape));
  if (computed_dtype(*dtype) == *dtype) return out;
  promoted_ = true;
  return cast(out.view(), computed_dtype(*dtype));
}

Result<Tensor> TensorReader::read_sparse(const onnx::SparseTensorProto& proto, const std::string& name) {
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  auto shape = Shape::make(dims);
  if (!shape.ok()) return shape.error().within(fmt::format("tensor '{}'", name));
  OPENRKNN_TRY(const Tensor values, read(proto.values(), name));
  OPENRKNN_TRY(const Tensor indices, read(proto.indices(), name + " (indices)"));
  const int64_t count = values.elements();
  const int64_t width = indices.shape().rank() == 2 ? indices.shape()[1] : 1;
  if (indices.dtype() != DType::kInt64 || indices.elements() != count * width ||
      (width != 1 && width != shape->rank())) {
    return tensor_error(
        ErrorCode::kFormat, name,
        fmt::format("{} values with indices of shape {} do not fit", count, indices.shape().to_string()),
        "export the model again");
  }
  const size_t element = dtype_size(values.dtype());
  OPENRKNN_CHECK_OK(charge(shape->elements() * static_cast<int64_t>(element), name));
  OPENRKNN_TRY(Tensor out, Tensor::make(values.dtype(), *shape));
  auto* to = static_cast<std::byte*>(out.mutable_data());
  const auto* from = static_cast<const std::byte*>(values.data());
  const auto index = indices.as<int64_t>();
  const auto strides = shape->strides();
  const bool linear = indices.shape().rank() != 2;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    bool inside = true;
    for (int64_t k = 0; k < width && inside; ++k) {
      const int64_t coordinate = index[static_cast<size_t>(i * width + k)];
      const int64_t extent = linear ? shape->elements() : (*shape)[static_cast<int>(k)];
      inside = coordinate >= 0 && coordinate < extent;
      if (inside) at += linear ? coordinate : coordinate * strides[static_cast<size_t>(k)];
    }
    if (!inside)
      return tensor_error(ErrorCode::kFormat, name,
                          fmt::format("index {} of its values is outside shape {}", i, shape->to_string()),
                          "export the model again");
    std::memcpy(to + static_cast<size_t>(at) * element, from + static_cast<size_t>(i) * element, element);
  }
  return out;
}

}  // namespace openrknn::import
