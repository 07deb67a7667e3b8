// Constants, dead code, nodes that do nothing, arithmetic and padding.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kX = "input %x: float32[1,4,6,8]\n";

TEST(FoldConstant, ShapeArithmetic) {
  expect_rewrite(kX + R"(
    const %i: int64[1] = {1}
    const %n: int64[1] = {-1}
    %s = Shape(%x)
    %c = Gather(%s, %i)
    %t = Concat(%c, %n) {axis=0}
    %y = Reshape(%x, %t)
    output %y)",
                 {"fold_constant"}, {{"Reshape", 1}});
}

TEST(FoldConstant, AnOutputKeepsANode) {
  expect_rewrite(kX + "const %a: float32[2] = {1, 2}\n %y = Relu(%a)\n %z = Relu(%x)\n output %y\n output %z",
                 {"fold_constant"}, {{"Identity", 1}, {"Relu", 1}});
}

TEST(FoldConstant, NotWhatGrowsWithoutBound) {
  expect_untouched(R"(
    input %x: float32[1,64,256,256]
    const %a: float32[1,1,1,1] = {1}
    const %s: int64[4] = {1, 64, 256, 256}
    %e = Expand(%a, %s)
    %y = Add(%x, %e)
    output %y)",
                   "fold_constant");
}

TEST(RemoveDeadCode, WithItsOperands) {
  expect_rewrite(kX + "%a = Relu(%x)\n %b = Tanh(%a)\n %y = Sigmoid(%x)\n output %y", {"remove_dead_code"},
                 {{"Sigmoid", 1}});
}

TEST(RemoveIdentity, AllKinds) {
  for (const std::string op :
       {"Identity(%a)", "Dropout(%a)", "Cast(%a) {to=1}", "Transpose(%a) {perm=[0,1,2,3]}", "Concat(%a) {axis=1}",
        "Slice(%a, %zero, %big, %two)", "Tile(%a, %ones)", "Expand(%a, %ones)", "Pad(%a, %zeros)"}) {
    expect_rewrite(kX + R"(
      const %zero: int64[1] = {0}
      const %big: int64[1] = {100}
      const %two: int64[1] = {2}
      const %ones: int64[4] = {1, 1, 1, 1}
      const %zeros: int64[8] = {0, 0, 0, 0, 0, 0, 0, 0}
      %a = Relu(%x)
      %b = )" + op + "\n %y = Tanh(%b)\n output %y",
                   {"remove_identity"}, {{"Relu", 1}, {"Tanh", 1}});
  }
}

TEST(RemoveIdentity, EmptyOperandsOfConcat) {
  const std::string head = kX + R"(
      const %zero: int64[1] = {0}
      const %one: int64[1] = {1}
      %a = Relu(%x)
      %none = Slice(%x, %zero, %zero, %one)
)";
  expect_rewrite(head + "%b = Concat(%none, %a) {axis=1}\n %y = Tanh(%b)\n output %y",
                 {"remove_identity", "remove_dead_code"}, {{"Relu", 1}, {"Tanh", 1}});
  expect_rewrite(head + "%b = Concat(%a, %none, %a) {axis=1}\n %y = Tanh(%b)\n output %y",
                 {"remove_identity", "remove_dead_code"}, {{"Concat", 1}, {"Relu", 1}, {"Tanh", 1}});
}

TEST(RemoveIdentity, AnOutputKeepsItsName) {
  Graph graph = parse(kX + "%a = Relu(%x)\n %y = Identity(%a)\n output %y");
  EXPECT_EQ(run(graph, "remove_identity"), 1);
  EXPECT_EQ(count_ops(graph), (Counts{{"Relu", 1}}));
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(graph.find_value("a"), graph.outputs()[0]);
}

TEST(RemoveIdentity, NotBetweenInputAndOutputNorTwoOutputs) {
  expect_untouched(kX + "%y = Identity(%x)\n output %y", "remove_identity");
  expect_untouched(kX + "%a = Relu(%x)\n %y = Identity(%a)\n output %y\n output %a", "remove_identity");
  expect_untouched(kX + "%a = Relu(%x)\n %y = Cast(%a) {to=10}\n output %y", "remove_identity");
  expect_untouched(kX + "%y = Transpose(%x) {perm=[0,1,3,2]}\n output %y", "remove_identity");
}

TEST(RemoveNeutral, ZeroAndOne) {
  const std::string k = "const %0: float32[4,1,1] = fill(0)\n const %1: float32[] = fill(1)\n %a = Relu(%x)\n";
  for (const std::string op :
       {"Add(%a, %0)", "Add(%0, %a)", "Sub(%a, %0)", "Mul(%a, %1)", "Mul(%1, %a)", "Div(%a, %1)"}) {
    expect_rewrite(kX + k + "%b = " + op + "\n %y = Tanh(%b)\n output %y", {"remove_neutral"},
                   {{"Relu", 1}, {"Tanh", 1}});
  }
  for (const std::string op : {"Sub(%0, %a)", "Div(%1, %a)", "Mul(%a, %0)"}) {
    expect_untouched(kX + k + "%b = " + op + "\n %y = Tanh(%b)\n output %y", "remove_neutral");
  }
}

