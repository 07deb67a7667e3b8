// BatchNormalization, bias and scale move into convolutions.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kConv = R"(
  input %x: float32[1,3,8,8]
  const %w: float32[4,3,3,3] = seeded(1, -1, 1)
  const %b: float32[4] = seeded(2, -1, 1)
  %c = Conv(%x, %w, %b) {pads=[1,1,1,1]} "conv1"
)";
const std::string kNorm = R"(
  const %s: float32[4] = seeded(3, 0.5, 2)
  const %t: float32[4] = seeded(4, -1, 1)
  const %m: float32[4] = seeded(5, -1, 1)
  const %v: float32[4] = seeded(6, 0.5, 2)
)";

TEST(FuseBatchnorm, IntoConv) {
  expect_rewrite(kConv + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v)\n output %y",
                 {"fuse_batchnorm_into_conv"}, {{"Conv", 1}});
}

TEST(FuseBatchnorm, IntoGroupedConvTranspose) {
  expect_rewrite(R"(
    input %x: float32[1,4,5,5]
    const %w: float32[4,2,2,2] = seeded(1, -1, 1)
    %c = ConvTranspose(%x, %w) {strides=[2,2], group=2}
  )" + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v) {epsilon=0.01}\n output %y",
                 {"fuse_batchnorm_into_conv"}, {{"ConvTranspose", 1}});
}

TEST(FuseBatchnorm, KeepsTheLastNameAndTheInnerOneAsAlias) {
  Graph graph = parse(kConv + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v)\n output %y");
  EXPECT_EQ(run(graph, "fuse_batchnorm_into_conv"), 1);
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(graph.value(graph.outputs()[0]).aliases, std::vector<std::string>{"c"});
  EXPECT_EQ(graph.find_value("c"), graph.outputs()[0]);
  EXPECT_TRUE(graph.find_value("w").has_value()) << "the weights keep their name";
}

TEST(FuseBatchnorm, NotWhenTheConvIsReadTwice) {
  const std::string body = kConv + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v)\n";
  expect_untouched(body + "%z = Relu(%c)\n output %y\n output %z", "fuse_batchnorm_into_conv");
  expect_untouched(body + "output %y\n output %c", "fuse_batchnorm_into_conv");
}

TEST(FuseBatchnorm, NotIntoDynamicWeights) {
  expect_untouched(R"(
    input %x: float32[1,3,8,8]
    input %w: float32[4,3,3,3]
    %c = Conv(%x, %w)
  )" + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v)\n output %y",
                   "fuse_batchnorm_into_conv");
}

TEST(FuseBatchnorm, NotBehindAnActivation) {
  expect_untouched(R"(
    input %x: float32[1,3,8,8]
    const %w: float32[4,3,3,3] = seeded(1, -1, 1)
    %c = Conv(%x, %w) {activation="Relu"}
  )" + kNorm + "%y = BatchNormalization(%c, %s, %t, %m, %v)\n output %y",
                   "fuse_batchnorm_into_conv");
}

TEST(ConvertBatchnorm, ToDepthwiseConv) {
  for (const char* shape : {"1,4,6,6", "2,4,7"}) {
    expect_rewrite(std::string("input %x: float32[") + shape + "]\n" + kNorm +
                       "%y = BatchNormalization(%x, %s, %t, %m, %v)\n output %y",
                   {"convert_batchnorm_to_conv"}, {{"Conv", 1}});
  }
  Capabilities none;
  none.lower_to_conv = false;
  expect_untouched("input %x: float32[1,4,6,6]\n" + kNorm + "%y = BatchNormalization(%x, %s, %t, %m, %v)\n output %y",
                   "convert_batchnorm_to_conv", none);
}

