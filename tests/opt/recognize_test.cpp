// Activations and normalisations spelled as several nodes.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kX = R"(
  input %x: float32[1,4,6,8]
  const %half: float32[] = fill(0.5)
  const %one: float32[] = fill(1)
  const %zero: float32[] = fill(0)
  const %three: float32[] = fill(3)
  const %six: float32[] = fill(6)
  const %sixth: float32[1] = fill(0.16666667)
  const %root: float32[] = fill(1.4142135)
)";

void expect_recognized(const std::string& body, const std::string& pass, const std::string& op) {
  expect_rewrite(kX + body + "\n output %y", {pass}, {{op, 1}});
}

TEST(Recognize, Swish) {
  expect_recognized("%s = Sigmoid(%x)\n %y = Mul(%x, %s)", "fuse_swish", "exSwish");
  expect_recognized("%s = Sigmoid(%x)\n %y = Mul(%s, %x)", "fuse_swish", "exSwish");
  expect_untouched(kX + "%s = Sigmoid(%x)\n %y = Mul(%x, %s)\n output %y\n output %s", "fuse_swish");
  expect_untouched(kX + "input %z: float32[1,4,6,8]\n %s = Sigmoid(%x)\n %y = Mul(%z, %s)\n output %y", "fuse_swish");
  expect_untouched(kX + "%s = HardSigmoid(%x)\n %y = Mul(%x, %s)\n output %y", "fuse_swish");
}

TEST(Recognize, SwishOfSomethingActivated) {
  expect_rewrite(kX + "%r = Relu(%x)\n %s = Sigmoid(%r)\n %y = Mul(%r, %s)\n output %y", {"fuse_swish"},
                 {{"Relu", 1}, {"exSwish", 1}});
}

TEST(Recognize, GeluByErf) {
  const std::string erf = "%d = Div(%x, %root)\n %e = Erf(%d)\n %f = Add(%e, %one)\n";
  expect_recognized(erf + "%m = Mul(%x, %f)\n %y = Mul(%m, %half)", "fuse_gelu", "exGelu");
  expect_recognized(erf + "%m = Mul(%x, %half)\n %y = Mul(%m, %f)", "fuse_gelu", "exGelu");
  expect_recognized(erf + "%m = Mul(%half, %f)\n %y = Mul(%x, %m)", "fuse_gelu", "exGelu");
  expect_recognized("%y = Gelu(%x) {approximate=\"tanh\"}", "fuse_gelu", "exGelu");
}

TEST(Recognize, GeluByTanh) {
  Graph graph = parse(kX + R"(
    const %a: float32[] = fill(0.044715)
    const %b: float32[] = fill(0.7978845608)
    %p = Pow(%x, %three)
    %q = Mul(%p, %a)
    %r = Add(%x, %q)
    %s = Mul(%r, %b)
    %t = Tanh(%s)
    %u = Add(%one, %t)
    %v = Mul(%x, %half)
    %y = Mul(%v, %u)
    output %y)");
  EXPECT_EQ(run(graph, "fuse_gelu"), 1);
  const Node& gelu = graph.node(graph.value(graph.outputs()[0]).producer);
  EXPECT_EQ(gelu.op, "exGelu");
  EXPECT_EQ(gelu.attributes.string_or("approximate", ""), "tanh");
}

TEST(Recognize, HardSwishInEverySpelling) {
  const std::string relu6 = "%a = Add(%x, %three)\n %c = Clip(%a, %zero, %six)\n";
  expect_recognized(relu6 + "%m = Mul(%x, %c)\n %y = Div(%m, %six)", "fuse_hardswish", "HardSwish");
  expect_recognized(relu6 + "%m = Mul(%c, %x)\n %y = Mul(%m, %sixth)", "fuse_hardswish", "HardSwish");
  expect_recognized(relu6 + "%d = Div(%c, %six)\n %y = Mul(%x, %d)", "fuse_hardswish", "HardSwish");
  expect_recognized(relu6 + "%d = Mul(%x, %sixth)\n %y = Mul(%d, %c)", "fuse_hardswish", "HardSwish");
  expect_recognized("%s = HardSigmoid(%x) {alpha=0.16666667, beta=0.5}\n %y = Mul(%x, %s)", "fuse_hardswish",
                    "HardSwish");
  expect_untouched(kX + "%s = HardSigmoid(%x) {alpha=0.2}\n %y = Mul(%x, %s)\n output %y", "fuse_hardswish");
}

