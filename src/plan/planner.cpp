#include "plan/planner.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "plan/arena.hpp"
#include "plan/exhaustive.hpp"
#include "plan/search.hpp"

namespace openrknn::plan {
namespace {

using Order = std::vector<size_t>;

constexpr std::array<std::pair<std::string_view, Strategy>, 5> kNames = {{
    {"BestFit", Strategy::kBestFit},
    {"GreedyBySize", Strategy::kGreedyBySize},
    {"GreedyByLifetime", Strategy::kGreedyByLifetime},
    {"SlowPeakGrowth", Strategy::kSlowPeakGrowth},
    {"Optimal", Strategy::kOptimal},
}};

Error invalid(size_t index, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "cannot plan memory", "request " + std::to_string(index), why, ""};
}

// Requests with sizes rounded up to the alignment; refuses what would overflow.
Result<std::vector<Request>> aligned(const std::vector<Request>& requests, int64_t alignment) {
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0) {
    return Error{ErrorCode::kInvalidArgument, "cannot plan memory", "alignment",
                 std::to_string(alignment) + " is not a power of two", ""};
  }
  std::vector<Request> out = requests;
  int64_t total = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    Request& r = out[i];
    if (r.size < 0) return invalid(i, "size " + std::to_string(r.size) + " is negative");
    if (r.last < r.first) {
      return invalid(i, "its last step " + std::to_string(r.last) + " precedes its first " + std::to_string(r.first));
    }
    if (r.size > std::numeric_limits<int64_t>::max() - alignment - total) {
      return invalid(i, "the sizes add up to more than 2^63 bytes");
    }
    r.size = (r.size + alignment - 1) / alignment * alignment;
    total += r.size;
  }
  return out;
}

int64_t lower_bound_of(const std::vector<Request>& requests) {
  std::vector<std::pair<int64_t, int64_t>> events;  // step, bytes that come (or go, before those that come)
  for (const Request& r : requests) {
    events.emplace_back(r.first, r.size);
    events.emplace_back(int64_t{r.last} + 1, -r.size);
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0;
  int64_t bound = 0;
  for (const auto& [step, bytes] : events) {
    live += bytes;
    bound = std::max(bound, live);
  }
  return bound;
}

// The initial order of the strategies (sdk.md 4.4): by start, ties larger first; then by index.
Order by_start(const std::vector<Request>& requests) {
  Order order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (requests[a].first != requests[b].first) return requests[a].first < requests[b].first;
    return requests[a].size > requests[b].size;
  });
  return order;
}

Order by_size(const std::vector<Request>& requests) {
  Order order = by_start(requests);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return requests[a].size > requests[b].size; });
  return order;
}

Order by_lifetime(const std::vector<Request>& requests) {
  const auto lifetime = [&](size_t i) { return int64_t{requests[i].last} - requests[i].first; };
  Order order = by_start(requests);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lifetime(a) > lifetime(b); });
  return order;
}

Arena closest_gap(const std::vector<Request>& requests, const Order& order) {
  Arena arena(requests);
  for (size_t i : order) arena.place(i, arena.closest_fit(i));
  return arena;
}

// The lowest candidate among address 0 and the ends of all placed blocks is the lowest free address.
Arena lowest_address(const std::vector<Request>& requests, const Order& order) {
  Arena arena(requests);
  for (size_t i : order) arena.place(i, arena.first_fit(i));
  return arena;
}

Arena slow_peak_growth(const std::vector<Request>& requests) {
  Arena arena(requests);
  Order open = by_start(requests);
  std::vector<int64_t> candidate(requests.size(), 0);  // the lowest free address of each open request
  while (!open.empty()) {
    const auto growth = [&](size_t i) { return std::max<int64_t>(0, candidate[i] + requests[i].size - arena.size()); };
    const auto best =
        std::min_element(open.begin(), open.end(), [&](size_t a, size_t b) { return growth(a) < growth(b); });
    const size_t placed = *best;
    arena.place(placed, candidate[placed]);
    open.erase(best);
    for (size_t i : open) {
      if (arena.collides(i, candidate[i], placed)) candidate[i] = arena.first_fit(i);
    }
  }
  return arena;
}

// Exchanges random pairs of a first-fit order for as long as that does not make the plan larger. The seed and the
// number of rounds depend on nothing but the number of requests, so that the plan is the same everywhere.
Arena hill_climb(const std::vector<Request>& requests, Arena best, int64_t bound) {
  const size_t n = requests.size();
  if (n < 3 || best.size() == bound) return best;
  Order order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return best.offset(a) < best.offset(b); });
  std::mt19937_64 random(n);
  const size_t rounds = std::clamp<size_t>(2'000'000 / (n * n), 8, 1000);
  for (size_t round = 0; round < rounds && best.size() > bound; ++round) {
    const size_t a = random() % n;
    const size_t b = random() % n;
    std::swap(order[a], order[b]);
    Arena next = lowest_address(requests, order);
    if (next.size() <= best.size()) {
      best = std::move(next);
    } else {
      std::swap(order[a], order[b]);
    }
  }
  return best;
}

