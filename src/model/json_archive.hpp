// Two archives over one list of fields: Writer makes JSON of a structure, Reader fills a structure from hostile JSON
// and remembers the first thing that was wrong. A structure is described once, by fields(archive, structure).
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace openrknn::model {

// Floats are fp32 throughout, so they are written with the fewest digits that read back to the same fp32.
using Json = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, float>;

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// Names of an enumeration's values in order: specialise with `static constexpr std::array names{...}`.
template <class E>
struct EnumNames;

// The first error of a reading, with the path of the field: "tasks[3].conv.kernel".
class Trail {
 public:
  bool ok() const { return why_.empty(); }
  void fail(std::string why) {
    if (!ok()) return;
    why_ = std::move(why);
    where_ = path_;
  }
  const std::string& where() const { return where_; }
  const std::string& why() const { return why_; }

  class Step {
   public:
    Step(Trail& trail, const std::string& name) : trail_(trail), length_(trail.path_.size()) { trail.path_ += name; }
    ~Step() { trail_.path_.resize(length_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Trail& trail_;
    size_t length_;
  };

 private:
  std::string path_, where_, why_;
};

Json encode(const std::string& text);  // bytes that are not UTF-8 become {"hex": "..."}
Json encode(float x);                  // infinities and NaN become strings
Json encode(DType dtype);
Json encode(const Shape& shape);
Json encode(const Attributes& attributes);
void decode(const Json& json, std::string& text, Trail& trail);
void decode(const Json& json, float& x, Trail& trail);
void decode(const Json& json, DType& dtype, Trail& trail);
void decode(const Json& json, Shape& shape, Trail& trail);
void decode(const Json& json, Attributes& attributes, Trail& trail);

class Writer {
 public:
  template <class T>
  void operator()(const char* key, const T& value);
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  Reader(const Json& json, Trail& trail) : json_(json), trail_(trail) {}
  template <class T>
  void operator()(const char* key, T& value);

 private:
  const Json& json_;
  Trail& trail_;
};

// Declared together, since each may call any other and their arguments' namespaces do not lead here.
Json encode(bool x);
template <std::integral T>
Json encode(T x);
template <class E>
requires std::is_enum_v<E> Json encode(E e);
template <class T>
Json encode(const std::vector<T>& items);
template <class T, size_t N>
Json encode(const std::array<T, N>& items);
template <class T>
Json encode(const std::optional<T>& item);
template <class T>
requires std::is_class_v<T> Json encode(const T& structure);
void decode(const Json& json, bool& x, Trail& trail);
template <std::integral T>
void decode(const Json& json, T& x, Trail& trail);
template <class E>
requires std::is_enum_v<E>
void decode(const Json& json, E& e, Trail& trail);
template <class T>
void decode(const Json& json, std::vector<T>& items, Trail& trail);
template <class T, size_t N>
void decode(const Json& json, std::array<T, N>& items, Trail& trail);
template <class T>
void decode(const Json& json, std::optional<T>& item, Trail& trail);
template <class T>
requires std::is_class_v<T>
void decode(const Json& json, T& structure, Trail& trail);

inline Json encode(bool x) { return x; }

template <std::integral T>
Json encode(T x) {
  return static_cast<int64_t>(x);
}

template <class E>
requires std::is_enum_v<E> Json encode(E e) { return EnumNames<E>::names[static_cast<size_t>(e)]; }

template <class T>
Json encode(const std::vector<T>& items) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(encode(item));
  return out;
}

template <class T, size_t N>
Json encode(const std::array<T, N>& items) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(encode(item));
  return out;
}

template <class T>
Json encode(const std::optional<T>& item) {
  return item ? encode(*item) : Json(nullptr);
}

template <class T>
requires std::is_class_v<T> Json encode(const T& structure) {
  Writer writer;
  fields(writer, structure);
  return writer.take();
}

inline void decode(const Json& json, bool& x, Trail& trail) {
  if (!json.is_boolean()) return trail.fail("true or false is expected");
  x = json.get<bool>();
}

template <std::integral T>
void decode(const Json& json, T& x, Trail& trail) {
  if (!json.is_number_integer()) return trail.fail("an integer is expected");
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return trail.fail("the integer is too large");
  const auto wide = json.get<int64_t>();
  if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max())
    return trail.fail("the integer is out of range: " + std::to_string(wide));
  x = static_cast<T>(wide);
}

template <class E>
requires std::is_enum_v<E>
void decode(const Json& json, E& e, Trail& trail) {
  if (!json.is_string()) return trail.fail("a name is expected");
  const auto& text = json.get_ref<const std::string&>();
  for (size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
    if (text == EnumNames<E>::names[i]) {
      e = static_cast<E>(i);
      return;
    }
  }
  trail.fail("unknown name '" + text.substr(0, 40) + "'");
}

template <class T>
void decode(const Json& json, std::vector<T>& items, Trail& trail) {
  if (!json.is_array()) return trail.fail("a list is expected");
  items.clear();
  items.reserve(json.size());
  for (size_t i = 0; i < json.size() && trail.ok(); ++i) {
    const Trail::Step step(trail, "[" + std::to_string(i) + "]");
    items.emplace_back();
    decode(json[i], items.back(), trail);
  }
}

template <class T, size_t N>
void decode(const Json& json, std::array<T, N>& items, Trail& trail) {
  if (!json.is_array() || json.size() != N) return trail.fail("a list of " + std::to_string(N) + " is expected");
  for (size_t i = 0; i < N; ++i) decode(json[i], items[i], trail);
}

template <class T>
void decode(const Json& json, std::optional<T>& item, Trail& trail) {
  item.reset();
  if (json.is_null()) return;
  item.emplace();
  decode(json, *item, trail);
}

template <class T>
requires std::is_class_v<T>
void decode(const Json& json, T& structure, Trail& trail) {
  if (!json.is_object()) return trail.fail("an object is expected");
  Reader reader(json, trail);
  fields(reader, structure);
}

template <class T>
void Writer::operator()(const char* key, const T& value) {
  json_[key] = encode(value);
}

template <class T>
void Reader::operator()(const char* key, T& value) {
  if (!trail_.ok()) return;
  const Trail::Step step(trail_, std::string(".") + key);
  const auto at = json_.find(key);
  if (at == json_.end()) return trail_.fail("the field is missing");
  decode(*at, value, trail_);
}

}  // namespace openrknn::model
