#include "quant/embedded.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "eval/evaluator.hpp"
#include "ir/text.hpp"
#include "ops/registry.hpp"

namespace openrknn::quant {
namespace {

Graph typed(std::string_view text) {
  auto graph = parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().message();
    return {};
  }
  const auto inferred = ops::infer_all(*graph);
  EXPECT_TRUE(inferred.ok()) << (inferred.ok() ? "" : inferred.error().message());
  return *graph;
}

std::vector<std::string> operators(const Graph& graph) {
  std::vector<std::string> ops;
  for (const NodeId id : graph.nodes()) ops.push_back(graph.node(id).op);
  return ops;
}

TEST(Embedded, PairsBecomeRanges) {
  Graph graph = typed(R"(graph "g" {
    input %x: float32[1,2,4,4]
    const %s: float32[] = {0.5}
    const %z: uint8[] = {0}
    const %t: float32[] = {0.25}
    const %y: int8[] = {-28}
    const %w: float32[2,2,1,1] = seeded(7, -1, 1)
    %xq = QuantizeLinear(%x, %t, %y)
    %xd = DequantizeLinear(%xq, %t, %y)
    %c = Conv(%xd, %w)
    %cq = QuantizeLinear(%c, %s, %z)
    %cd = DequantizeLinear(%cq, %s, %z)
    output %cd
  })");
  const auto embedded = absorb_quantization(graph, true);
  ASSERT_TRUE(embedded.ok());
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Identity", "Conv", "Clip"}));
  EXPECT_TRUE(ops::verify(graph).ok());
  EXPECT_EQ(embedded->at("x").min, -25.0);
  EXPECT_EQ(embedded->at("x").max, 38.75);
  EXPECT_EQ(embedded->at("cd").min, 0.0);
  EXPECT_EQ(embedded->at("c").max, 127.5);
  EXPECT_FALSE(graph.find_value("s").has_value());
  Ranges ranges;
  apply_embedded(graph, *embedded, ranges);
  EXPECT_EQ(ranges[*graph.find_value("x")].min, -25.0);
  EXPECT_TRUE(ranges[*graph.find_value("w")].seen);
}

// The quantizer's cut at 0 is a Relu that its tool has dropped, wherever it stands.
TEST(Embedded, ACutStaysWhereValuesMayLeaveTheRange) {
  for (const char* op :
       {"MaxPool(%c) {kernel_shape=[2,2]}", "AveragePool(%c) {kernel_shape=[2,2]}", "Transpose(%c) {perm=[0,2,3,1]}",
        "LeakyRelu(%c)", "Neg(%c)", "Identity(%x)", "Concat(%c, %x) {axis=1}", "GlobalAveragePool(%c)"}) {
    SCOPED_TRACE(op);
    Graph graph = typed(std::string(R"(graph "g" {
      input %x: float32[1,2,4,4]
      const %s: float32[] = {0.01}
      const %z: uint8[] = {0}
      const %w: float32[2,2,1,1] = seeded(7, -1, 1)
      %c = Conv(%x, %w)
      %o = )") + op + R"(
      %q = QuantizeLinear(%o, %s, %z)
      %y = DequantizeLinear(%q, %s, %z)
      output %y
    })");
    eval::Tensors inputs = eval::seeded_inputs(graph, 3);
    for (float& v : inputs.begin()->second.mutable_as<float>()) v = 8.0F * v - 4.0F;
    const Tensor expected = eval::Evaluator::make(graph)->run(inputs)->at("y");
    ASSERT_TRUE(absorb_quantization(graph, false).ok());
    const Tensor got = eval::Evaluator::make(graph)->run(inputs)->at("y");
    for (size_t i = 0; i < expected.as<float>().size(); ++i)
      EXPECT_NEAR(got.as<float>()[i], expected.as<float>()[i], 0.0051F);
  }
}