TEST(FuseAdd, ConstantOnEitherSide) {
  const std::string k = "const %k: float32[1,4,1,1] = seeded(7, -1, 1)\n";
  expect_rewrite(kConv + k + "%y = Add(%c, %k)\n output %y", {"fuse_add_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + k + "%y = Add(%k, %c)\n output %y", {"fuse_add_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + k + "%y = Sub(%c, %k)\n output %y", {"fuse_add_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + k + "%y = Sub(%k, %c)\n output %y", {"fuse_add_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + "const %k: float32[] = fill(0.5)\n %y = Add(%c, %k)\n output %y", {"fuse_add_into_conv"},
                 {{"Conv", 1}});
}

TEST(FuseAdd, NotAlongTheWrongAxisOrWhenItGrows) {
  expect_untouched(kConv + "const %k: float32[8] = seeded(7, -1, 1)\n %y = Add(%c, %k)\n output %y",
                   "fuse_add_into_conv");
  expect_untouched(kConv + "const %k: float32[4,1,1,1] = seeded(7, -1, 1)\n %y = Add(%c, %k)\n output %y",
                   "fuse_add_into_conv");
  expect_untouched(kConv + "const %k: float32[4,8,8] = seeded(7, -1, 1)\n %y = Add(%c, %k)\n output %y",
                   "fuse_add_into_conv");
}

TEST(FuseMul, IntoConv) {
  const std::string k = "const %k: float32[4,1,1] = seeded(7, 0.5, 2)\n";
  expect_rewrite(kConv + k + "%y = Mul(%c, %k)\n output %y", {"fuse_mul_into_conv"}, {{"Conv", 1}});
  expect_rewrite(kConv + k + "%y = Div(%c, %k)\n output %y", {"fuse_mul_into_conv"}, {{"Conv", 1}});
  expect_untouched(kConv + k + "%y = Div(%k, %c)\n output %y", "fuse_mul_into_conv");
  expect_untouched(kConv + "const %z: float32[4,1,1] = fill(0)\n %y = Div(%c, %z)\n output %y", "fuse_mul_into_conv");
}

TEST(FuseScaleBefore, ScaleAlwaysShiftOnlyWithoutPadding) {
  const std::string head = R"(
    input %x: float32[1,4,8,8]
    const %k: float32[4,1,1] = seeded(7, 0.5, 2)
    const %w: float32[6,2,3,3] = seeded(1, -1, 1)
  )";
  expect_rewrite(head + "%s = Mul(%x, %k)\n %y = Conv(%s, %w) {group=2, pads=[1,1,1,1]}\n output %y",
                 {"fuse_scale_before_conv"}, {{"Conv", 1}});
  expect_rewrite(head + "%s = Add(%x, %k)\n %y = Conv(%s, %w) {group=2}\n output %y", {"fuse_scale_before_conv"},
                 {{"Conv", 1}});
  expect_untouched(head + "%s = Add(%x, %k)\n %y = Conv(%s, %w) {group=2, pads=[1,1,1,1]}\n output %y",
                   "fuse_scale_before_conv");
  expect_untouched(head + "%s = Mul(%x, %k)\n %y = Conv(%s, %w) {group=2}\n output %y\n output %s",
                   "fuse_scale_before_conv");
}

TEST(ConvertAffine, FactorAndSummandBecomeOneConv) {
  const std::string head = R"(
    input %x: float32[1,4,6,6]
    const %k: float32[4,1,1] = seeded(7, 0.5, 2)
    const %b: float32[] = fill(0.3)
    %m = Mul(%x, %k)
  )";
  expect_rewrite(head + "%y = Add(%m, %b)\n output %y", {"convert_affine_to_conv"}, {{"Conv", 1}});
  expect_rewrite(head + "%y = Sub(%b, %m)\n output %y", {"convert_affine_to_conv"}, {{"Conv", 1}});
  expect_untouched(head + "%y = Add(%m, %x)\n output %y", "convert_affine_to_conv");
  expect_untouched(head + "%y = Add(%m, %b)\n output %y\n output %m", "convert_affine_to_conv");
}

TEST(FuseAll, NormalizedFullyConnectedLayer) {
  Graph graph = parse("input %x: float32[2,6]\n" + kNorm + R"(
    const %w: float32[4,6] = seeded(1, -1, 1)
    const %b: float32[4] = seeded(2, -1, 1)
    %g = Gemm(%x, %w) {transB=1}
    %a = Add(%g, %b)
    %n = BatchNormalization(%a, %s, %t, %m, %v)
    %y = Relu(%n)
    output %y)");
  const auto inputs = wide_inputs(graph, 1);
  const auto wanted = outputs_of(graph, inputs);
  ASSERT_TRUE(optimize(graph, {}).ok());
  EXPECT_EQ(count_ops(graph), (Counts{{"Reshape", 2}, {"Conv", 1}}));
  EXPECT_LE(difference(wanted, outputs_of(graph, inputs)), 1e-5);
}

TEST(FuseAll, ChainsWithoutAConvEndInOne) {
  Graph graph = parse("input %x: float32[1,4,6,6]\n" + kNorm + R"(
    const %k: float32[4,1,1] = seeded(7, 0.5, 2)
    %n = BatchNormalization(%x, %s, %t, %m, %v)
    %p = Mul(%n, %k)
    %q = Add(%p, %k)
    %y = Relu(%q)
    output %y)");
  ASSERT_TRUE(optimize(graph, {}).ok());
  EXPECT_EQ(count_ops(graph), (Counts{{"Conv", 1}}));
}

TEST(FuseAll, MixedChainsEndInTheConv) {
  Graph graph = parse(kConv + kNorm + R"(
    const %k: float32[4,1,1] = seeded(7, 0.5, 2)
    %n = BatchNormalization(%c, %s, %t, %m, %v)
    %p = Mul(%n, %k)
    %q = Add(%p, %k)
    %r = Mul(%q, %k)
    %y = Relu(%r)
    output %y)");
  ASSERT_TRUE(optimize(graph, {}).ok());
  EXPECT_EQ(count_ops(graph), (Counts{{"Conv", 1}}));
}

}  // namespace
}  // namespace openrknn::opt::testing
