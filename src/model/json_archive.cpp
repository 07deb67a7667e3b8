#include "model/json_archive.hpp"

#include <cstring>
#include <string_view>

namespace openrknn::model {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::string to_hex(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string out;
  out.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

bool from_hex(const std::string& text, std::string& bytes) {
  if (text.size() % 2 != 0) return false;
  bytes.clear();
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = kHex.find(text[i]);
    const size_t low = kHex.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes += static_cast<char>(high * 16 + low);
  }
  return true;
}

// Length of the UTF-8 sequence that starts at text[i], 0 when there is none (overlong forms and surrogates included).
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  const unsigned char next = byte(i + 1);
  const bool overlong = (lead == 0xE0 && next < 0xA0) || (lead == 0xF0 && next < 0x90);
  const bool beyond = (lead == 0xED && next > 0x9F) || (lead == 0xF4 && next > 0x8F);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

Json encode_tensor(const Tensor& t) {
  return Json{{"dtype", encode(t.dtype())}, {"shape", encode(t.shape())}, {"hex", to_hex(t.data(), t.bytes())}};
}

void decode_tensor(const Json& json, Attribute& value, Trail& trail) {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::string hex, bytes;
  if (!json.is_object()) return trail.fail("an object is expected");
  Reader reader(json, trail);
  reader("dtype", dtype);
  reader("shape", shape);
  reader("hex", hex);
  if (!trail.ok()) return;
  const bool matches = from_hex(hex, bytes) && dtype_size(dtype) != 0 && bytes.size() % dtype_size(dtype) == 0 &&
                       static_cast<int64_t>(bytes.size() / dtype_size(dtype)) == shape.elements();
  if (!matches) return trail.fail("the tensor's data do not match its shape");
  Tensor tensor(dtype, shape);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  value = std::move(tensor);
}

template <class T>
void decode_as(const Json& json, Attribute& value, Trail& trail) {
  T plain{};
  decode(json, plain, trail);
  value = std::move(plain);
}

// Attributes carry their kind as the one key of an object.
using DecodeKind = void (*)(const Json&, Attribute&, Trail&);
struct Kind {
  const char* key;
  DecodeKind decode;
};
constexpr Kind kKinds[] = {{"int", decode_as<int64_t>},
                           {"float", decode_as<float>},
                           {"string", decode_as<std::string>},
                           {"ints", decode_as<std::vector<int64_t>>},
                           {"floats", decode_as<std::vector<float>>},
                           {"strings", decode_as<std::vector<std::string>>},
                           {"tensor", decode_tensor}};

Json encode_attribute(const Attribute& value) {
  const auto body = [](const auto& x) -> Json {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Tensor>) {
      return encode_tensor(x);
    } else {
      return encode(x);
    }
  };
  return Json{{kKinds[value.index()].key, std::visit(body, value)}};
}

}  // namespace

Json encode(const std::string& text) {
  if (is_utf8(text)) return text;
  return Json{{"hex", to_hex(text.data(), text.size())}};
}

void decode(const Json& json, std::string& text, Trail& trail) {
  if (json.is_string()) {
    text = json.get<std::string>();
    return;
  }
  const auto hex = json.is_object() ? json.find("hex") : json.end();
  const bool good =
      json.is_object() && hex != json.end() && hex->is_string() && from_hex(hex->get<std::string>(), text);
  if (!good) trail.fail("a text is expected");
}

Json encode(float x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

void decode(const Json& json, float& x, Trail& trail) {
  if (json.is_number()) {
    x = json.get<float>();
    return;
  }
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  if (text == "nan") {
    x = std::numeric_limits<float>::quiet_NaN();
  } else if (text == "inf" || text == "-inf") {
    x = text == "inf" ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  } else {
    trail.fail("a number is expected");
  }
}

Json encode(DType dtype) { return std::string(dtype_name(dtype)); }

void decode(const Json& json, DType& dtype, Trail& trail) {
  const auto found = json.is_string() ? dtype_from_name(json.get_ref<const std::string&>()) : std::nullopt;
  if (!found) return trail.fail("the name of an element type is expected");
  dtype = *found;
}

Json encode(const Shape& shape) { return encode(shape.to_vector()); }

void decode(const Json& json, Shape& shape, Trail& trail) {
  std::vector<int64_t> dims;
  decode(json, dims, trail);
  if (!trail.ok()) return;
  auto made = Shape::make(dims);
  if (!made.ok()) return trail.fail(made.error().why);
  shape = *made;
}

Json encode(const Attributes& attributes) {
  Json out = Json::object();
  for (const auto& [name, value] : attributes) out[name] = encode_attribute(value);
  return out;
}

void decode(const Json& json, Attributes& attributes, Trail& trail) {
  if (!json.is_object()) return trail.fail("an object is expected");
  for (const auto& [name, value] : json.items()) {
    const Trail::Step step(trail, "." + name);
    if (!value.is_object() || value.size() != 1) return trail.fail("an object with one key is expected");
    const std::string& key = value.begin().key();
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return key == k.key; });
    if (kind == std::end(kKinds)) return trail.fail("unknown kind '" + key.substr(0, 40) + "'");
    Attribute attribute;
    kind->decode(value.begin().value(), attribute, trail);
    if (!trail.ok()) return;
    attributes.set(name, std::move(attribute));
  }
}

}  // namespace openrknn::model
