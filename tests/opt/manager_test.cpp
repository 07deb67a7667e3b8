// Levels, switches, dumps, counting, and what happens to a rewrite that changes the outputs.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "opt/random_network.hpp"
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kNet = R"(
  input %x: float32[1,3,8,8]
  const %w: float32[4,3,3,3] = seeded(1, -1, 1)
  const %k: float32[4,1,1] = seeded(2, -1, 1)
  %c = Conv(%x, %w)
  %a = Add(%c, %k)
  %i = Identity(%a)
  %y = Relu(%i)
  output %y
)";

TEST(Manager, CountsAndLogs) {
  Graph graph = parse(kNet);
  const auto report = optimize(graph, {});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(count_ops(graph), (Counts{{"Conv", 1}}));
  EXPECT_EQ(report->rewrites, 3);
  int total = 0;
  for (const auto& row : report->rows) total += row.rewrites;
  EXPECT_EQ(total, 3);
  ASSERT_EQ(report->log.size(), 3U);
  EXPECT_EQ(report->log[0].rule, "remove_identity");
  EXPECT_EQ(report->log[1].what, "c (Conv) + a (Add) -> Conv");
  EXPECT_TRUE(report->rolled_back.empty());
}

// Every merge takes a long piece: one that took a node at a time would carry the names of all before it each time.
TEST(Manager, LongChainsMergeInLongPieces) {
  constexpr int kNodes = 4000;
  Graph graph;
  ValueId last = graph.add_input("x", DType::kFloat32, Shape{1, 3, 2, 2});
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "t" + std::to_string(i);
    const ValueId next = graph.add_value(name, DType::kFloat32, Shape{1, 3, 2, 2});
    graph.add_node("Relu", name, {last}, {next}, {}, {"", {name}});
    last = next;
  }
  graph.add_output(last);
  const auto report = optimize(graph, {});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(count_ops(graph), (Counts{{"Relu", 1}}));
  EXPECT_LT(report->rewrites, kNodes / 10);
  EXPECT_EQ(graph.node(graph.nodes()[0]).source.nodes.size(), static_cast<size_t>(kNodes));
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "t3999");
}

TEST(Manager, LevelsDisabledStopAndLimit) {
  const auto after = [](const OptimizeOptions& options) {
    Graph graph = parse(kNet);
    const auto report = optimize(graph, options);
    EXPECT_TRUE(report.ok());
    return count_ops(graph);
  };
  OptimizeOptions options;
  options.level = 0;
  EXPECT_EQ(after(options), (Counts{{"Conv", 1}, {"Add", 1}, {"Relu", 1}}));
  options = {};
  options.disabled = {"fuse_activation_into_conv"};
  EXPECT_EQ(after(options), (Counts{{"Conv", 1}, {"Relu", 1}}));
  options = {};
  options.stop_after = "fuse_add_into_conv";
  EXPECT_EQ(after(options), (Counts{{"Conv", 1}, {"Relu", 1}}));
  options = {};
  options.max_rewrites = 1;
  EXPECT_EQ(after(options), (Counts{{"Conv", 1}, {"Add", 1}, {"Relu", 1}}));
  options.max_rewrites = 0;
  EXPECT_EQ(after(options), (Counts{{"Conv", 1}, {"Add", 1}, {"Identity", 1}, {"Relu", 1}}));
}

TEST(Manager, UnknownNamesSayWhatIsNear) {
  Graph graph = parse(kNet);
  OptimizeOptions options;
  options.disabled = {"fold_constants"};
  const auto report = optimize(graph, options);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("fold_constant"), std::string::npos);
  options = {};
  options.stop_after = "nothing_like_it";
  EXPECT_FALSE(optimize(graph, options).ok());
}

TEST(Manager, Dumps) {
  const auto folder = std::filesystem::temp_directory_path() / "openrknn_opt_dumps";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Graph graph = parse(kNet);
  OptimizeOptions options;
  options.dump_after = "fuse_add_into_conv";
  options.dump_dir = folder.string();
  ASSERT_TRUE(optimize(graph, options).ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(text.find("Conv"), std::string::npos);
  }
  EXPECT_GE(files, 1);
  std::filesystem::remove_all(folder);
  Graph again = parse(kNet);
  EXPECT_FALSE(optimize(again, options).ok()) << "a folder that is missing is an error";
}

TEST(Manager, RollsBackTheOneRewriteThatChangesTheOutputs) {
  // Two BatchNormalizations whose variance cancels epsilon almost, in two branches: one branch overflows when its scale
  // moves into the weights, since 1e30 * 1e30 is beyond float32, while the value itself is not.
  Graph graph = parse(R"(
    input %x: float32[1,1,4,4]
    const %w: float32[1,1,1,1] = fill(1e30)
    const %v: float32[1,1,1,1] = fill(2)
    const %s: float32[1,1,1] = fill(1e30)
    const %zero: float32[1,1,1,1] = fill(0)
    %z = Mul(%x, %zero)
    %c = Conv(%z, %w)
    %a = Mul(%c, %s)
    %d = Conv(%x, %v)
    %b = Mul(%d, %v)
    output %a
    output %b
  )");
  const auto inputs = wide_inputs(graph, 1);
  const auto wanted = outputs_of(graph, inputs);
  OptimizeOptions options;
  options.golden_inputs = inputs;
  options.disabled = {"fuse_scale_before_conv", "fuse_two_mul"};
  const auto report = optimize(graph, options);
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rolled_back.size(), 1U);
  EXPECT_EQ(report->rolled_back[0].rfind("fuse_mul_into_conv: c (Conv) + a (Mul)", 0), 0U) << report->rolled_back[0];
  EXPECT_LE(difference(wanted, outputs_of(graph, inputs)), 1e-4);
  EXPECT_EQ(count_ops(graph), (Counts{{"Mul", 2}, {"Conv", 2}})) << print_graph(graph);
}

TEST(Manager, LimitCutsTheSameSequence) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Graph full = random_network(seed);
    OptimizeOptions options;
    options.check_golden = false;
    const auto all = optimize(full, options);
    ASSERT_TRUE(all.ok());
    if (all->rewrites < 2) continue;
    Graph half = random_network(seed);
    options.max_rewrites = all->rewrites / 2;
    const auto some = optimize(half, options);
    ASSERT_TRUE(some.ok());
    ASSERT_EQ(some->rewrites, all->rewrites / 2);
    for (size_t i = 0; i < some->log.size(); ++i) EXPECT_EQ(some->log[i].what, all->log[i].what);
  }
}

// Tests run somewhere below the checkout.
std::string repository_file(const std::string& name) {
  for (auto folder = std::filesystem::current_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (!std::filesystem::exists(folder / name)) continue;
    std::ifstream file(folder / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return {};
}

TEST(Passes, NamesAreUniqueAndStandInTheDocs) {
  std::vector<std::string> names;
  for (const PassInfo& info : passes()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), info.name), 0) << info.name;
    names.emplace_back(info.name);
    EXPECT_FALSE(info.doc.empty());
  }
  const std::string text = repository_file("docs/PASSES.md");
  if (text.empty()) GTEST_SKIP() << "docs/PASSES.md is not above the working directory; run in the checkout";
  for (const PassInfo& info : passes()) {
    const std::string row =
        "| `" + std::string(info.name) + "` | " + std::to_string(info.level) + " | " + std::string(info.doc) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << "docs/PASSES.md lacks: " << row;
  }
}

}  // namespace
}  // namespace openrknn::opt::testing