TEST(Arithmetic, Forms) {
  const std::string k = "const %k: float32[] = fill(4)\n const %two: float32[] = fill(2)\n";
  expect_rewrite(kX + k + "%y = Div(%x, %k)\n output %y", {"convert_div_to_mul"}, {{"Mul", 1}});
  expect_rewrite(kX + k + "%y = Sub(%x, %k)\n output %y", {"convert_sub_to_add"}, {{"Add", 1}});
  expect_rewrite(kX + k + "%y = Pow(%x, %two)\n output %y", {"convert_pow_to_mul"}, {{"Mul", 1}});
  expect_rewrite(kX + "%a = Relu(%x)\n %y = Sum(%x, %a, %x)\n output %y", {"convert_sum_to_add"},
                 {{"Relu", 1}, {"Add", 2}});
  expect_rewrite(kX + "%a = Relu(%x)\n %y = Mean(%x, %a)\n output %y", {"convert_sum_to_add"},
                 {{"Relu", 1}, {"Add", 1}, {"Mul", 1}});
  expect_rewrite(kX + k + "%a = Mul(%x, %k)\n %y = Mul(%two, %a)\n output %y", {"fuse_two_mul"}, {{"Mul", 1}});
  expect_rewrite(kX + k + "%a = Add(%x, %k)\n %y = Add(%two, %a)\n output %y", {"fuse_two_add"}, {{"Add", 1}});
  expect_untouched(kX + k + "%y = Div(%k, %x)\n output %y", "convert_div_to_mul");
  expect_untouched(kX + k + "%y = Sub(%k, %x)\n output %y", "convert_sub_to_add");
  expect_untouched(kX + k + "%y = Pow(%x, %k)\n output %y", "convert_pow_to_mul");
  expect_untouched(kX + k + "%a = Mul(%x, %k)\n %y = Mul(%two, %a)\n output %y\n output %a", "fuse_two_mul");
  expect_untouched("input %x: int64[4]\n const %k: int64[] = {2}\n %y = Div(%x, %k)\n output %y", "convert_div_to_mul");
}

TEST(Padding, ExplicitForms) {
  const std::string w = "const %w: float32[4,4,3,2] = seeded(1, -1, 1)\n";
  for (const std::string mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    const std::string body = kX + w + "%y = Conv(%x, %w) {strides=[2,2], auto_pad=\"" + mode + "\"}\n output %y";
    expect_rewrite(body, {"make_padding_explicit"}, {{"Conv", 1}});
    Graph graph = parse(body);
    run(graph, "make_padding_explicit");
    const Node& conv = graph.node(graph.value(graph.outputs()[0]).producer);
    EXPECT_FALSE(conv.attributes.has("auto_pad"));
    EXPECT_EQ(conv.attributes.ints_or("pads", {}).size(), 4U);
    expect_rewrite(kX + "%y = MaxPool(%x) {kernel_shape=[3,2], auto_pad=\"" + mode + "\"}\n output %y",
                   {"make_padding_explicit"}, {{"MaxPool", 1}});
  }
}

TEST(Padding, IntoConv) {
  const std::string head = kX + R"(
    const %w: float32[4,4,3,3] = seeded(1, -1, 1)
    const %p: int64[8] = {0, 0, 1, 2, 0, 0, 0, 1}
    const %one: float32[] = fill(1)
  )";
  expect_rewrite(head + "%a = Pad(%x, %p)\n %y = Conv(%a, %w) {pads=[1,0,1,0]}\n output %y", {"fuse_pad_into_conv"},
                 {{"Conv", 1}});
  expect_untouched(head + "%a = Pad(%x, %p, %one)\n %y = Conv(%a, %w)\n output %y", "fuse_pad_into_conv");
  expect_untouched(head + "%a = Pad(%x, %p)\n %y = Conv(%a, %w)\n output %y\n output %a", "fuse_pad_into_conv");
  expect_untouched(kX + R"(
    const %w: float32[4,6,3,3] = seeded(1, -1, 1)
    const %p: int64[8] = {0, 1, 0, 0, 0, 1, 0, 0}
    %a = Pad(%x, %p)
    %y = Conv(%a, %w)
    output %y)",
                   "fuse_pad_into_conv");
}

TEST(Padding, IntoPool) {
  const std::string head = kX + "const %p: int64[8] = {0, 0, 1, 1, 0, 0, 1, 0}\n";
  const std::string low = "const %low: float32[] = fill(-3.4028235e38)\n";
  expect_rewrite(head + "%a = Pad(%x, %p)\n %y = AveragePool(%a) {kernel_shape=[3,3]}\n output %y",
                 {"fuse_pad_into_pool"}, {{"AveragePool", 1}});
  expect_rewrite(
      head + "%r = Relu(%x)\n %a = Pad(%r, %p)\n %y = MaxPool(%a) {kernel_shape=[3,3], strides=[2,2]}\n output %y",
      {"fuse_pad_into_pool"}, {{"Relu", 1}, {"MaxPool", 1}});
  expect_rewrite(head + low + "%a = Pad(%x, %p, %low)\n %y = MaxPool(%a) {kernel_shape=[3,3]}\n output %y",
                 {"fuse_pad_into_pool"}, {{"MaxPool", 1}});
  expect_untouched(head + "%a = Pad(%x, %p)\n %y = MaxPool(%a) {kernel_shape=[3,3]}\n output %y", "fuse_pad_into_pool");
  expect_untouched(head + "%a = Pad(%x, %p)\n %y = AveragePool(%a) {kernel_shape=[3,3], pads=[1,1,1,1]}\n output %y",
                   "fuse_pad_into_pool");
}

}  // namespace
}  // namespace openrknn::opt::testing
