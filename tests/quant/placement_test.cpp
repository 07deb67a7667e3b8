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

// One node over given operands: the limit that sends it to the CPU in this format, "" when it stays on the NPU.
std::string limit_of(const std::string& body, const char* target = "rk3588", const char* dtype = "fp16") {
  const Graph graph = graph_of(("graph \"g\" {\n" + body + "\noutput %y\n}").c_str());
  const auto placement = place(graph, **target::find(target), {dtype, {}});
  EXPECT_TRUE(placement.ok());
  const NodePlacement& y = of(graph, *placement, "y");
  return y.engine == Engine::kNpu ? "" : y.limit;
}

TEST(Placement, LimitsOfTheFirstLayer) {
  const auto conv = [](int64_t channels, int64_t width, int64_t kernel, int64_t dilation = 1) {
    const std::string c = std::to_string(channels), k = std::to_string(kernel), d = std::to_string(dilation);
    return "input %x: float32[1," + c + ",400," + std::to_string(width) + "]\nconst %w: float32[8," + c + "," + k +
           "," + k + "] = seeded(1, -1, 1)\n%y = Conv(%x, %w) {dilations=[" + d + "," + d + "]}";
  };
  // RK3588 int8: width * rows <= 2048 * (12 - max(ceil(rows * columns / 128), 3)), width <= 8192; fp16: 1024.
  EXPECT_EQ(limit_of(conv(3, 6144, 3), "rk3588", "w8a8"), "");
  EXPECT_EQ(limit_of(conv(3, 6145, 3), "rk3588", "w8a8"), "input.window.int8");
  EXPECT_EQ(limit_of(conv(3, 3072, 3)), "");
  EXPECT_EQ(limit_of(conv(3, 3073, 3)), "input.window.float16");
  EXPECT_EQ(limit_of(conv(1, 3072, 3)), "");
  EXPECT_EQ(limit_of(conv(2, 3073, 3)), "");  // only 1, 3 and 4 channels
  EXPECT_EQ(limit_of(conv(4, 8192, 1)), "");
  EXPECT_EQ(limit_of(conv(4, 8193, 1)), "input.width.max");
  EXPECT_EQ(limit_of(conv(3, 1843, 3, 2)), "");  // rows of a dilated kernel: 5
  EXPECT_EQ(limit_of(conv(3, 1844, 3, 2)), "input.window.float16");
  EXPECT_EQ(limit_of(conv(3, 1024, 7), "rk3568", "w8a8"), "input.window.int8");  // 7168 < 1024 * 7 does not hold
  EXPECT_EQ(limit_of(conv(3, 1023, 7), "rk3568", "w8a8"), "");
}

TEST(Placement, ArithmeticInFrontOfSoftmaxIsInHalves) {
  const std::string text = R"(graph "g" {
    input %x: float32[1,2,4,6]
    const %s: float32[] = fill(0.5)
    const %m: float32[1,1,4,6] = fill(-10000)
    %a = Mul(%x, %s)
    %b = Add(%a, %m)
    %c = Softmax(%b) {axis=3}
    %d = Mul(%c, %x)
    output %d
  })";
  const Graph graph = graph_of(text.c_str());
  const auto placement = place(graph, rk3588(), {"w8a8", {}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(of(graph, *placement, "a").format, Format::kFloat16);
  EXPECT_EQ(of(graph, *placement, "b").format, Format::kFloat16);
  EXPECT_EQ(of(graph, *placement, "d").format, Format::kInt8);
  const auto asked = place(graph, rk3588(), {"w8a8", {{"b", "w8a8"}}});
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(of(graph, *asked, "b").format, Format::kInt8);
  const auto no_halves = place(graph, **target::find("rv1106"), {"w8a8", {}});
  ASSERT_TRUE(no_halves.ok());
  EXPECT_EQ(of(graph, *no_halves, "b").format, Format::kInt8);
}

TEST(Placement, LimitsOfExtents) {
  EXPECT_EQ(limit_of("input %a: float32[4,8192]\ninput %b: float32[8192,4]\n%y = MatMul(%a, %b)"), "");
  EXPECT_EQ(limit_of("input %a: float32[4,8193]\ninput %b: float32[8193,4]\n%y = MatMul(%a, %b)"), "matmul.k.max");
  const auto wide = [](int64_t width, int64_t rows) {
    return "input %x: float32[1,8,4," + std::to_string(width) + "]\nconst %w: float32[8,8," + std::to_string(rows) +
           ",1] = seeded(1, -1, 1)\n%y = Conv(%x, %w)";
  };
  EXPECT_EQ(limit_of(wide(16382, 2)), "");
  EXPECT_EQ(limit_of(wide(16383, 2)), "conv.width.max");
  EXPECT_EQ(limit_of(wide(16383, 1)), "");
  EXPECT_EQ(limit_of("input %x: float32[1,4,4,8176]\nconst %p: int64[8] = {0,0,0,1,0,0,0,0}\n"
                     "%y = Pad(%x, %p) {mode=\"reflect\"}"),
            "");
  EXPECT_EQ(limit_of("input %x: float32[1,4,4,8177]\nconst %p: int64[8] = {0,0,0,1,0,0,0,0}\n"
                     "%y = Pad(%x, %p) {mode=\"reflect\"}"),
            "pad.reflect.width.max");
}

TEST(Placement, LimitsOfRecurrentNetworks) {
  const auto lstm = [](const std::string& x, const std::string& rest) {
    return "input %x: float32[" + x + R"(]
      input %n: int32[2]
      const %w: float32[1,64,8] = seeded(1, -1, 1)
      const %r: float32[1,64,16] = seeded(2, -1, 1)
      const %b: float32[1,128] = seeded(3, -1, 1)
      %y = LSTM(%x, %w, %r, %b)" +
           rest;
  };
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16}")), "");
  EXPECT_EQ(limit_of(lstm("3,8,8", ") {hidden_size=16}")), "");
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16}"), "rk3588", "w8a8"), "");  // in float16
  EXPECT_EQ(limit_of(lstm("3,2,8", ") {hidden_size=16}")), "recurrent.batch.multiple");
  EXPECT_EQ(limit_of(lstm("9000,1,8", ") {hidden_size=16}")), "recurrent.extent.max");
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16, input_forget=1}")), "recurrent.attributes");
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16, activations=[\"Sigmoid\", \"Tanh\", \"tanh\"]}")), "");
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16, activations=[\"Sigmoid\", \"Relu\", \"Tanh\"]}")),
            "recurrent.attributes");
  EXPECT_EQ(limit_of(lstm("3,2,8", ", %n) {hidden_size=16}")), "recurrent.lengths");
  EXPECT_EQ(limit_of(lstm("3,1,8", ") {hidden_size=16}"), "rv1106", "w8a8"), "dtype.fp16");
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
