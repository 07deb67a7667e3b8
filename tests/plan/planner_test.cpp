#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <random>

namespace openrknn::plan {
namespace {

constexpr Strategy kAll[] = {Strategy::kBestFit, Strategy::kGreedyBySize, Strategy::kGreedyByLifetime,
                             Strategy::kSlowPeakGrowth, Strategy::kOptimal};

std::vector<Request> random_requests(std::mt19937& random) {
  const size_t count = random() % 60;
  const int steps = 1 + static_cast<int>(random() % 40);
  std::vector<Request> requests(count);
  for (Request& r : requests) {
    r.size = random() % 8 == 0 ? 0 : static_cast<int64_t>(random() % 5000);
    r.first = static_cast<int>(random() % static_cast<unsigned>(steps));
    r.last = r.first + static_cast<int>(random() % (random() % 4 == 0 ? 20 : 3));
  }
  return requests;
}

std::vector<int64_t> offsets(const std::vector<Request>& requests, Strategy strategy) {
  const auto plan = make_plan(requests, 1, strategy);
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? plan->offsets : std::vector<int64_t>{};
}

TEST(Planner, EveryPlanIsValidNotBelowItsBoundAndRepeatable) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const auto requests = random_requests(random);
    const int64_t alignment = int64_t{1} << (random() % 8);
    int64_t smallest = INT64_MAX;
    for (Strategy strategy : kAll) {
      const auto plan = make_plan(requests, alignment, strategy);
      ASSERT_TRUE(plan.ok()) << plan.error().message();
      ASSERT_TRUE(validate(*plan, requests, alignment).ok());
      EXPECT_GE(plan->size, plan->lower_bound);
      const auto again = make_plan(requests, alignment, strategy);
      EXPECT_EQ(plan->offsets, again->offsets);
      if (strategy == Strategy::kOptimal) {
        EXPECT_LE(plan->size, smallest);
      }
      smallest = std::min(smallest, plan->size);
    }
  }
}

// The bound, written independently: bytes live at each step.
TEST(Planner, LowerBoundIsTheLargestSumOfLiveBytes) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const auto requests = random_requests(random);
    int64_t bound = 0;
    for (int step = 0; step < 80; ++step) {
      int64_t live = 0;
      for (const Request& r : requests) {
        if (r.first <= step && step <= r.last) live += (r.size + 63) / 64 * 64;
      }
      bound = std::max(bound, live);
    }
    EXPECT_EQ(make_plan(requests, 64, Strategy::kBestFit)->lower_bound, bound);
  }
}

TEST(Planner, AChainOfTwoBuffersReachesTheBound) {
  std::vector<Request> chain;
  for (int i = 0; i < 20; ++i) chain.push_back({100 + 10 * (i % 3), i, i + 1});
  const auto plan = make_plan(chain, 2, Strategy::kOptimal);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->lower_bound, 230);
  EXPECT_EQ(plan->size, 230);
}

TEST(Planner, BestFitTakesTheNearestGapInsideTheOpenRange) {
  // Blocks of 30 and 10 bytes end between others that live on: 9 bytes go where the 10 were.
  EXPECT_EQ(offsets({{30, 0, 0}, {20, 0, 9}, {10, 0, 0}, {5, 0, 9}, {9, 1, 1}}, Strategy::kBestFit),
            (std::vector<int64_t>{0, 30, 50, 60, 50}));
  // No gap is large enough: the range grows behind the last conflicting block, not behind everything.
  EXPECT_EQ(offsets({{10, 0, 9}, {4, 0, 0}, {8, 1, 1}}, Strategy::kBestFit), (std::vector<int64_t>{0, 10, 10}));
}

TEST(Planner, GreedyBySizePlacesTheLargestFirst) {
  EXPECT_EQ(offsets({{10, 0, 1}, {40, 1, 2}, {20, 0, 0}}, Strategy::kGreedyBySize), (std::vector<int64_t>{40, 0, 0}));
}

TEST(Planner, GreedyByLifetimePlacesTheLongestLivedLowest) {
  EXPECT_EQ(offsets({{10, 0, 0}, {5, 0, 5}, {7, 1, 3}}, Strategy::kGreedyByLifetime), (std::vector<int64_t>{5, 0, 5}));
}

TEST(Planner, SlowPeakGrowthTakesTheRequestThatRaisesThePeakLeast) {
  // 5 first, then 8 in other steps at the same address (growth 3), then 10 on top.
  EXPECT_EQ(offsets({{10, 0, 3}, {5, 0, 1}, {8, 2, 3}}, Strategy::kSlowPeakGrowth), (std::vector<int64_t>{8, 0, 0}));
}

TEST(Planner, OptimalBeatsTheFourWhereTheyWaste) {
  std::mt19937 random(9);
  int64_t best_of_four = 0;
  int64_t ours = 0;
  for (int round = 0; round < 40; ++round) {
    const auto requests = random_requests(random);
    int64_t best = INT64_MAX;
    for (Strategy strategy : kAll) {
      if (strategy != Strategy::kOptimal) best = std::min(best, make_plan(requests, 64, strategy)->size);
    }
    best_of_four += best;
    ours += make_plan(requests, 64, Strategy::kOptimal)->size;
  }
  EXPECT_LT(ours, best_of_four);
}

TEST(Planner, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(make_plan({{-1, 0, 0}}, 64, Strategy::kBestFit).ok());
  EXPECT_FALSE(make_plan({{1, 2, 1}}, 64, Strategy::kBestFit).ok());
  EXPECT_FALSE(make_plan({{1, 0, 0}}, 48, Strategy::kBestFit).ok());
  EXPECT_FALSE(make_plan({{INT64_MAX - 10, 0, 0}}, 64, Strategy::kBestFit).ok());
  EXPECT_FALSE(make_plan({{INT64_MAX / 2, 0, 0}, {INT64_MAX / 2, 1, 1}, {9, 2, 2}}, 64, Strategy::kBestFit).ok());
  EXPECT_TRUE(make_plan({}, 64, Strategy::kOptimal).ok());
}

TEST(Planner, ValidationFindsBrokenPlans) {
  const std::vector<Request> requests = {{10, 0, 2}, {10, 1, 3}};
  EXPECT_TRUE(validate({{0, 64}, 128, 128}, requests, 64).ok());
  EXPECT_FALSE(validate({{0, 0}, 128, 128}, requests, 64).ok());    // overlap
  EXPECT_FALSE(validate({{0, 60}, 128, 128}, requests, 64).ok());   // not aligned
  EXPECT_FALSE(validate({{0, 128}, 128, 128}, requests, 64).ok());  // beyond the end
  EXPECT_FALSE(validate({{0}, 128, 128}, requests, 64).ok());       // an offset is missing
  EXPECT_FALSE(validate({{0, -64}, 128, 128}, requests, 64).ok());
}

TEST(Planner, NamesOfStrategies) {
  EXPECT_EQ(*strategy_from_name("SlowPeakGrowth"), Strategy::kSlowPeakGrowth);
  const auto unknown = strategy_from_name("bestfit");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("BestFit"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::plan
