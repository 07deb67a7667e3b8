#include "kernels/cpu/registry.hpp"

#include <algorithm>
#include <utility>

namespace openrknn::cpu {

#define FAMILY(name) void register_##name(Registry&);
#include "cpu_kernel_families.inc"
#undef FAMILY

void Registry::add(std::string_view op, Kernel kernel) {
  const auto at = std::lower_bound(kernels_.begin(), kernels_.end(), op,
                                   [](const auto& a, std::string_view b) { return a.first < b; });
  kernels_.insert(at, {op, kernel});
}

Kernel Registry::find(std::string_view op) const {
  const auto at = std::lower_bound(kernels_.begin(), kernels_.end(), op,
                                   [](const auto& a, std::string_view b) { return a.first < b; });
  return at != kernels_.end() && at->first == op ? at->second : nullptr;
}

std::vector<std::string_view> Registry::names() const {
  std::vector<std::string_view> out;
  for (const auto& [name, kernel] : kernels_) out.push_back(name);
  return out;
}

const Registry& kernels() {
  static const Registry registry = [] {
    Registry made;
#define FAMILY(name) register_##name(made);
#include "cpu_kernel_families.inc"
#undef FAMILY
    return made;
  }();
  return registry;
}

}  // namespace openrknn::cpu
