#include "model/codec.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"

namespace openrknn::model {
namespace {

// What a padding lane of the tensor holds, as the bits of one element: the zero point of an int8 tensor, else zero.
uint64_t padding_bits(const TensorDesc& t) {
  if (t.dtype != DType::kInt8 || !t.quant) return 0;
  return static_cast<uint8_t>(static_cast<int8_t>(t.quant->zero_point()));
}

template <typename T>
T padding_element(const TensorDesc& t) {
  return static_cast<T>(padding_bits(t));
}

int64_t planes(const TensorDesc& t) { return ceil_div(t.cube.c, t.c2); }

// Calls row(n, h) for every row of the cube.
template <typename F>
void for_rows(const Cube& cube, F&& row) {
  for (int64_t n = 0; n < cube.n; ++n) {
    for (int64_t h = 0; h < cube.h; ++h) row(n, h);
  }
}

template <typename T>
void unpack_as(const TensorDesc& t, const std::byte* base, T* plain) {
  const Cube& k = t.cube;
  const int64_t lanes = t.layout == Layout::kNHWC ? k.c : t.c2;
  for_rows(k, [&](int64_t n, int64_t h) {
    for (int64_t c = 0; c < k.c; ++c) {
      T* to = plain + ((n * k.c + c) * k.h + h) * k.w;
      const std::byte* from = base + t.offset + element_offset(t, n, c, h, 0);
      for (int64_t w = 0; w < k.w; ++w)
        std::memcpy(to + w, from + w * lanes * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  });
}

template <typename T>
void pack_as(const TensorDesc& t, const T* plain, std::byte* base) {
  const Cube& k = t.cube;
  const bool pixels = t.layout == Layout::kNHWC;
  const int64_t lanes = pixels ? k.c : t.c2;
  const int64_t channels = pixels ? k.c : planes(t) * t.c2;
  const T padding = padding_element<T>(t);
  for_rows(k, [&](int64_t n, int64_t h) {
    for (int64_t c = 0; c < channels; ++c) {
      const T* from = c < k.c ? plain + ((n * k.c + c) * k.h + h) * k.w : nullptr;
      std::byte* to = base + t.offset + element_offset(t, n, c, h, 0);
      for (int64_t w = 0; w < k.w; ++w) {
        std::memcpy(to + w * lanes * static_cast<int64_t>(sizeof(T)), from != nullptr ? from + w : &padding, sizeof(T));
      }
    }
  });
}

// Calls f with a null pointer of an unsigned type of the element's size.
template <typename F>
void with_element(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1:
      return f(static_cast<uint8_t*>(nullptr));
    case 2:
      return f(static_cast<uint16_t*>(nullptr));
    case 4:
      return f(static_cast<uint32_t*>(nullptr));
    case 8:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      return;
  }
}

}  // namespace

Cube cube_of(const Shape& shape) {
  const int rank = shape.rank();
  switch (rank) {
    case 0:
      return {};
    case 1:
      return {1, shape[0], 1, 1};
    case 2:
      return {shape[0], shape[1], 1, 1};
    case 3:
      return {shape[0], shape[1], 1, shape[2]};
    default:
      return {shape.elements(0, rank - 3), shape[rank - 3], shape[rank - 2], shape[rank - 1]};
  }
}

int64_t set_dense_strides(TensorDesc& t, int pixel_align, int width_align) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  t.surface_stride = t.batch_stride = t.row_stride = 0;
  if (t.layout == Layout::kPlain) return t.shape.elements() * size;
  if (t.layout == Layout::kNHWC) {
    t.row_stride = align_up(t.cube.w, width_align) * t.cube.c * size;
    t.batch_stride = t.cube.h * t.row_stride;
  } else {
    t.row_stride = t.cube.w * t.c2 * size;
    t.surface_stride = align_up(t.cube.h * t.cube.w, pixel_align) * t.c2 * size;
    t.batch_stride = planes(t) * t.surface_stride;
  }
  return t.cube.n * t.batch_stride;
}

void unpack_tensor(const TensorDesc& t, const std::byte* base, void* plain) {
  if (t.layout == Layout::kPlain) {
    std::memcpy(plain, base + t.offset, static_cast<size_t>(t.shape.elements()) * dtype_size(t.dtype));
    return;
  }
  with_element(t.dtype, [&](auto* tag) { unpack_as(t, base, static_cast<decltype(tag)>(plain)); });
}

void pack_tensor(const TensorDesc& t, const void* plain, std::byte* base) {
  if (t.layout == Layout::kPlain) {
    std::memcpy(base + t.offset, plain, static_cast<size_t>(t.shape.elements()) * dtype_size(t.dtype));
    return;
  }
  with_element(t.dtype,
               [&](auto* tag) { pack_as(t, static_cast<const std::remove_pointer_t<decltype(tag)>*>(plain), base); });
}

}  // namespace openrknn::model
