#include "core/attributes.hpp"

namespace openrknn {

const Attribute* Attributes::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

int64_t Attributes::int_or(std::string_view name, int64_t fallback) const {
  const auto* v = get<int64_t>(name);
  return v == nullptr ? fallback : *v;
}

float Attributes::float_or(std::string_view name, float fallback) const {
  const auto* v = get<float>(name);
  return v == nullptr ? fallback : *v;
}

std::string Attributes::string_or(std::string_view name, std::string_view fallback) const {
  const auto* v = get<std::string>(name);
  return v == nullptr ? std::string(fallback) : *v;
}

std::vector<int64_t> Attributes::ints_or(std::string_view name, std::vector<int64_t> fallback) const {
  const auto* v = get<std::vector<int64_t>>(name);
  return v == nullptr ? std::move(fallback) : *v;
}

std::vector<float> Attributes::floats_or(std::string_view name, std::vector<float> fallback) const {
  const auto* v = get<std::vector<float>>(name);
  return v == nullptr ? std::move(fallback) : *v;
}

void Attributes::erase(std::string_view name) {
  const auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

}  // namespace openrknn