// Halves the gap to the bound for as long as the search finds a plan; the bound itself is tried first.
Arena search_below(const std::vector<Request>& requests, Arena best, int64_t bound, int64_t alignment) {
  const Order order = by_start(requests);
  const auto budget = std::clamp<int64_t>(20'000'000 / static_cast<int64_t>(requests.size() + 1), 1000, 50'000);
  int64_t low = bound;
  int64_t tried = bound;
  for (int round = 0; round < 8 && best.size() > low; ++round) {
    if (const auto offsets = fit_within(requests, order, tried, budget)) {
      best = Arena(requests);
      for (size_t i : order) best.place(i, (*offsets)[i]);
    } else {
      low = tried + alignment;
    }
    tried = low + (best.size() - low) / 2 / alignment * alignment;
  }
  return best;
}

// Placements that the complete search may try: well under a second.
int64_t exhaustive_budget(const std::vector<Request>& requests) {
  const auto n = static_cast<int64_t>(requests.size()) + 1;
  return std::clamp<int64_t>(60'000'000 / (n * 8), 1000, 200'000);
}

// Takes a smaller plan for as long as the complete search finds one; raises the bound to the plan's size when it shows
// that there is none.
Arena settle(const std::vector<Request>& requests, Arena best, int64_t& bound, int64_t alignment) {
  while (best.size() > bound) {
    const int64_t budget = exhaustive_budget(requests);
    const Exhausted exhausted = exhaust(requests, best.size() - alignment, budget);
    if (exhausted.verdict == Verdict::kFound) {
      best = Arena(requests);
      for (size_t i : by_start(requests)) best.place(i, exhausted.offsets[i]);
      continue;
    }
    if (exhausted.verdict == Verdict::kImpossible || impossible(requests, best.size() - alignment, budget))
      bound = best.size();
    break;
  }
  return best;
}

Arena optimal(const std::vector<Request>& requests, int64_t& bound, int64_t alignment) {
  Arena best = closest_gap(requests, by_start(requests));
  for (Arena& other :
       std::array<Arena, 3>{closest_gap(requests, by_size(requests)), lowest_address(requests, by_lifetime(requests)),
                            slow_peak_growth(requests)}) {
    if (other.size() < best.size()) best = std::move(other);
  }
  best = hill_climb(requests, std::move(best), bound);
  best = search_below(requests, std::move(best), bound, alignment);
  return settle(requests, std::move(best), bound, alignment);
}

Arena run(const std::vector<Request>& requests, Strategy strategy, int64_t& bound, int64_t alignment) {
  switch (strategy) {
    case Strategy::kBestFit:
      return closest_gap(requests, by_start(requests));
    case Strategy::kGreedyBySize:
      return closest_gap(requests, by_size(requests));
    case Strategy::kGreedyByLifetime:
      return lowest_address(requests, by_lifetime(requests));
    case Strategy::kSlowPeakGrowth:
      return slow_peak_growth(requests);
    case Strategy::kOptimal:
      break;
  }
  return optimal(requests, bound, alignment);
}

}  // namespace

Result<Strategy> strategy_from_name(std::string_view name) {
  std::string known;
  for (const auto& [text, strategy] : kNames) {
    if (text == name) return strategy;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  return Error{ErrorCode::kInvalidArgument, "unknown memory planning strategy", "memory plan",
               "'" + std::string(name) + "' is none of " + known, "name one of them"};
}

Result<Plan> make_plan(const std::vector<Request>& requests, int64_t alignment, Strategy strategy) {
  OPENRKNN_TRY(const std::vector<Request> rounded, aligned(requests, alignment));
  Plan plan;
  plan.lower_bound = lower_bound_of(rounded);
  const Arena arena = run(rounded, strategy, plan.lower_bound, alignment);
  plan.size = arena.size();
  for (size_t i = 0; i < requests.size(); ++i) plan.offsets.push_back(arena.offset(i));
  OPENRKNN_CHECK_OK(validate(plan, requests, alignment));
  return plan;
}

Status validate(const Plan& plan, const std::vector<Request>& requests, int64_t alignment) {
  const auto broken = [](const std::string& where, const std::string& why) {
    return Error{ErrorCode::kInternal, "the memory plan is not valid", where, why, ""};
  };
  if (plan.offsets.size() != requests.size()) {
    return broken(
        "plan", std::to_string(plan.offsets.size()) + " offsets for " + std::to_string(requests.size()) + " requests");
  }
  OPENRKNN_TRY(const std::vector<Request> rounded, aligned(requests, alignment));
  Order order = by_start(rounded);
  std::vector<size_t> live;
  for (size_t i : order) {
    const std::string where = "request " + std::to_string(i);
    const int64_t begin = plan.offsets[i];
    if (begin < 0 || begin % alignment != 0)
      return broken(where, "offset " + std::to_string(begin) + " is not aligned");
    if (rounded[i].size > plan.size - begin) return broken(where, "it ends beyond " + std::to_string(plan.size));
    std::erase_if(live, [&](size_t j) { return rounded[j].last < rounded[i].first; });
    for (size_t j : live) {
      if (begin < plan.offsets[j] + rounded[j].size && plan.offsets[j] < begin + rounded[i].size) {
        return broken(where, "it overlaps request " + std::to_string(j) + " that lives at the same time");
      }
    }
    if (rounded[i].size > 0) live.push_back(i);
  }
  if (plan.size < lower_bound_of(rounded)) return broken("plan", "it is smaller than its lower bound");
  return {};
}

}  // namespace openrknn::plan
