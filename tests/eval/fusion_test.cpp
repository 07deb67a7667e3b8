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
  for (const Unit& unit : fused_units(graph, *order, slots)) {
    names.push_back(unit.node->op);
    if (const auto* stages = unit.node->attributes.get<std::vector<std::string>>("stages")) {
      for (const std::string& stage : *stages) names.back() += "+" + stage;
    }
  }
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
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Conv+Add+Clip"}));
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
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Relu", "MaxPool", "Conv+Add", "Conv+Sigmoid"}));
  expect_equal_runs(graph);
}

TEST(Fusion, TakesArithmeticWithWhatIsThere) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  const %k: float32[1,4,1,1] = seeded(4, -1, 1)
  const %m: float32[4] = seeded(5, 0.5, 1)
  const %six: float32[] = fill(6)
  %s = Sigmoid(%x)
  %c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %n = BatchNormalization(%c, %m, %b, %b, %m)
  %l = Add(%n, %k)
  %o = Clip(%l, %low, %high)
  %p = Mul(%n, %o)
  %q = Div(%p, %six)
  %d = ConvTranspose(%q, %v)
  %y = Sub(%s, %d)
  output %y
)");
  EXPECT_EQ(operators(graph),
            (std::vector<std::string>{"Sigmoid", "Conv+BatchNormalization+Add+Clip+Mul+Div", "ConvTranspose+Sub"}));
  expect_equal_runs(graph);
}

TEST(Fusion, BroadcastsAreNoResiduals) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  const %rows: float32[6,1] = seeded(6, -1, 1)
  %c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %a = Add(%c, %rows)
  %y = Relu(%a)
  output %y
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Add+Relu"}));
  expect_equal_runs(graph);
}

// Every way of computing a convolution, with stages that go by channel, by element, and alike for all.
TEST(Fusion, StagesFollowEveryKindOfConvolution) {
  const std::string weights[] = {"float32[20,12,3,3] = seeded(1, -1, 1)} {pads = [1, 1, 1, 1]}",
                                 "float32[20,12,1,1] = seeded(1, -1, 1)} {}",
                                 "float32[20,1,3,3] = seeded(1, -1, 1)} {group = 20, pads = [1, 1, 1, 1]}",
                                 "float32[20,1,2,2] = seeded(1, -1, 1)} {group = 20, pads = [0, 0, 1, 1]}",
                                 "float32[20,3,3,3] = seeded(1, -1, 1)} {group = 4, pads = [1, 1, 1, 1]}"};
  for (const std::string& w : weights) {
    const int64_t channels = w.find("group = 20") != std::string::npos ? 20 : 12;
    const size_t cut = w.find("} {");
    for (const int side : {1, 5, 9, 40}) {
      const auto plane = std::to_string(side) + "," + std::to_string(side) + "]";
      std::string body = "  input %x: float32[2," + std::to_string(channels) + "," + plane +
                         "\n  const %w: " + w.substr(0, cut) + "\n  const %k: float32[20,1,1] = seeded(2, -1, 1)\n";
      body += "  const %two: float32[1] = fill(2)\n  const %r: float32[2,20," + plane + " = seeded(3, -1, 1)\n";
      body += "  %c = Conv(%x, %w) " + w.substr(cut + 2) + "\n";
      for (const std::string stages : {"  %s = Sigmoid(%c)\n  %t = Mul(%c, %s)\n  %y = Sub(%two, %t)\n",
                                       "  %s = Mul(%k, %c)\n  %t = Add(%s, %r)\n  %y = Div(%t, %c)\n",
                                       "  %s = Relu(%c)\n  %t = Sub(%s, %r)\n  %y = Mul(%t, %t)\n"}) {
        const Graph graph = graph_of(body + stages + "  output %y\n");
        EXPECT_EQ(operators(graph).size(), 1U);
        expect_equal_runs(graph);
      }
    }
  }
}

TEST(Fusion, PadsInFrontOfConvolutions) {
  const Graph graph = graph_of(std::string(kHead) + R"(
  const %pads: int64[8] = {0, 0, 0, 1, 0, 0, 2, 1}
  const %more: int64[8] = {0, 0, 0, 1, 0, 0, 1, 0}
  %p = Pad(%x, %pads)
  %c = Conv(%p, %w, %b) {pads = [1, 0, 0, 2], strides = [2, 2]}
  %q = Pad(%c, %more)
  %d = Conv(%q, %v)
  %r = Pad(%c, %pads, %low)
  %e = Conv(%r, %v)
  output %d
  output %e
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Conv", "Conv", "Pad", "Conv"}));
  expect_equal_runs(graph);
}

// A convolution whose shape is not known before the run does nothing but its own work.
TEST(Fusion, PadsStayInFrontOfConvolutionsWithoutShapes) {
  const Graph graph = graph_of(R"(
  input %x: float32[1,2,5,5]
  input %end: int64[1]
  const %w: float32[4,2,3,3] = seeded(1, -1, 1)
  const %zero: int64[1] = {0}
  const %pads: int64[8] = {0, 0, 1, 1, 0, 0, 1, 1}
  %u = Slice(%w, %zero, %end, %zero)
  %p = Pad(%x, %pads)
  %y = Conv(%p, %u)
  output %y
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Slice", "Pad", "Conv"}));
}

TEST(Fusion, TakesElementwiseNodesTogether) {
  const Graph graph = graph_of(R"(
  input %x: float32[2,3,50,8]
  input %m: float32[2,3,50,1]
  const %row: float32[8] = seeded(4, -1, 1)
  const %root: float32[] = fill(1.4142135)
  const %one: float32[] = fill(1)
  const %power: float32[] = fill(2)
  %a = Div(%x, %m)
  %b = Mul(%a, %row)
  %c = Div(%b, %root)
  %d = Erf(%c)
  %e = Add(%d, %one)
  %f = Mul(%b, %e)
  %s = Softmax(%f)
  %t = Sub(%f, %s)
  %two = Pow(%t, %power)
  %u = Sqrt(%two)
  output %u
)");
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Div+Mul+Div+Erf+Add+Mul", "Softmax", "Sub+Pow+Sqrt"}));
  expect_equal_runs(graph);
}

}  // namespace
}  // namespace openrknn::eval