TEST(Recognize, HardSigmoid) {
  const std::string relu6 = "%a = Add(%three, %x)\n %c = Clip(%a, %zero, %six)\n";
  expect_recognized(relu6 + "%y = Div(%c, %six)", "fuse_hardsigmoid", "HardSigmoid");
  expect_recognized("%m = Mul(%x, %sixth)\n %a = Add(%m, %half)\n %y = Clip(%a, %zero, %one)", "fuse_hardsigmoid",
                    "HardSigmoid");
}

TEST(Recognize, MishAndLeakyRelu) {
  expect_recognized("%s = Softplus(%x)\n %t = Tanh(%s)\n %y = Mul(%x, %t)", "fuse_mish", "exMish");
  expect_recognized("%e = Exp(%x)\n %a = Add(%e, %one)\n %l = Log(%a)\n %t = Tanh(%l)\n %y = Mul(%t, %x)", "fuse_mish",
                    "exMish");
  expect_recognized("%m = Mul(%x, %sixth)\n %y = Max(%x, %m)", "fuse_leakyrelu", "LeakyRelu");
  expect_recognized("%y = PRelu(%x, %sixth)", "fuse_leakyrelu", "LeakyRelu");
  expect_untouched(kX + "%m = Mul(%x, %three)\n %y = Max(%x, %m)\n output %y", "fuse_leakyrelu");
}

TEST(Recognize, Clip) {
  expect_recognized("%r = Relu(%x)\n %y = Min(%r, %six)", "fuse_clip", "Clip");
  expect_recognized("%r = Min(%six, %x)\n %y = Relu(%r)", "fuse_clip", "Clip");
  expect_recognized("%y = Max(%x, %zero)", "fuse_clip", "Relu");
  expect_recognized("%y = Clip(%x, %zero)", "fuse_clip", "Relu");
  expect_recognized("%r = Relu(%x)\n %y = Relu(%r)", "fuse_clip", "Relu");
  expect_untouched(kX + "%y = Clip(%x, %zero, %six)\n output %y", "fuse_clip");
  expect_untouched(kX + "input %z: float32[1,4,6,8]\n %y = Max(%x, %z)\n output %y", "fuse_clip");
}

TEST(Recognize, LayerNorm) {
  const std::string head = kX + R"(
    const %axis: int64[1] = {-1}
    const %eps: float32[] = fill(0.001)
    const %two: float32[] = fill(2)
    const %g: float32[8] = seeded(1, 0.5, 2)
    const %b: float32[8] = seeded(2, -1, 1)
    %mean = ReduceMean(%x, %axis)
    %d = Sub(%x, %mean)
  )";
  const std::string tail = R"(
    %var = ReduceMean(%q, %axis)
    %e = Add(%var, %eps)
    %r = Sqrt(%e)
    %n = Div(%d, %r)
  )";
  for (const std::string square : {"%q = Pow(%d, %two)", "%q = Mul(%d, %d)"}) {
    expect_rewrite(head + square + tail + "%m = Mul(%n, %g)\n %y = Add(%b, %m)\n output %y", {"fuse_layernorm"},
                   {{"LayerNormalization", 1}});
    expect_rewrite(head + square + tail + "%y = Relu(%n)\n output %y", {"fuse_layernorm"},
                   {{"LayerNormalization", 1}, {"Relu", 1}});
  }
  expect_untouched(head + "%q = Mul(%d, %x)" + tail + "output %n", "fuse_layernorm");
}

TEST(ReduceL2, RootOfASumOfSquares) {
  const std::string head = "input %x: float32[1,8,4,4]\n const %axes: int64[1] = {1}\n";
  expect_rewrite(head + "%q = Mul(%x, %x)\n %s = ReduceSum(%q, %axes)\n %y = Sqrt(%s)\n output %y",
                 {"fuse_reduce_l2", "remove_dead_code"}, {{"ReduceL2", 1}});
  expect_rewrite(
      head +
          "const %h: float32[] = {0.5}\n %s = ReduceSumSquare(%x, %axes) {keepdims=0}\n %y = Pow(%s, %h)\n output %y",
      {"fuse_reduce_l2", "remove_dead_code"}, {{"ReduceL2", 1}});
  expect_untouched(head + "%r = Relu(%x)\n %q = Mul(%x, %r)\n %s = ReduceSum(%q, %axes)\n %y = Sqrt(%s)\n output %y",
                   "fuse_reduce_l2");
  expect_untouched(head + "%q = Mul(%x, %x)\n %s = ReduceMean(%q, %axes)\n %y = Sqrt(%s)\n output %y",
                   "fuse_reduce_l2");
}

}  // namespace
}  // namespace openrknn::opt::testing
