// On random networks every pass alone, all passes, and passes in any order keep the outputs, leave a graph that
// verifies, and find nothing more to do when they run again.
#include <algorithm>
#include <random>

#include "opt/random_network.hpp"
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

constexpr double kTolerance = 1e-4;

class RandomNetworks : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomNetworks, AllPasses) {
  for (uint32_t seed = GetParam() * 50; seed < GetParam() * 50 + 50; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = random_network(seed);
    const auto inputs = wide_inputs(graph, seed);
    const auto wanted = outputs_of(graph, inputs);
    OptimizeOptions options;
    options.golden_inputs = inputs;
    const auto report = optimize(graph, options);
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_TRUE(report->rolled_back.empty()) << report->rolled_back[0];
    EXPECT_LE(difference(wanted, outputs_of(graph, inputs)), kTolerance);
    const std::string settled = print_graph(graph);
    const auto again = optimize(graph, options);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->rewrites, 0) << again->log[0].rule << ": " << again->log[0].what;
    EXPECT_EQ(print_graph(graph), settled);
  }
}

TEST_P(RandomNetworks, EachPassAlone) {
  for (uint32_t seed = GetParam() * 8 + 10000; seed < GetParam() * 8 + 10008; ++seed) {
    const Graph original = random_network(seed);
    const auto inputs = wide_inputs(original, seed);
    const auto wanted = outputs_of(original, inputs);
    for (const PassInfo& info : passes()) {
      SCOPED_TRACE(std::string(info.name) + " on " + std::to_string(seed));
      Graph graph = original;
      if (run(graph, std::string(info.name)) == 0) continue;
      EXPECT_LE(difference(wanted, outputs_of(graph, inputs)), kTolerance);
      EXPECT_EQ(run(graph, std::string(info.name)), 0) << "a second run changes something";
    }
  }
}

TEST_P(RandomNetworks, AnyOrder) {
  std::mt19937 random(GetParam());
  for (uint32_t seed = GetParam() * 20 + 20000; seed < GetParam() * 20 + 20020; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = random_network(seed);
    const auto inputs = wide_inputs(graph, seed);
    const auto wanted = outputs_of(graph, inputs);
    std::vector<std::string> names;
    for (const PassInfo& info : passes()) names.insert(names.end(), 2, std::string(info.name));
    std::shuffle(names.begin(), names.end(), random);
    for (const std::string& name : names) run(graph, name);
    EXPECT_LE(difference(wanted, outputs_of(graph, inputs)), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNetworks, ::testing::Range(0U, 7U));

}  // namespace
}  // namespace openrknn::opt::testing
