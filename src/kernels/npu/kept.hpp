// Memory that a thread keeps from call to call: fresh pages cost as much as what is written to them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace openrknn::npu {

// Room for `count` numbers of T with any values. It is taken from the thread for as long as it is in use, since a
// thread that waits for others may begin another call.
template <typename T>
class Kept {
 public:
  explicit Kept(size_t count) : values_(std::move(kept())) {
    if (values_.size() < count) values_.resize(count);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (values_.size() > kept().size()) kept() = std::move(values_);
  }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }

 private:
  static std::vector<T>& kept() {
    thread_local std::vector<T> values;
    return values;
  }
  std::vector<T> values_;
};

}  // namespace openrknn::npu
