// One node beside a target's limits: what the rules of all operator families share.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/rules.hpp"

namespace openrknn::quant {

struct Rule {
  const Graph& graph;
  const Node& node;
  const target::Target& target;
  Format format;

  const Shape& shape(size_t i) const { return *graph.value(node.inputs[i]).shape; }
  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i].valid(); }
  const Shape& out() const { return *graph.value(node.outputs[0]).shape; }

  // A refusal when value exceeds the named limit.
  std::optional<Refusal> at_most(std::string_view limit, int64_t value, std::string_view what) const {
    const target::Limit& l = target.limit(limit);
    if (value <= l.value) return std::nullopt;
    return Refusal{std::string(limit), fmt::format("{} is {}, at most {} ({})", what, value, l.value, l.source)};
  }
  Refusal unsupported(std::string_view what) const {
    return Refusal{"npu.ops", fmt::format("{} ({})", what, "sdk.md C.2")};
  }
};

// The first refusal of several checks.
template <typename... Checks>
std::optional<Refusal> first_of(Checks&&... checks) {
  std::optional<Refusal> refusal;
  (void)(((refusal = checks), refusal.has_value()) || ...);
  return refusal;
}

inline int64_t largest(const std::vector<int64_t>& v) { return v.empty() ? 0 : *std::max_element(v.begin(), v.end()); }

// Negative pads cut the tensor; the hardware's fields hold none.
inline std::optional<Refusal> negative_pads(const std::vector<int64_t>& pads) {
  for (const int64_t p : pads) {
    if (p < 0) return Refusal{"conv.pad.max", fmt::format("a pad is {}, at least 0 (npu.md 9)", p)};
  }
  return std::nullopt;
}

// Conv and ConvTranspose (rules_conv.cpp).
std::optional<Refusal> convolution_refusal(const Rule& rule);

}  // namespace openrknn::quant
