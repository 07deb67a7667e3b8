#include "quant/placement.hpp"

#include <gtest/gtest.h>

#include "ir/text.hpp"
#include "ops/registry.hpp"

namespace openrknn::quant {
namespace {

Graph graph_of(const char* text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_TRUE(ops::infer_all(*graph).ok());
  return std::move(*graph);
}

const target::Target& rk3588() { return **target::find("rk3588"); }

const NodePlacement& of(const Graph& graph, const Placement& placement, const char* value) {
  return placement.at(graph.value(*graph.find_value(value)).producer);
}

constexpr const char* kNetwork = R"(graph "g" {
  input %x: float32[1,16,12,12]
  const %w: float32[16,16,3,3] = seeded(1, -1, 1)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = MaxPool(%b) {kernel_shape=[2,2], strides=[2,2]}
  %d = Exp(%c)
  %e = Softmax(%d) {axis=1}
  output %e
})";

TEST(Placement, EveryCpuNodeCitesALimit) {
  const Graph graph = graph_of(kNetwork);
  for (const target::Target& target : target::all()) {
    const std::string dtype = target.supports("w8a8") ? "w8a8" : "fp16";
    const auto placement = place(graph, target, {dtype, {}});
    ASSERT_TRUE(placement.ok()) << target.name << placement.error().message();
    for (const auto& [id, p] : placement->nodes) {
      if (p.engine == Engine::kCpu) {
        EXPECT_FALSE(p.limit.empty()) << target.name << graph.node(id).op;
        EXPECT_NE(p.reason.find("md"), std::string::npos) << target.name << ": " << p.reason;
      }
    }
    EXPECT_EQ(of(graph, *placement, "a").engine, Engine::kNpu);
  }
}

TEST(Placement, FormatsFollowTheOperators) {
  const Graph graph = graph_of(kNetwork);
  const auto placement = place(graph, rk3588(), {"w8a8", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(of(graph, *placement, "b").format, Format::kInt8);
  EXPECT_EQ(of(graph, *placement, "c").format, Format::kInt8);
  EXPECT_EQ(of(graph, *placement, "d").format, Format::kFloat32);  // the NPU has no Exp
  EXPECT_EQ(of(graph, *placement, "e").format, Format::kFloat16);  // Softmax stays in half
}

TEST(Placement, ALayersFormatReachesWhatComputedIt) {
  const Graph graph = graph_of(kNetwork);
  const auto placement = place(graph, rk3588(), {"w8a8", {{"c", "fp16"}}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(of(graph, *placement, "c").format, Format::kFloat16);
  EXPECT_EQ(of(graph, *placement, "b").format, Format::kFloat16);
  EXPECT_EQ(of(graph, *placement, "a").format, Format::kInt8);
}

TEST(Placement, LimitsOfConvolutions) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,4,40,40]
    const %w: float32[4,4,33,33] = seeded(1, -1, 1)
    const %v: float32[4,4,1,1] = seeded(2, -1, 1)
    %a = Conv(%x, %w)
    %b = Conv(%x, %v) {strides=[8,8]}
    %c = Conv(%x, %v) {strides=[7,7]}
    output %a
    output %b
    output %c
  })");
  const auto placement = place(graph, rk3588(), {"w8a8", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(of(graph, *placement, "a").limit, "conv.kernel.max");
  EXPECT_EQ(of(graph, *placement, "b").limit, "conv.stride.max");
  EXPECT_EQ(of(graph, *placement, "c").engine, Engine::kNpu);
}

TEST(Placement, WrongWordsAreExplained) {
  const Graph graph = graph_of(kNetwork);
  const auto unknown = place(graph, rk3588(), {"w8a8", {{"bb", "fp16"}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("near names"), std::string::npos) << unknown.error().message();
  EXPECT_FALSE(place(graph, rk3588(), {"w8a8", {{"a", "int3"}}}).ok());
  EXPECT_FALSE(place(graph, **target::find("rk2118"), {"w8a8", {}}).ok());
  EXPECT_FALSE(place(graph, **target::find("rv1106"), {"fp16", {}}).ok());
}

TEST(Placement, WhatNoProgramCanHoldIsSaidForAllNodes) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,4,8,8]
    const %starts: int64[1] = {8}
    const %ends: int64[1] = {8}
    const %axes: int64[1] = {2}
    const %repeats: int64[4] = {1, 1, 65536, 65536}
    %a = Slice(%x, %starts, %ends, %axes)
    %b = Tile(%x, %repeats)
    %c = NonZero(%x)
    output %a
    output %b
    output %c
  })");
  const auto placement = place(graph, rk3588(), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  const Status status = check_buildable(graph, *placement, rk3588());
  ASSERT_FALSE(status.ok());
  const std::string text = status.error().message();
  for (const char* part : {"'a' [1, 4, 0, 8] is empty", "larger than the 4 GiB", "depends on data"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Placement, TheCutBeforeShapesThatDependOnData) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,4,8,8]
    %r = Relu(%x)
    %found = NonZero(%r)
    %back = Transpose(%found)
    %size = Size(%back)
    output %size
  })");
  const auto placement = place(graph, rk3588(), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  const Status status = check_buildable(graph, *placement, rk3588());
  ASSERT_FALSE(status.ok());
  const std::string text = status.error().message();
  for (const char* part : {"3 node(s)", "(NonZero)", "--output r", "2 more"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("Transpose"), std::string::npos) << text;
}

TEST(Placement, ComputedParametersGoToTheCpu) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,4,8,8]
    input %s: float32[4,1,1]
    input %low: float32[]
    const %w: float32[4,4,3,3] = seeded(1, -1, 1)
    %a = PRelu(%x, %s)
    %b = Clip(%a, %low)
    %c = Conv(%b, %w) {pads=[-1,-1,-1,-1]}
    output %c
  })");
  const auto placement = place(graph, rk3588(), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  for (const char* value : {"a", "b", "c"}) EXPECT_EQ(of(graph, *placement, value).engine, Engine::kCpu) << value;
}

