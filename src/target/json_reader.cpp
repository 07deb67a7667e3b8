#include "target/json_reader.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace openrknn::target {

using nlohmann::json;

JsonReader::JsonReader(const json& object, std::string where) : where_(std::move(where)) {
  if (object.is_object()) {
    object_ = &object;
  } else {
    fail("", "an object is needed");
  }
}

void JsonReader::fail(const std::string& key, const std::string& why) {
  if (error_) return;
  const std::string place = key.empty() ? where_ : where_ + ", key '" + key + "'";
  error_ = Error{ErrorCode::kFormat, "cannot read a target description", place, why, "see docs/ADDING.md"};
}

const json* JsonReader::find(const std::string& key) {
  asked_.insert(key);
  if (object_ == nullptr) return nullptr;
  const auto it = object_->find(key);
  if (it == object_->end()) {
    fail(key, "it is missing");
    return nullptr;
  }
  return &*it;
}

std::string JsonReader::text(const std::string& key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
    fail(key, "a text is needed");
    return {};
  }
  return value->get<std::string>();
}

int64_t JsonReader::integer(const std::string& key, int64_t smallest) {
  const json* value = find(key);
  if (value == nullptr) return 0;
  if (!value->is_number_integer() || value->get<int64_t>() < smallest) {
    fail(key, "a whole number of at least " + std::to_string(smallest) + " is needed, not " + value->dump());
    return 0;
  }
  return value->get<int64_t>();
}

double JsonReader::positive(const std::string& key) {
  const json* value = find(key);
  if (value == nullptr) return 0;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0) {
    fail(key, "a number above 0 is needed, not " + value->dump());
    return 0;
  }
  return value->get<double>();
}

bool JsonReader::boolean(const std::string& key) {
  const json* value = find(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    fail(key, "true or false is needed, not " + value->dump());
    return false;
  }
  return value->get<bool>();
}

std::vector<std::string> JsonReader::texts(const std::string& key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> out;
  if (value->is_array()) {
    for (const json& item : *value) {
      if (item.is_string()) out.push_back(item.get<std::string>());
    }
  }
  if (!value->is_array() || out.size() != value->size()) fail(key, "a list of texts is needed");
  return out;
}

const json& JsonReader::object(const std::string& key) {
  static const json kEmpty = json::object();
  const json* value = find(key);
  if (value == nullptr) return kEmpty;
  if (!value->is_object()) {
    fail(key, "an object is needed");
    return kEmpty;
  }
  return *value;
}

Status JsonReader::finish() {
  if (!error_ && object_ != nullptr) {
    for (const auto& [key, value] : object_->items()) {
      if (!asked_.contains(key)) fail(key, "the key is unknown");
    }
  }
  if (error_) return *error_;
  return {};
}

}  // namespace openrknn::target
