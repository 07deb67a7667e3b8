// A complete search over memory plans: finds a plan within a size, or proves that there is none.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/planner.hpp"

namespace openrknn::plan {

enum class Verdict { kFound, kImpossible, kUnknown };

struct Exhausted {
  Verdict verdict = Verdict::kUnknown;
  std::vector<int64_t> offsets;  // one a request when found
};

// Sizes are multiples of the alignment. Gives up (kUnknown) after `node_budget` placements.
//
// A plan whose offsets have the least sum has every block on address 0 or on a block that lives at the same time, and
// no block that would fit below the one placed next. So blocks are placed in order of offset, each on what lies under
// it, and a block that leaves room for another below it is never next: what remains is searched, what was seen is
// remembered.
Exhausted exhaust(const std::vector<Request>& requests, int64_t size, int64_t node_budget);

// Can no plan keep within `size`? Tries parts of the instance, the requests alive within windows around the fullest
// step: what a part cannot do, the whole cannot. False means "not shown".
bool impossible(const std::vector<Request>& requests, int64_t size, int64_t node_budget);

}  // namespace openrknn::plan
