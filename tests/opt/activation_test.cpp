// Activations and residual additions move into what computes their operand.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kConv = R"(
  input %x: float32[1,4,6,6]
  const %w: float32[4,4,3,3] = seeded(1, -0.5, 0.5)
  %c = Conv(%x, %w) {pads=[1,1,1,1]}
)";

TEST(FuseActivation, EveryFunctionIntoConv) {
  for (const std::string act : {"Relu(%c)", "LeakyRelu(%c) {alpha=0.2}", "Sigmoid(%c)", "Tanh(%c)", "HardSigmoid(%c)",
                                "HardSigmoid(%c) {alpha=0.16666667, beta=0.5}", "HardSwish(%c)", "Elu(%c)",
                                "Elu(%c) {alpha=0.5}", "Softplus(%c)", "exSwish(%c)", "exGelu(%c)", "exMish(%c)"}) {
    expect_rewrite(kConv + "%y = " + act + "\n output %y", {"fuse_activation_into_conv"}, {{"Conv", 1}});
  }
}

TEST(FuseActivation, ClipWithAnyBounds) {
  const std::string bounds = "const %lo: float32[] = fill(-0.5)\n const %hi: float32[] = fill(1)\n";
  for (const std::string act : {"Clip(%c, %lo, %hi)", "Clip(%c, %lo)", "Clip(%c, _, %hi)"}) {
    expect_rewrite(kConv + bounds + "%y = " + act + "\n output %y", {"fuse_activation_into_conv"}, {{"Conv", 1}});
  }
  expect_untouched(kConv + "input %lo: float32[]\n %y = Clip(%c, %lo)\n output %y", "fuse_activation_into_conv");
}

TEST(FuseActivation, PReluPerChannelOnly) {
  expect_rewrite(kConv + "const %s: float32[4,1,1] = seeded(2, 0, 1)\n %y = PRelu(%c, %s)\n output %y",
                 {"fuse_activation_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + "const %s: float32[1] = fill(0.3)\n %y = PRelu(%c, %s)\n output %y",
                 {"fuse_activation_into_conv"}, {{"Conv", 1}});
  expect_untouched(kConv + "const %s: float32[6] = seeded(2, 0, 1)\n %y = PRelu(%c, %s)\n output %y",
                   "fuse_activation_into_conv");
}

TEST(FuseActivation, IntoConvTranspose) {
  expect_rewrite(R"(
    input %x: float32[1,4,3,3]
    const %w: float32[4,2,2,2] = seeded(1, -0.5, 0.5)
    %c = ConvTranspose(%x, %w) {strides=[2,2]}
    %y = Relu(%c)
    output %y)",
                 {"fuse_activation_into_conv"}, {{"ConvTranspose", 1}});
}

TEST(FuseActivation, NotWhenReadTwiceOrOutput) {
  expect_untouched(kConv + "%y = Relu(%c)\n %z = Tanh(%c)\n output %y\n output %z", "fuse_activation_into_conv");
  expect_untouched(kConv + "%y = Relu(%c)\n output %y\n output %c", "fuse_activation_into_conv");
}

TEST(FuseActivation, OnlyOne) {
  expect_rewrite(kConv + "%r = Relu(%c)\n %y = Tanh(%r)\n output %y", {"fuse_activation_into_conv"},
                 {{"Conv", 1}, {"Tanh", 1}});
}

TEST(FuseActivation, IntoElementwise) {
  const std::string head = "input %a: float32[1,4,6,6]\n input %b: float32[1,4,6,6]\n";
  const std::string six = "const %lo: float32[] = fill(0)\n const %hi: float32[] = fill(6)\n";
  for (const std::string op : {"Add", "Sub", "Mul"}) {
    expect_rewrite(head + "%s = " + op + "(%a, %b)\n %y = Relu(%s)\n output %y", {"fuse_activation_into_elementwise"},
                   {{op, 1}});
    expect_rewrite(head + six + "%s = " + op + "(%a, %b)\n %y = Clip(%s, %lo, %hi)\n output %y",
                   {"fuse_activation_into_elementwise"}, {{op, 1}});
  }
  expect_untouched(head + "%s = Div(%a, %b)\n %y = Relu(%s)\n output %y", "fuse_activation_into_elementwise");
  expect_untouched(head + "%s = Add(%a, %b)\n %y = Tanh(%s)\n output %y", "fuse_activation_into_elementwise");
}

TEST(FuseResidual, IntoTheConvThatComesLater) {
  const std::string two = kConv + R"(
    const %w2: float32[4,4,1,1] = seeded(3, -0.5, 0.5)
    %d = Conv(%c, %w2)
    %e = Conv(%x, %w2)
    %y = Add(%e, %d)
    output %y)";
  expect_rewrite(two, {"fuse_residual_into_conv"}, {{"Conv", 3}});
  Graph graph = parse(two);
  run(graph, "fuse_residual_into_conv");
  const Node& last = graph.node(graph.value(graph.outputs()[0]).producer);
  ASSERT_EQ(last.inputs.size(), 4U);
  EXPECT_EQ(graph.value(last.inputs[0]).name, "c") << "the deeper one takes the other as residual";
}

TEST(FuseResidual, WithTheActivationBehindTheAdd) {
  expect_rewrite(kConv + "%s = Add(%c, %x)\n %y = Relu(%s)\n output %y",
                 {"fuse_activation_into_elementwise", "fuse_residual_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + "%s = Add(%c, %x)\n %y = Relu(%s)\n output %y",
                 {"fuse_residual_into_conv", "fuse_activation_into_conv"}, {{"Conv", 1}});
}

TEST(FuseResidual, NotWithActivationTwoReadersOrBroadcast) {
  expect_untouched(kConv + "%r = Relu(%c)\n %y = Add(%r, %x)\n output %y", "fuse_residual_into_conv");
  expect_untouched(kConv + "%y = Add(%c, %c)\n output %y", "fuse_residual_into_conv");
  expect_untouched(kConv + "%t = Tanh(%c)\n %y = Add(%c, %t)\n output %y", "fuse_residual_into_conv");
  expect_untouched(kConv + "input %p: float32[1,4,1,1]\n %y = Add(%c, %p)\n output %y", "fuse_residual_into_conv");
  Capabilities none;
  none.fuse_residual = false;
  expect_untouched(kConv + "%y = Add(%c, %x)\n output %y", "fuse_residual_into_conv", none);
}

}  // namespace
}  // namespace openrknn::opt::testing
