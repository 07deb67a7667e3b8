#include "eval/fusion.hpp"

#include <gtest/gtest.h>

#include "eval/evaluator.hpp"
#include "ir/text.hpp"
#include "ops/registry.hpp"

namespace openrknn::eval {
namespace {

Graph graph_of(const std::string& body) {
  auto graph = parse_graph("graph \"g\" {\n" + body + "}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message());
  const auto inferred = ops::infer_all(*graph);
  EXPECT_TRUE(inferred.ok()) << (inferred.ok() ? "" : inferred.error().message());
  return std::move(*graph);
}

std::vector<std::string> operators(const Graph& graph) {
  const auto order = graph.topological_order();
  size_t slots = 0;
  for (const ValueId id : graph.values()) slots = std::max<size_t>(slots, id.index + size_t{1});
  std::vector<std::string> names;
  for (const auto& node : fuse_behind_convolutions(graph, *order, slots))
    names.push_back(node->op + std::string(node->inputs.size() > 3 ? "+Add" : "") +
                    node->attributes.string_or("activation", ""));
  return names;
}

// The run that fuses gives what the observed one gives, which does not.
void expect_equal_runs(const Graph& graph) {
  const auto evaluator = Evaluator::make(graph);
  ASSERT_TRUE(evaluator.ok()) << evaluator.error().message();
  const Tensors inputs = seeded_inputs(graph, 3);
  size_t seen = 0;
  const auto fused = evaluator->run(inputs);
  const auto plain = evaluator->run(inputs, [&](ValueId, const TensorView&) { ++seen; });
  ASSERT_TRUE(fused.ok() && plain.ok());
  EXPECT_GT(seen, graph.outputs().size());
  for (const auto& [name, tensor] : *plain) {
    const auto a = tensor.as<float>(), b = fused->at(name).as<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << name;
  }
}

constexpr const char* kHead = R"(
  input %x: float32[1,4,6,6]
  const %w: float32[4,4,3,3] = seeded(1, -1, 1)
  const %v: float32[4,4,1,1] = seeded(2, -1, 1)
  const %b: float32[4] = seeded(3, -1, 1)
  const %low: float32[] = fill(-0.5)
  const %high: float32[] = fill(0.75)
)";

TEST(Fusion, TakesAdditionAndActivation) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  %s = Conv(%x, %v)
  %c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %a = Add(%s, %c)
  %y = Clip(%a, %low, %high)
  output %y
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Conv+AddClip"}));
  expect_equal_runs(graph);
}

TEST(Fusion, LeavesWhatOthersReadAndWhatIsNotThereYet) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  %c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %r = Relu(%c)
  %m = MaxPool(%r) {kernel_shape = [1, 1]}
  %d = Conv(%m, %v)
  %e = Add(%d, %d)
  %f = Conv(%e, %v, %b)
  %g = Sigmoid(%f)
  output %c
  output %r
  output %g
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Relu", "MaxPool", "Conv", "Add", "ConvSigmoid"}));
  expect_equal_runs(graph);
}

TEST(Fusion, BroadcastsAreNoResiduals) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  %c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %a = Add(%c, %low)
  %y = Relu(%a)
  output %y
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Add", "Relu"}));
  expect_equal_runs(graph);
}

}  // namespace
}  // namespace openrknn::eval
