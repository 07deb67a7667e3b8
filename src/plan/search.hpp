// Search for a plan of a given size: what the Optimal strategy does when the heuristics leave a gap to the bound.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/planner.hpp"

namespace openrknn::plan {

// Offsets that fit into `size` bytes, by depth-first search in order of start: each request lies at either end of a gap
// between the blocks alive when it starts. Gives up after `node_budget` placements; nothing then means "not found",
// not "impossible". Sizes are multiples of the alignment.
std::optional<std::vector<int64_t>> fit_within(const std::vector<Request>& requests, const std::vector<size_t>& order,
                                               int64_t size, int64_t node_budget);

}  // namespace openrknn::plan
