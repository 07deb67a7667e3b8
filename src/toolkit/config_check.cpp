// Values of a configuration: what is known, what comes later, what is nonsense.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "plan/planner.hpp"
#include "toolkit/build.hpp"

namespace openrknn::facade {
namespace {

using Names = std::vector<std::string>;

Status choose(const std::string& argument, const std::string& value, const Names& now, const Names& later) {
  if (std::find(now.begin(), now.end(), value) != now.end()) return {};
  if (std::find(later.begin(), later.end(), value) != later.end()) {
    return Error{ErrorCode::kUnsupported, "not there yet", argument + " " + value,
                 "this version of openrknn does not implement it", "use " + join_names(now)};
  }
  return Error{ErrorCode::kInvalidArgument, "unknown value", argument + " " + value, "known: " + join_names(now),
               later.empty() ? "choose one of them" : "planned for later: " + join_names(later)};
}

const Names kDtypes{"w8a8", "fp16"};
const Names kDtypesLater{"w8a16", "w4a16", "w16a16i_dfp", "w16a16i", "w4a8"};

}  // namespace

Status check_config(const toolkit::Config& config) {
  OPENRKNN_CHECK_OK(target::find(config.target));
  OPENRKNN_CHECK_OK(choose("--dtype", config.dtype, kDtypes, kDtypesLater));
  OPENRKNN_CHECK_OK(choose("--algorithm", config.algorithm, {"normal"}, {"mmse", "kl_divergence", "gdq"}));
  Names groups;
  for (int size = 32; size <= 256; size += 32) groups.push_back(fmt::format("group{}", size));
  OPENRKNN_CHECK_OK(choose("--method", config.method, {"channel", "layer"}, groups));
  OPENRKNN_CHECK_OK(choose("--compute-order", config.compute_order, {"WidthFirst", "DepthFirst"}, {}));
  OPENRKNN_CHECK_OK(plan::strategy_from_name(config.memory_plan));
  for (const auto& [name, dtype] : config.layer_dtype) {
    OPENRKNN_CHECK_OK(choose("--layer-dtype " + name + "=" + dtype + ":", dtype, kDtypes, kDtypesLater));
  }
  if (config.batch != 1) {
    return Error{ErrorCode::kUnsupported, "not there yet", fmt::format("--batch {}", config.batch),
                 "this version of openrknn does not multiply the batch", "give the batch by --input NAME:D,D,..."};
  }
  if (config.opt_level < 0 || config.opt_level > 3) {
    return Error{ErrorCode::kInvalidArgument, "value out of range", fmt::format("--opt-level {}", config.opt_level),
                 "levels are 0, 1, 2 and 3", "choose one of them"};
  }
  if (config.max_samples < 1) {
    return Error{ErrorCode::kInvalidArgument, "value out of range", fmt::format("--max-samples {}", config.max_samples),
                 "at least one sample is needed", "give a positive number"};
  }
  if (config.custom_string.size() > 1023) {
    return Error{ErrorCode::kInvalidArgument, "text too long", "custom_string",
                 fmt::format("it has {} bytes, applications read at most 1023", config.custom_string.size()),
                 "shorten it"};
  }
  return {};
}

}  // namespace openrknn::facade
