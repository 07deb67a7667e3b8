// Small graphs that once were compiled wrongly, each on every target: the program follows the golden run, and strict
// mode gives the bytes of the fast one.
#include "chain.hpp"
#include "ir/text.hpp"

namespace openrknn::testing {
namespace {

struct Case {
  const char* name;
  const char* body;
};

const Case kCases[] = {
    // Images of one pixel run as the pixels of one row; a stride would skip images.
    {"StrideOverImagesOfOnePixel", R"(
      input %x: float32[4,22,1,1]
      const %w: float32[22,22,1,1] = seeded(1, -1, 1)
      %y = Conv(%x, %w) {strides=[1,2]}
      output %y)"},
    // The residual is the convolution's own input: the result may not take its place.
    {"ResidualIsTheInput", R"(
      input %x: float32[3,8,5,5]
      const %w: float32[8,1,1,1] = seeded(2, 0.5, 1)
      %a = Relu(%x)
      %y = Conv(%a, %w, _, %a) {group=8}
      output %y)"},
    // TopK leaves floats beside integers; its reader wants them on the NPU.
    {"PoolBehindTopK", R"(
      input %x: float32[1,3,7,10]
      const %k: int64[1] = {5}
      %v: float32[1,3,7,5], %i: int64[1,3,7,5] = TopK(%x, %k)
      %y = MaxPool(%v) {kernel_shape=[2,1], strides=[2,3]}
      output %y)"},
    // Slices along the channels are addressing only with step 1 and from a first channel inside.
    {"SliceBackwards", R"(
      input %x: float32[2,32,3,3]
      const %from: int64[1] = {16}
      const %to: int64[1] = {8}
      const %axis: int64[1] = {1}
      const %step: int64[1] = {-1}
      %a = Relu(%x)
      %y = Slice(%a, %from, %to, %axis, %step)
      output %y)"},
    {"SliceFromFarBelow", R"(
      input %x: float32[2,16,3,3]
      const %from: int64[1] = {-1000}
      const %to: int64[1] = {8}
      const %axis: int64[1] = {1}
      %a = Relu(%x)
      %y = Slice(%a, %from, %to, %axis)
      output %y)"},
    {"SliceEverySecond", R"(
      input %x: float32[2,32,3,3]
      const %from: int64[1] = {0}
      const %to: int64[1] = {32}
      const %axis: int64[1] = {1}
      const %step: int64[1] = {2}
      %a = Relu(%x)
      %y = Slice(%a, %from, %to, %axis, %step)
      output %y)"},
    // Slopes along another axis than the channels.
    {"SlopesAlongRows", R"(
      input %x: float32[1,8,4,11]
      const %s: float32[4,1] = seeded(3, -1, 1)
      %y = PRelu(%x, %s)
      output %y)"},
};

class SmallGraph : public ::testing::TestWithParam<Case> {};

TEST_P(SmallGraph, OnEveryTarget) {
  const auto graph = parse_graph(std::string("graph \"g\" {") + GetParam().body + "\n}");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (const target::Target& target : target::all()) {
    for (const char* dtype : {"fp16", "w8a8"}) {
      if (!target.supports(dtype)) continue;
      Graph copy = *graph;
      ASSERT_TRUE(ops::infer_all(copy).ok());
      auto built = build(std::move(copy), target, dtype);
      ASSERT_TRUE(built.ok()) << target.name << ": " << built.error().message();
      auto golden = eval::Evaluator::make(built->graph)->run(built->inputs);
      auto fast = simulate(*built, false);
      auto strict = simulate(*built, true);
      ASSERT_TRUE(golden.ok()) << golden.error().message();
      ASSERT_TRUE(fast.ok()) << target.name << " " << dtype << ": " << fast.error().message();
      ASSERT_TRUE(strict.ok()) << target.name << " " << dtype << ": " << strict.error().message();
      expect_same(*fast, *strict, target.name + " " + dtype);
      const double least = std::string(dtype) == "fp16" ? 0.9999 : 0.99;
      for (const auto& [name, tensor] : *golden)
        EXPECT_GE(cosine(tensor, fast->at(name)), least) << target.name << " " << dtype;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chain, SmallGraph, ::testing::ValuesIn(kCases),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace openrknn::testing
