#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <type_traits>

#include "base/file.hpp"
#include "ir/text.hpp"

namespace openrknn {
namespace {

bool is_plain(std::string_view name) {
  constexpr std::string_view kOthers = "_.-/#$@";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != std::string_view::npos;
  });
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string name_text(std::string_view name) {
  // "_" alone stands for an absent operand.
  return "%" + (is_plain(name) ? std::string(name) : quoted(name));
}

// Shortest text that reads back as the same number; always with a point, an exponent or a word.
template <typename T>
std::string float_text(T x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string item_text(const T& item) {
  if constexpr (std::is_same_v<T, std::string>)
    return quoted(item);
  else if constexpr (std::is_floating_point_v<T>)
    return float_text(item);
  else
    return fmt::format("{}", item);
}

template <typename List>
std::string list_text(const List& items) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ", " : "") + item_text(items[i]);
  return out + "]";
}

std::string type_text(DType dtype, const std::optional<Shape>& shape) {
  std::string out = std::string(dtype_name(dtype)) + "[";
  if (!shape) return out + "?]";
  for (int i = 0; i < shape->rank(); ++i) out += fmt::format("{}{}", i > 0 ? "," : "", (*shape)[i]);
  return out + "]";
}

std::string elements_text(const Tensor& tensor) {
  std::string out = "{";
  const auto add = [&](const std::string& text) { out += (out.size() > 1 ? ", " : "") + text; };
  if (tensor.dtype() == DType::kFloat64) {
    for (const double x : tensor.as<double>()) add(float_text(x));
  } else if (tensor.dtype() == DType::kUInt64) {
    for (const uint64_t x : tensor.as<uint64_t>()) add(fmt::format("{}", x));
  } else if (is_float(tensor.dtype())) {
    for (const double x : to_doubles(tensor.view())) add(float_text(static_cast<float>(x)));
  } else {
    for (const int64_t x : to_ints(tensor.view())) add(fmt::format("{}", x));
  }
  return out + "}";
}

std::string content_text(const Tensor& tensor, const PrintOptions& options) {
  const bool readable = tensor.dtype() == DType::kBool || is_integer(tensor.dtype()) ||
                        (is_float(tensor.dtype()) && dtype_size(tensor.dtype()) >= 2);
  if (readable && tensor.elements() <= options.max_constant_elements) return elements_text(tensor);
  const auto* bytes = static_cast<const std::byte*>(tensor.data());
  return fmt::format("<{} values, {:016x}>", tensor.elements(), checksum({bytes, tensor.bytes()}));
}

std::string attribute_text(const Attribute& attribute, const PrintOptions& options) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return type_text(v.dtype(), v.shape()) + content_text(v, options);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          return (v.empty() ? "floats" : "") + list_text(v);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return (v.empty() ? "strings" : "") + list_text(v);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return list_text(v);
        } else {
          return item_text(v);
        }
      },
      attribute);
}

std::string quant_text(const QuantParams& q) {
  std::string granularity = "tensor";
  if (q.granularity == Granularity::kChannel) granularity = fmt::format("channel {}", q.axis);
  if (q.granularity == Granularity::kGroup) granularity = fmt::format("group {} {}", q.axis, q.group_size);
  return fmt::format(" quant({}, {}, {}, {})", dtype_name(q.dtype), granularity, list_text(q.scales),
                     list_text(q.zero_points));
}

// "%x: float32[1,3]" and what belongs to the value.
std::string declaration(const Value& v) {
  std::string out = name_text(v.name);
  if (v.dtype != DType::kUndefined || v.shape) out += ": " + type_text(v.dtype, v.shape);
  if (v.quant) out += quant_text(*v.quant);
  if (!v.aliases.empty()) out += " aka " + list_text(v.aliases);
  return out;
}

std::string node_text(const Graph& graph, const Node& node, const PrintOptions& options) {
  std::string out;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    out += (i > 0 ? ", " : "") + (node.outputs[i].valid() ? declaration(graph.value(node.outputs[i])) : "_");
  }
  out += " = " + node.op + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    out += (i > 0 ? ", " : "") + (node.inputs[i].valid() ? name_text(graph.value(node.inputs[i]).name) : "_");
  }
  out += ")";
  if (!node.attributes.empty()) {
    std::string list;
    for (const auto& [name, value] : node.attributes)
      list += (list.empty() ? "" : ", ") + name + "=" + attribute_text(value, options);
    out += " {" + list + "}";
  }
  const bool default_name =
      !node.outputs.empty() && node.outputs[0].valid() && graph.value(node.outputs[0]).name == node.name;
  if (!default_name) out += " " + quoted(node.name);
  const auto& from = node.source.nodes;
  if (!from.empty() && !(from.size() == 1 && from[0] == node.name)) out += " from " + list_text(from);
  return out;
}

}  // namespace

std::string print_graph(const Graph& graph, const PrintOptions& options) {
  std::string out = "graph " + quoted(graph.name) + " {\n";
  for (const ValueId id : graph.inputs()) out += "  input " + declaration(graph.value(id)) + "\n";
  for (const ValueId id : graph.values()) {
    const Tensor* constant = graph.constant(id);
    if (constant != nullptr)
      out += "  const " + declaration(graph.value(id)) + " = " + content_text(*constant, options) + "\n";
  }
  const auto order = graph.topological_order();
  for (const NodeId id : order.ok() ? *order : graph.nodes())
    out += "  " + node_text(graph, graph.node(id), options) + "\n";
  for (const ValueId id : graph.outputs()) out += "  output " + name_text(graph.value(id).name) + "\n";
  return out + "}\n";
}

}  // namespace openrknn
