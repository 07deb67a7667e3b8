// Named attributes of a node or task: ONNX's kinds, subgraphs aside.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor.hpp"

namespace openrknn {

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor>;

class Attributes {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const Attribute* find(std::string_view name) const;
  template <typename T>
  const T* get(std::string_view name) const {
    const Attribute* a = find(name);
    return a == nullptr ? nullptr : std::get_if<T>(a);
  }
  // The attribute, or the default when it is absent or of another kind (the registry checks kinds before).
  int64_t int_or(std::string_view name, int64_t fallback) const;
  float float_or(std::string_view name, float fallback) const;
  std::string string_or(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> ints_or(std::string_view name, std::vector<int64_t> fallback) const;
  std::vector<float> floats_or(std::string_view name, std::vector<float> fallback) const;

  void set(std::string_view name, Attribute value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  // Numbers keep their kind: without these, a float or a long would silently become an int.
  template <std::integral T>
  void set(std::string_view name, T value) {
    set(name, Attribute(static_cast<int64_t>(value)));
  }
  template <std::floating_point T>
  void set(std::string_view name, T value) {
    set(name, Attribute(static_cast<float>(value)));
  }
  void set(std::string_view name, const char* value) { set(name, Attribute(std::string(value))); }
  void erase(std::string_view name);
  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::map<std::string, Attribute, std::less<>> values_;
};

}  // namespace openrknn
