#include "io/npy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/checked.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace openrknn::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";

Error npy_error(const std::string& name, std::string why) {
  return Error{ErrorCode::kFormat, "cannot read the .npy file", name, std::move(why), "write it with numpy.save"};
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> dims;
  size_t data_offset = 0;
};

// The header is the text of a Python dictionary with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return std::nullopt;
      if (*key == "descr") {
        const auto value = quoted();  // a structured type is a list: refused here
        if (!value) return std::nullopt;
        header.descr = *value;
        has_descr = true;
      } else if (*key == "fortran_order") {
        const bool yes = word("True");
        if (!yes && !word("False")) return std::nullopt;
        header.fortran_order = yes;
        has_order = true;
      } else if (*key == "shape") {
        if (!dims(header.dims)) return std::nullopt;
        has_shape = true;
      } else {
        return std::nullopt;
      }
      take(',');
    }
    if (!has_descr || !has_order || !has_shape) return std::nullopt;
    return header;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view wanted) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  std::optional<std::string> quoted() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool dims(std::vector<int64_t>& out) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_blanks();
      int64_t value = 0;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (failure != std::errc()) return false;
      at_ = static_cast<size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers
      out.push_back(value);
      take(',');
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct NpyType {
  std::string_view code;  // kind and bytes
  DType dtype;
};
constexpr std::array<NpyType, 12> kTypes{{{"f4", DType::kFloat32},
                                          {"f8", DType::kFloat64},
                                          {"f2", DType::kFloat16},
                                          {"i1", DType::kInt8},
                                          {"i2", DType::kInt16},
                                          {"i4", DType::kInt32},
                                          {"i8", DType::kInt64},
                                          {"u1", DType::kUInt8},
                                          {"u2", DType::kUInt16},
                                          {"u4", DType::kUInt32},
                                          {"u8", DType::kUInt64},
                                          {"b1", DType::kBool}}};

std::optional<DType> dtype_of_code(std::string_view code) {
  const auto* at = std::find_if(kTypes.begin(), kTypes.end(), [&](const NpyType& t) { return t.code == code; });
  if (at == kTypes.end()) return std::nullopt;
  return at->dtype;
}

Result<Header> read_header(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 10 || !bytes.starts_with(kMagic))
    return npy_error(name, "it does not start with the magic bytes of .npy");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    return npy_error(name, fmt::format("format version {}.{} is not known", version, byte(7)));
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return npy_error(name, "the header is cut short");
  size_t length = byte(8) | (byte(9) << 8);
  if (version > 1) length |= (byte(10) << 16) | (byte(11) << 24);
  if (length > bytes.size() - start) return npy_error(name, fmt::format("the header of {} bytes is cut short", length));
  auto header = HeaderParser(bytes.substr(start, length)).parse();
  if (!header)
    return npy_error(name, "the header is not a dictionary of descr, fortran_order and shape of a plain array");
  header->data_offset = start + length;
  return *header;
}

void swap_bytes(std::byte* data, size_t bytes, size_t element) {
  for (size_t i = 0; i + element <= bytes; i += element) std::reverse(data + i, data + i + element);
}

// Fortran order: the first axis runs fastest.
Tensor to_row_major(const Tensor& tensor) {
  const int rank = tensor.shape().rank();
  Tensor out(tensor.dtype(), tensor.shape());
  const size_t element = dtype_size(tensor.dtype());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  std::array<int64_t, Shape::kMaxRank> index{};
  std::array<int64_t, Shape::kMaxRank> stride{};
  int64_t step = 1;
  for (int axis = 0; axis < rank; ++axis) {
    stride[static_cast<size_t>(axis)] = step;
    step *= tensor.shape()[axis];
  }
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t source = 0;
    for (int axis = 0; axis < rank; ++axis)
      source += index[static_cast<size_t>(axis)] * stride[static_cast<size_t>(axis)];
    std::memcpy(to + static_cast<size_t>(i) * element, from + static_cast<size_t>(source) * element, element);
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < tensor.shape()[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
  return out;
}

}  // namespace

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  OPENRKNN_TRY(const Header header, read_header(text, name));
  std::string_view code = header.descr;
  const bool big_endian = code.starts_with('>');
  if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) code.remove_prefix(1);
  const auto dtype = dtype_of_code(code);
  if (!dtype) return npy_error(name, fmt::format("elements of type '{}' are not supported", header.descr));
  auto shape = Shape::make(header.dims);
  if (!shape.ok()) return shape.error().within(name);
  const size_t needed = static_cast<size_t>(shape->elements()) * dtype_size(*dtype);
  const size_t there = bytes.size() - header.data_offset;
  if (needed != there)
    return npy_error(name, fmt::format("shape {} of {} needs {} bytes, the file has {}", shape->to_string(),
                                       dtype_name(*dtype), needed, there));
  OPENRKNN_TRY(Tensor tensor, Tensor::make(*dtype, *shape));
  if (needed > 0) std::memcpy(tensor.mutable_data(), text.data() + header.data_offset, needed);
  if (big_endian) swap_bytes(static_cast<std::byte*>(tensor.mutable_data()), needed, dtype_size(*dtype));
  return header.fortran_order && shape->rank() > 1 ? to_row_major(tensor) : tensor;
}

Result<Tensor> read_npy(const std::string& path) {
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  return parse_npy(file.bytes(), path);
}

Status write_npy(const std::string& path, const TensorView& tensor) {
  const auto* type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NpyType& t) { return t.dtype == tensor.dtype; });
  if (type == kTypes.end()) {
    const bool four_bit = tensor.dtype == DType::kInt4 || tensor.dtype == DType::kUInt4;
    if (!four_bit && !is_float(tensor.dtype)) {
      return Error{ErrorCode::kUnsupported, "cannot write the .npy file", path,
                   fmt::format("elements of type {} have no .npy form", dtype_name(tensor.dtype)), ""};
    }
    return write_npy(path, cast(tensor, four_bit ? DType::kInt8 : DType::kFloat32).view());
  }
  std::string dims;
  for (const int64_t d : tensor.shape.dims()) dims += fmt::format("{}, ", d);
  if (tensor.shape.rank() > 1) dims.resize(dims.size() - 2);
  if (tensor.shape.rank() == 1) dims.pop_back();
  const char order = dtype_size(tensor.dtype) == 1 ? '|' : '<';
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, type->code, dims);
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');  // data start at a multiple of 64 bytes
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (tensor.bytes() > 0) bytes.append(static_cast<const char*>(tensor.data), tensor.bytes());
  return write_file_atomically(path, bytes);
}

}  // namespace openrknn::io
