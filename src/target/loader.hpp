// Reads target descriptions (targets/*.json) and checks them: an unknown key, a missing limit or a value of the wrong
// type is an error, so that a typing mistake in the data is found when the tests run and not in a user's report.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "target/target.hpp"

namespace openrknn::target {

struct Source {
  std::string_view name;  // file name without ".json": the target's name
  std::string_view text;
};

// The files of targets/, embedded when the library was built.
std::span<const Source> embedded_sources();
// All targets that are not "abstract", sorted by name. A file that "extends" another starts from that one's content and
// is merged into it as RFC 7396 says: objects key by key, null removes, everything else replaces.
Result<std::vector<Target>> load_targets(std::span<const Source> sources);
// The names that "limits" must hold, no more and no less.
std::span<const std::string_view> limit_names();

}  // namespace openrknn::target
