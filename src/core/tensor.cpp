#include "core/tensor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <type_traits>

#include "base/half.hpp"
#include "base/memory.hpp"

namespace openrknn {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<std::byte> allocate(size_t bytes, bool zeros) {
  const size_t rounded = std::max<size_t>(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!reserve_memory(static_cast<int64_t>(rounded))) return nullptr;
  auto* p = static_cast<std::byte*>(::operator new (rounded, std::align_val_t{kAlignment}, std::nothrow));
  if (p == nullptr) {
    release_memory(static_cast<int64_t>(rounded));
    return nullptr;
  }
  if (zeros) std::memset(p, 0, rounded);
  return {p, [rounded](std::byte* q) {
            ::operator delete (q, std::align_val_t{kAlignment});
            release_memory(static_cast<int64_t>(rounded));
          }};
}

// Calls f(span<const T>, to_value) with the element type of the view.
template <typename F>
void visit(const TensorView& v, F&& f) {
  const auto plain = [](auto x) { return x; };
  switch (v.dtype) {
    case DType::kFloat32:
      return f(v.as<float>(), plain);
    case DType::kFloat64:
      return f(v.as<double>(), plain);
    case DType::kFloat16:
      return f(v.as<uint16_t>(), [](uint16_t h) { return half_to_float(h); });
    case DType::kBFloat16:
      return f(v.as<uint16_t>(), [](uint16_t h) { return bfloat16_to_float(h); });
    case DType::kInt8:
    case DType::kInt4:
      return f(v.as<int8_t>(), plain);
    case DType::kInt16:
      return f(v.as<int16_t>(), plain);
    case DType::kInt32:
      return f(v.as<int32_t>(), plain);
    case DType::kInt64:
      return f(v.as<int64_t>(), plain);
    case DType::kUInt8:
    case DType::kUInt4:
      return f(v.as<uint8_t>(), plain);
    case DType::kUInt16:
      return f(v.as<uint16_t>(), plain);
    case DType::kUInt32:
      return f(v.as<uint32_t>(), plain);
    case DType::kUInt64:
      return f(v.as<uint64_t>(), plain);
    case DType::kBool:
      return f(v.as<uint8_t>(), [](uint8_t b) { return static_cast<uint8_t>(b != 0); });
    default:
      return;
  }
}

template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;  // undefined in C++; one fixed answer
    const auto lowest = static_cast<double>(std::numeric_limits<To>::min());
    const auto highest = static_cast<double>(std::numeric_limits<To>::max());
    if (static_cast<double>(x) <= lowest) return std::numeric_limits<To>::min();
    if (static_cast<double>(x) >= highest) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(x);
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {
  storage_ = allocate(bytes(), true);
  if (storage_ == nullptr) throw std::bad_alloc();
}

Result<Tensor> Tensor::make(DType dtype, const Shape& shape) { return allocated(dtype, shape, true); }

Result<Tensor> Tensor::uninitialized(DType dtype, const Shape& shape) { return allocated(dtype, shape, false); }

Result<Tensor> Tensor::allocated(DType dtype, const Shape& shape, bool zeros) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.storage_ = allocate(t.bytes(), zeros);
  if (t.storage_ == nullptr) {
    return Error{ErrorCode::kResource, "not enough memory", shape.to_string(),
                 fmt::format("{} bytes are needed, all tensors together may take {}", t.bytes(), memory_budget()),
                 "use a smaller model or input, or allow more with --memory-budget"};
  }
  return t;
}

Tensor Tensor::copy_of(const TensorView& view) {
  Tensor t(view.dtype, view.shape);
  if (t.bytes() > 0) std::memcpy(t.storage_.get(), view.data, t.bytes());
  return t;
}

void* Tensor::mutable_data() {
  if (storage_ != nullptr && storage_.use_count() > 1) *this = copy_of(view());
  return storage_.get();
}

Tensor Tensor::reshaped(const Shape& shape) const {
  assert(shape.elements() == elements());
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

std::vector<int64_t> to_ints(const TensorView& view) {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(view.elements()));
  visit(view, [&](auto values, auto decode) {
    for (const auto x : values) out.push_back(convert<int64_t>(decode(x)));
  });
  return out;
}

std::vector<double> to_doubles(const TensorView& view) {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(view.elements()));
  visit(view, [&](auto values, auto decode) {
    for (const auto x : values) out.push_back(static_cast<double>(decode(x)));
  });
  return out;
}

Tensor cast(const TensorView& view, DType dtype) {
  if (view.dtype == dtype) return Tensor::copy_of(view);
  Tensor out(dtype, view.shape);
  const auto fill = [&](auto tag, auto encode) {
    using To = decltype(tag);
    To* to = static_cast<To*>(out.mutable_data());
    visit(view, [&](auto values, auto decode) {
      for (size_t i = 0; i < values.size(); ++i) to[i] = encode(decode(values[i]));
    });
  };
  switch (dtype) {
    case DType::kFloat32:
      fill(float{}, [](auto x) { return static_cast<float>(x); });
      break;
    case DType::kFloat64:
      fill(double{}, [](auto x) { return static_cast<double>(x); });
      break;
    case DType::kFloat16:
      fill(uint16_t{}, [](auto x) { return float_to_half(static_cast<float>(x)); });
      break;
    case DType::kBFloat16:
      fill(uint16_t{}, [](auto x) { return float_to_bfloat16(static_cast<float>(x)); });
      break;
    case DType::kInt8:
      fill(int8_t{}, [](auto x) { return convert<int8_t>(x); });
      break;
    case DType::kInt4:  // the low four bits, as integers of a byte or more are cut
      fill(int8_t{}, [](auto x) { return static_cast<int8_t>(((convert<int64_t>(x) & 15) ^ 8) - 8); });
      break;
    case DType::kUInt4:
      fill(uint8_t{}, [](auto x) { return static_cast<uint8_t>(convert<int64_t>(x) & 15); });
      break;
    case DType::kInt16:
      fill(int16_t{}, [](auto x) { return convert<int16_t>(x); });
      break;
    case DType::kInt32:
      fill(int32_t{}, [](auto x) { return convert<int32_t>(x); });
      break;
    case DType::kInt64:
      fill(int64_t{}, [](auto x) { return convert<int64_t>(x); });
      break;
    case DType::kUInt8:
      fill(uint8_t{}, [](auto x) { return convert<uint8_t>(x); });
      break;
    case DType::kUInt16:
      fill(uint16_t{}, [](auto x) { return convert<uint16_t>(x); });
      break;
    case DType::kUInt32:
      fill(uint32_t{}, [](auto x) { return convert<uint32_t>(x); });
      break;
    case DType::kUInt64:
      fill(uint64_t{}, [](auto x) { return convert<uint64_t>(x); });
      break;
    case DType::kBool:
      fill(uint8_t{}, [](auto x) { return static_cast<uint8_t>(x != 0); });
      break;
    default:
      break;
  }
  return out;
}

}  // namespace openrknn
