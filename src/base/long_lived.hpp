// Memory for what is made once and read in every run, such as packed weights. Large pieces are cut from common blocks
// of huge pages, where the system has them: first writes to fresh small pages cost as much as packing does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace openrknn {

// At least `bytes` bytes of anything, at a multiple of 64; throws std::bad_alloc. A block returns to the system when
// all of its pieces have been freed.
void* allocate_long_lived(size_t bytes);
void free_long_lived(void* piece) noexcept;

// For vectors. resize() leaves new elements as they are: they are all to be written.
template <typename T>
struct LongLived {
  using value_type = T;

  LongLived() = default;
  template <typename U>
  explicit LongLived(const LongLived<U>&) {}

  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_long_lived(n * sizeof(T)));
  }
  void deallocate(T* piece, size_t) noexcept { free_long_lived(piece); }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U{std::forward<Args>(args)...};
    }
  }
  template <typename U>
  bool operator==(const LongLived<U>&) const {
    return true;
  }
};

}  // namespace openrknn