TEST(Placement, AnInputTakesTheFormatAskedFor) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,8,4,4]
    const %w: float32[8,8,1,1] = seeded(1, -1, 1)
    const %s: int64[4] = {1, 8, 16, 1}
    %a = Reshape(%x, %s)
    %b = Conv(%x, %w)
    output %a
    output %b
  })");
  const auto placement = place(graph, rk3588(), {"w8a8", {{"x", "fp16"}}});
  ASSERT_TRUE(placement.ok()) << placement.error().message();
  EXPECT_EQ(placement->inputs.at(*graph.find_value("x")), Format::kFloat16);
  EXPECT_EQ(of(graph, *placement, "a").format, Format::kFloat16) << "it moves what the input holds";
  EXPECT_EQ(of(graph, *placement, "b").format, Format::kInt8);
  EXPECT_FALSE(place(graph, rk3588(), {"w8a8", {{"w", "fp16"}}}).ok()) << "a constant is no layer";
}

TEST(Placement, MovesBetweenCpuTasksKeepTheirDigits) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,8,4,4]
    const %s: int64[4] = {1, 8, 16, 1}
    const %w: float32[8,8,1,1] = seeded(1, -1, 1)
    %a = Exp(%x)
    %b = Reshape(%a, %s)
    %c = Transpose(%b) {perm=[0,1,3,2]}
    %d = Sin(%c)
    %e = Reshape(%a, %s)
    %f = Conv(%e, %w)
    output %d
    output %f
  })");
  const auto placement = place(graph, rk3588(), {"w8a8", {}});
  ASSERT_TRUE(placement.ok()) << placement.error().message();
  for (const char* value : {"b", "c"}) {
    EXPECT_EQ(of(graph, *placement, value).engine, Engine::kCpu) << value;
    EXPECT_EQ(of(graph, *placement, value).format, Format::kFloat32) << value;
  }
  EXPECT_EQ(of(graph, *placement, "e").format, Format::kInt8) << "a convolution reads it";
}

TEST(Placement, ShapesThatDependOnDataAreNamed) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[4]
    %a = Exp(%x)
    %n = NonZero(%a)
    %f = Cast(%n) {to=1}
    %s = Sin(%f)
    output %s
  })");
  const auto placement = place(graph, rk3588(), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_FALSE(check_buildable(graph, *placement, rk3588()).ok());
}

TEST(Placement, MoreThanTwoOperandsGoToTheCpu) {
  const Graph graph = graph_of(R"(graph "g" {
    input %x: float32[1,4,8,8]
    input %y: float32[1,4,8,8]
    input %z: float32[1,4,8,8]
    %a = Max(%x, %y, %z)
    %b = Max(%x, %y)
    output %a
    output %b
  })");
  const auto placement = place(graph, rk3588(), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(of(graph, *placement, "a").limit, "elementwise.operands");
  EXPECT_EQ(of(graph, *placement, "b").engine, Engine::kNpu);
}

TEST(Placement, ACpuTaskThatTheBoardLacksIsWarnedOf) {
  const Graph graph = graph_of(kNetwork);
  const auto placement = place(graph, **target::find("rk2118"), {"fp16", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_FALSE(of(graph, *placement, "d").warning.empty());
  EXPECT_TRUE(of(graph, *placement, "a").warning.empty());
  const auto full = place(graph, rk3588(), {"fp16", {}});
  EXPECT_TRUE(of(graph, *full, "d").warning.empty());
}

}  // namespace
}  // namespace openrknn::quant
