// Reshape and Transpose: chains, cancelling pairs, moving behind other nodes.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

const std::string kX = "input %x: float32[1,4,6,8]\n";
const std::string kNhwc = kX + "%t = Transpose(%x) {perm=[0,2,3,1]}\n";

TEST(Reshape, OneForm) {
  expect_rewrite(kX + "%y = Flatten(%x)\n output %y", {"convert_to_reshape"}, {{"Reshape", 1}});
  expect_rewrite(kX + "const %a: int64[1] = {0}\n %y = Squeeze(%x, %a)\n output %y", {"convert_to_reshape"},
                 {{"Reshape", 1}});
  expect_rewrite(kX + "const %a: int64[2] = {1, 4}\n %y = Unsqueeze(%x, %a)\n output %y", {"convert_to_reshape"},
                 {{"Reshape", 1}});
  expect_rewrite(kX + "const %s: int64[3] = {0, -1, 8}\n %y = Reshape(%x, %s)\n output %y", {"convert_to_reshape"},
                 {{"Reshape", 1}});
}

TEST(Reshape, ChainsAndPairs) {
  const std::string s = "const %s: int64[2] = {4, 48}\n const %u: int64[4] = {1, 4, 6, 8}\n";
  expect_rewrite(kX + s + "%r = Relu(%x)\n %a = Reshape(%r, %s)\n %b = Reshape(%a, %u)\n %y = Tanh(%b)\n output %y",
                 {"fuse_two_reshape"}, {{"Relu", 1}, {"Tanh", 1}});
  expect_rewrite(kX + "%a = Flatten(%x) {axis=2}\n %y = Flatten(%a) {axis=0}\n output %y", {"fuse_two_reshape"},
                 {{"Reshape", 1}});
}

TEST(Reshape, SinksBelowElementwise) {
  expect_rewrite(kX + R"(
    const %w: float32[4,4,1,1] = seeded(1, -1, 1)
    %c = Conv(%x, %w)
    %f = Flatten(%c)
    %y = Relu(%f)
    output %y)",
                 {"convert_to_reshape", "sink_reshape", "fuse_activation_into_conv"}, {{"Conv", 1}, {"Reshape", 1}});
  // Not towards shapes that the NPU does not hold.
  expect_untouched(R"(
    input %x: float32[1,2,2,6,8]
    const %s: int64[4] = {1, 4, 6, 8}
    %r = Reshape(%x, %s)
    %y = Relu(%r)
    output %y)",
                   "sink_reshape");
  expect_untouched(kX + R"(
    const %s: int64[2] = {1, 192}
    const %k: float32[192] = seeded(1, -1, 1)
    %r = Reshape(%x, %s)
    %y = Add(%r, %k)
    output %y)",
                   "sink_reshape");
}

TEST(Transpose, Pairs) {
  expect_rewrite(kNhwc + "%b = Transpose(%t) {perm=[0,3,1,2]}\n %y = Relu(%b)\n output %y", {"fuse_two_transpose"},
                 {{"Relu", 1}});
  expect_rewrite(kNhwc + "%y = Transpose(%t) {perm=[0,2,1,3]}\n output %y", {"fuse_two_transpose"}, {{"Transpose", 1}});
}

TEST(Transpose, OfUnitAxesIsReshape) {
  expect_rewrite("input %x: float32[1,4,1,8]\n %y = Transpose(%x) {perm=[0,2,1,3]}\n output %y",
                 {"convert_transpose_to_reshape"}, {{"Reshape", 1}});
  expect_untouched(kX + "%y = Transpose(%x) {perm=[0,2,1,3]}\n output %y", "convert_transpose_to_reshape");
}

void expect_cancelled(const std::string& middle, const Counts& left) {
  expect_rewrite(kNhwc + middle + "%y = Transpose(%m) {perm=[0,3,1,2]}\n output %y",
                 {"sink_transpose", "fuse_two_transpose", "fold_constant", "remove_identity"}, left);
}

TEST(Transpose, SinksBelowWhatDoesNotCare) {
  expect_cancelled("%m = Relu(%t)\n", {{"Relu", 1}});
  expect_cancelled("const %k: float32[4] = seeded(1, -1, 1)\n %m = Add(%t, %k)\n", {{"Add", 1}});
  expect_cancelled("const %k: float32[] = fill(2)\n %m = Mul(%k, %t)\n", {{"Mul", 1}});
  expect_cancelled("%m = Mul(%t, %t)\n", {{"Mul", 1}});
  expect_cancelled("%m = Softmax(%t) {axis=-1}\n", {{"Softmax", 1}});
  expect_cancelled("const %p: int64[8] = {0, 1, 2, 0, 0, 0, 1, 0}\n %m = Pad(%t, %p)\n", {{"Pad", 1}});
  expect_cancelled("const %a: int64[2] = {1, 2}\n %m = ReduceMean(%t, %a)\n", {{"ReduceMean", 1}});
  expect_cancelled("input %z: float32[1,2,6,8]\n %u = Transpose(%z) {perm=[0,2,3,1]}\n %m = Concat(%t, %u) {axis=3}\n",
                   {{"Concat", 1}});
  expect_cancelled("input %z: float32[1,4,6,8]\n %u = Transpose(%z) {perm=[0,2,3,1]}\n %m = Sub(%t, %u)\n",
                   {{"Sub", 1}});
}

TEST(Transpose, ReductionWithoutKeptAxes) {
  expect_rewrite(kNhwc + "const %a: int64[1] = {1}\n %y = ReduceMean(%t, %a) {keepdims=0}\n output %y",
                 {"sink_transpose"}, {{"ReduceMean", 1}, {"Transpose", 1}});
}

TEST(Transpose, StaysWhereItIsReadTwiceOrMixed) {
  expect_untouched(kNhwc + "%a = Relu(%t)\n %b = Tanh(%t)\n output %a\n output %b", "sink_transpose");
  expect_untouched(kNhwc + "input %z: float32[1,6,8,4]\n %y = Add(%t, %z)\n output %y", "sink_transpose");
  expect_untouched(kNhwc + "%y = Relu(%t)\n output %y\n output %t", "sink_transpose");
}

TEST(Transpose, ChannelShuffleStays) {
  Graph graph = parse(R"(
    input %x: float32[1,8,6,6]
    const %w: float32[8,4,1,1] = seeded(1, -1, 1)
    const %a: int64[5] = {1, 2, 4, 6, 6}
    const %b: int64[4] = {1, 8, 6, 6}
    %r = Reshape(%x, %a)
    %t = Transpose(%r) {perm=[0,2,1,3,4]}
    %s = Reshape(%t, %b)
    %y = Conv(%s, %w) {group=2}
    output %y)");
  const auto report = optimize(graph, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(count_ops(graph), (Counts{{"Reshape", 2}, {"Transpose", 1}, {"Conv", 1}}));
}

}  // namespace
}  // namespace openrknn::opt::testing