TEST(Embedded, NoCutWhereNothingCanBeOutside) {
  Graph graph = typed(R"(graph "g" {
    input %x: float32[1,2,4,4]
    const %s: float32[] = {0.01}
    const %z: uint8[] = {0}
    %q = QuantizeLinear(%x, %s, %z)
    %d = DequantizeLinear(%q, %s, %z)
    %m = MaxPool(%d) {kernel_shape=[2,2]}
    %mq = QuantizeLinear(%m, %s, %z)
    %y = DequantizeLinear(%mq, %s, %z)
    output %y
  })");
  ASSERT_TRUE(absorb_quantization(graph, false).ok());
  EXPECT_EQ(operators(graph), (std::vector<std::string>{"Clip", "MaxPool", "Identity"}));
}

TEST(Embedded, WhatIsNoPairOfOneScaleStays) {
  Graph graph = typed(R"(graph "g" {
    input %x: float32[2,3]
    const %s: float32[] = {0.5}
    const %t: float32[] = {0.25}
    const %many: float32[3] = {1, 2, 3}
    const %wide: int16[] = {0}
    %a = QuantizeLinear(%x, %s)
    %b = DequantizeLinear(%a, %t)
    %c = QuantizeLinear(%x, %many)
    %d = DequantizeLinear(%c, %many)
    %e = QuantizeLinear(%x, %s, %wide)
    %f = DequantizeLinear(%e, %s, %wide)
    output %b
    output %d
    output %f
  })");
  const auto embedded = absorb_quantization(graph, true);
  ASSERT_TRUE(embedded.ok());
  EXPECT_TRUE(embedded->empty());
  EXPECT_EQ(graph.node_count(), 6U);
}

TEST(Embedded, OperatorsOnQuantizedValuesBecomeFloatOnes) {
  Graph graph = typed(R"(graph "g" {
    input %x: float32[1,2,6,6]
    const %sx: float32[] = {0.0078125}
    const %zx: uint8[] = {0}
    const %w: int8[3,2,3,3] = seeded(5, -100, 100)
    const %sw: float32[3] = {0.01, 0.02, 0.015}
    const %zw: int8[3] = {0, 0, 0}
    const %sy: float32[] = {0.0625}
    const %zy: uint8[] = {100}
    const %b: int32[3] = {1000, -2000, 0}
    %q = QuantizeLinear(%x, %sx, %zx)
    %c = QLinearConv(%q, %sx, %zx, %w, %sw, %zw, %sy, %zy, %b) {pads=[1,1,1,1]}
    %m = MaxPool(%c) {kernel_shape=[2,2], strides=[2,2]}
    %y = DequantizeLinear(%m, %sy, %zy)
    output %y
  })");
  const Graph before = graph;
  const auto embedded = absorb_quantization(graph, true);
  ASSERT_TRUE(embedded.ok());
  EXPECT_TRUE(ops::verify(graph).ok());
  std::vector<std::string> ops = operators(graph);
  std::sort(ops.begin(), ops.end());
  EXPECT_EQ(ops, (std::vector<std::string>{"Clip", "Conv", "Identity", "Identity", "MaxPool"}));
  const eval::Tensors inputs = eval::seeded_inputs(before, 1);
  const auto run = [&](const Graph& g) { return eval::Evaluator::make(g)->run(inputs)->at("y"); };
  const Tensor expected = run(before);
  const Tensor got = run(graph);
  // Half a step of the result, and what half a step of x adds up to.
  const auto a = got.as<float>();
  const auto b = expected.as<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.0625 / 2 + 0.05) << i;
}

TEST(Embedded, AnAverageKeepsTheRange) {
  Graph graph = typed(R"(graph "g" {
    input %x: float32[1,1,2,2]
    const %mean: float32[1,1,2,2] = {0.25, 0.25, 0.25, 0.25}
    const %twice: float32[1,1,1,1] = {2}
    %m = Conv(%x, %mean)
    %t = Conv(%m, %twice)
    output %t
  })");
  Ranges ranges;
  apply_embedded(graph, {{"x", Range{1.0, 3.0, true, 0}}}, ranges);
  EXPECT_EQ(ranges[*graph.find_value("m")].min, 0.0);
  EXPECT_EQ(ranges[*graph.find_value("m")].max, 3.0);
  EXPECT_FALSE(ranges[*graph.find_value("t")].seen);
}

}  // namespace
}  // namespace openrknn::quant
