// Dense row-major tensors: an owning one with shared, copy-on-write storage, and views.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace openrknn {

// Read-only view of row-major elements. A view without data stands for an absent optional operand.
struct TensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  const void* data = nullptr;

  bool present() const { return dtype != DType::kUndefined; }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }
  template <typename T>
  std::span<const T> as() const {
    assert(dtype_size(dtype) == sizeof(T));
    return {static_cast<const T*>(data), static_cast<size_t>(elements())};
  }
};

struct MutableTensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  void* data = nullptr;

  bool present() const { return dtype != DType::kUndefined; }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }
  template <typename T>
  std::span<T> as() const {
    assert(dtype_size(dtype) == sizeof(T));
    return {static_cast<T*>(data), static_cast<size_t>(elements())};
  }
  operator TensorView() const { return {dtype, shape, data}; }  // NOLINT(google-explicit-constructor)
};

class Tensor {
 public:
  Tensor() = default;
  // Zero-filled, 64-byte aligned; throws std::bad_alloc beyond the memory budget (base/memory.hpp).
  Tensor(DType dtype, const Shape& shape);
  // The same, but an allocation that fails is an Error naming the size.
  static Result<Tensor> make(DType dtype, const Shape& shape);
  // The same with elements of any value, for what is written whole before it is read.
  static Result<Tensor> uninitialized(DType dtype, const Shape& shape);
  template <typename T>
  static Tensor from(const Shape& shape, std::span<const T> values) {
    Tensor t(dtype_of<T>(), shape);
    assert(static_cast<int64_t>(values.size()) == shape.elements());
    if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), values.size_bytes());
    return t;
  }
  template <typename T>
  static Tensor from(const Shape& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }
  // A copy of what a view shows.
  static Tensor copy_of(const TensorView& view);
  template <typename T>
  static Tensor scalar(T value) {
    return from<T>(Shape{}, std::span<const T>(&value, 1));
  }
  static Tensor ints(const std::vector<int64_t>& values) {
    return from<int64_t>(Shape{static_cast<int64_t>(values.size())}, values);
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_size(dtype_); }
  const void* data() const { return storage_.get(); }
  // Detaches from other Tensors that share the storage, then gives write access.
  void* mutable_data();
  template <typename T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  template <typename T>
  std::span<T> mutable_as() {
    return MutableTensorView{dtype_, shape_, mutable_data()}.as<T>();
  }
  TensorView view() const { return {dtype_, shape_, storage_.get()}; }
  MutableTensorView mutable_view() { return {dtype_, shape_, mutable_data()}; }
  // The same elements under another shape of equal size; storage is shared.
  Tensor reshaped(const Shape& shape) const;
  bool defined() const { return dtype_ != DType::kUndefined; }
  // No other Tensor shares the storage: writing needs no copy.
  bool unique() const { return storage_.use_count() <= 1; }

 private:
  static Result<Tensor> allocated(DType dtype, const Shape& shape, bool zeros);

  DType dtype_ = DType::kUndefined;
  Shape shape_;
  std::shared_ptr<std::byte> storage_;
};

// Elements as int64 (integers and bool) or double (any numeric type), in row-major order.
std::vector<int64_t> to_ints(const TensorView& view);
std::vector<double> to_doubles(const TensorView& view);
// Converts between numeric types with C++ semantics (float to integer truncates, to bool tests for non-zero; halves
// round to even).
Tensor cast(const TensorView& view, DType dtype);

}  // namespace openrknn
