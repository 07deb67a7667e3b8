#include <algorithm>

#include "opt/pass.hpp"

namespace openrknn::opt {

bool RewriteLog::allow(std::string_view rule, std::string_view what) {
  if (static_cast<int64_t>(entries_.size()) >= limit) return false;
  if (skipped.empty()) return true;
  std::string key(rule);
  key.append(": ").append(what);
  return std::find(skipped.begin(), skipped.end(), key) == skipped.end();
}

void RewriteLog::applied(std::string_view rule, std::string what) {
  entries_.push_back({std::string(rule), std::move(what)});
}

}  // namespace openrknn::opt
