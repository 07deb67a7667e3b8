// Reads one JSON object key by key and remembers which keys were asked for, so that the others can be reported.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/result.hpp"

namespace openrknn::target {

// The first error wins; later reads return zero values. finish() reports it, or the first unknown key.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string where);

  bool has(const std::string& key) const { return object_ != nullptr && object_->contains(key); }
  std::string text(const std::string& key);
  int64_t integer(const std::string& key, int64_t smallest);
  double positive(const std::string& key);
  bool boolean(const std::string& key);
  std::vector<std::string> texts(const std::string& key);
  // An object; an empty one (and an error) when it is missing.
  const nlohmann::json& object(const std::string& key);
  void skip(const std::string& key) { asked_.insert(key); }
  void fail(const std::string& key, const std::string& why);
  Status finish();

 private:
  const nlohmann::json* find(const std::string& key);

  const nlohmann::json* object_ = nullptr;
  std::string where_;
  std::set<std::string> asked_;
  std::optional<Error> error_;
};

}  // namespace openrknn::target
