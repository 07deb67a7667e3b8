#include "plan/exhaustive.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace openrknn::plan {
namespace {

// Every offset of every request: is there a plan within `size`?
bool by_trying_everything(const std::vector<Request>& requests, int64_t size) {
  std::vector<int64_t> offsets(requests.size());
  const std::function<bool(size_t)> place = [&](size_t i) {
    if (i == requests.size()) return true;
    for (int64_t at = 0; at + requests[i].size <= size; ++at) {
      bool free = true;
      for (size_t j = 0; j < i && free; ++j) {
        const bool together = requests[j].first <= requests[i].last && requests[i].first <= requests[j].last;
        free = !together || at >= offsets[j] + requests[j].size || offsets[j] >= at + requests[i].size;
      }
      offsets[i] = at;
      if (free && place(i + 1)) return true;
    }
    return false;
  };
  return place(0);
}

TEST(Exhaustive, AgreesWithTryingEverything) {
  std::mt19937 random(3);
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Request> requests(2 + random() % 6);
    for (Request& r : requests) {
      r.size = 1 + static_cast<int64_t>(random() % 4);
      r.first = static_cast<int>(random() % 6);
      r.last = r.first + static_cast<int>(random() % 4);
    }
    const int64_t size = 3 + static_cast<int64_t>(random() % 6);
    const bool wanted = by_trying_everything(requests, size);
    (wanted ? feasible : infeasible) += 1;
    const Exhausted got = exhaust(requests, size, 1 << 20);
    ASSERT_EQ(got.verdict, wanted ? Verdict::kFound : Verdict::kImpossible) << round;
    if (wanted) {
      EXPECT_TRUE(validate({got.offsets, size, 0}, requests, 1).ok()) << round;
      EXPECT_FALSE(impossible(requests, size, 1 << 20)) << "a part cannot do what the whole can";
    }
  }
  EXPECT_GT(feasible, 500);
  EXPECT_GT(infeasible, 500);
}

TEST(Exhaustive, GivesUpWithinItsBudget) {
  std::mt19937 random(4);
  std::vector<Request> requests(60);
  int64_t live = 0;
  for (Request& r : requests) {
    r = {100 + static_cast<int64_t>(random() % 900), static_cast<int>(random() % 40), 0};
    r.last = r.first + static_cast<int>(random() % 12);
    live += r.size;
  }
  EXPECT_EQ(exhaust(requests, live / 4, 50).verdict, Verdict::kUnknown);
}

// 4 bytes live at every step. c and d come where k was and a and b where f was, at the two ends; e takes the place of a
// and c, in the middle; then d and b lie at both ends with no room for h.
TEST(Exhaustive, ProvesThatTheBoundCannotBeReached) {
  const std::vector<Request> requests = {{2, 0, 1}, {2, 0, 0}, {1, 1, 2}, {1, 1, 3},
                                         {1, 2, 2}, {1, 2, 3}, {2, 3, 4}, {2, 4, 4}};
  EXPECT_EQ(exhaust(requests, 4, 1 << 20).verdict, Verdict::kImpossible);
  EXPECT_TRUE(impossible(requests, 4, 1 << 20));
  const auto plan = make_plan(requests, 1, Strategy::kOptimal);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->size, 5);
  EXPECT_EQ(plan->lower_bound, 5) << "Optimal knows that no plan is smaller";
  EXPECT_EQ(make_plan(requests, 1, Strategy::kBestFit)->lower_bound, 4);
}

}  // namespace
}  // namespace openrknn::plan
