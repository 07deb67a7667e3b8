// Memory planning: lifetimes in, offsets out. Knows nothing of networks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace openrknn::plan {

struct Request {
  int64_t size = 0;  // bytes
  int first = 0;     // first and last step that need it, inclusive
  int last = 0;
};

enum class Strategy { kBestFit, kGreedyBySize, kGreedyByLifetime, kSlowPeakGrowth, kOptimal };

struct Plan {
  std::vector<int64_t> offsets;  // one a request, multiples of the alignment
  int64_t size = 0;              // bytes in all
  int64_t lower_bound = 0;       // no plan is smaller: the largest sum of aligned live bytes at any step, or, where the
                                 // search of Optimal has proved it, the plan's own size
};

// "BestFit", ... as the config call spells them.
Result<Strategy> strategy_from_name(std::string_view name);
// Deterministic; the plan is validated before it is returned.
Result<Plan> make_plan(const std::vector<Request>& requests, int64_t alignment, Strategy strategy);
Status validate(const Plan& plan, const std::vector<Request>& requests, int64_t alignment);

}  // namespace openrknn::plan
