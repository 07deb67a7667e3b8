#include "target/target.hpp"

#include <algorithm>
#include <cassert>

#include "base/text.hpp"
#include "target/loader.hpp"

namespace openrknn::target {
namespace {

const Result<std::vector<Target>>& loaded() {
  static const Result<std::vector<Target>> kTargets = load_targets(embedded_sources());
  return kTargets;
}

}  // namespace

bool Target::supports(std::string_view program_dtype) const {
  return std::find(dtypes.begin(), dtypes.end(), program_dtype) != dtypes.end();
}

const Limit& Target::limit(std::string_view wanted) const {
  static const Limit kMissing{0, "no such limit"};
  const auto it = limits.find(wanted);
  assert(it != limits.end() && "the loader checks that every limit of limit_names() is there");
  return it == limits.end() ? kMissing : it->second;
}

bool Target::npu_runs(std::string_view op, DType dtype) const {
  const auto it = npu_ops.find(std::string(op));
  if (it == npu_ops.end()) return false;
  return std::find(it->second.begin(), it->second.end(), dtype_name(dtype)) != it->second.end();
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Target& target : all()) out.push_back(target.name);
  return out;
}

const std::vector<Target>& all() {
  static const std::vector<Target> kNone;
  return loaded().ok() ? loaded().value() : kNone;
}

Result<const Target*> find(std::string_view name) {
  if (!loaded().ok()) return loaded().error();
  const std::string wanted = to_lower(name);
  for (const Target& target : all()) {
    if (target.name == wanted) return &target;
  }
  return Error{ErrorCode::kNotFound, "unknown target", "target",
               "'" + std::string(name) + "' is no SoC that is known here",
               "known targets: " + join_names(names(), 100)};
}

}  // namespace openrknn::target
