// Graph to Program to simulated run, on seeded random networks: the compiler and the simulator against the golden run.
#include "chain.hpp"

#include "random_network.hpp"

namespace openrknn::testing {
namespace {

class RandomChain : public ::testing::TestWithParam<int> {};

TEST_P(RandomChain, ProgramFollowsTheGoldenRun) {
  const auto seed = static_cast<uint32_t>(GetParam());
  for (const char* dtype : {"fp16", "w8a8"}) {
    for (const bool optimize : {false, true}) {
      auto built = build(random_network(seed, 12), target_named("rk3588"), dtype, {}, optimize);
      ASSERT_TRUE(built.ok()) << built.error().message();
      auto evaluator = eval::Evaluator::make(built->graph);
      ASSERT_TRUE(evaluator.ok());
      auto golden = evaluator->run(built->inputs);
      ASSERT_TRUE(golden.ok()) << golden.error().message();
      auto run = simulate(*built, false);
      ASSERT_TRUE(run.ok()) << run.error().message();
      for (const auto& [name, tensor] : *golden) {
        EXPECT_GE(cosine(tensor, run->at(name)), std::string(dtype) == "fp16" ? 0.9999 : 0.97)
            << dtype << " " << optimize << " " << name;
      }
    }
  }
}

TEST_P(RandomChain, TilesAndAddressesDoNotChangeTheBytes) {
  const auto seed = static_cast<uint32_t>(GetParam());
  for (const target::Target& target : target::all()) {
    for (const char* dtype : {"fp16", "w8a8"}) {
      if (!target.supports(dtype)) continue;
      auto whole = build(random_network(seed, 10), target, dtype);
      ASSERT_TRUE(whole.ok()) << target.name << ": " << whole.error().message();
      auto fast = simulate(*whole, false, true);
      ASSERT_TRUE(fast.ok()) << fast.error().message();
      npu::CompileOptions options;
      options.max_tile_rows = 1 + seed % 5;
      options.max_tile_columns = 1 + seed % 7;
      options.max_tile_channels = 32;
      for (const npu::CompileOptions& tiles : {npu::CompileOptions{}, options}) {
        auto split = build(random_network(seed, 10), target, dtype, tiles);
        ASSERT_TRUE(split.ok()) << split.error().message();
        auto strict = simulate(*split, true, true);
        ASSERT_TRUE(strict.ok()) << target.name << " " << dtype << ": " << strict.error().message();
        expect_same(*fast, *strict, target.name + " " + dtype);
      }
    }
  }
}

// Every way to give the extent of a transposed convolution: its pads are shape inference's, not the lowering's own.
TEST(Chain, TransposedConvolutionsOfEveryExtent) {
  const auto with = [](std::initializer_list<std::pair<const char*, Attribute>> list) {
    Attributes a;
    a.set("strides", std::vector<int64_t>{2, 2});
    for (const auto& [name, value] : list) a.set(name, value);
    return a;
  };
  const std::vector<Attributes> cases = {
      with({{"output_shape", std::vector<int64_t>{10, 10}}}),
      with({{"output_shape", std::vector<int64_t>{9, 12}}}),
      with({{"auto_pad", std::string("SAME_UPPER")}}),
      with({{"auto_pad", std::string("SAME_LOWER")}}),
      with({{"auto_pad", std::string("VALID")}}),
      with({{"output_padding", std::vector<int64_t>{1, 0}}, {"pads", std::vector<int64_t>{1, 0, 0, 1}}}),
      with({{"strides", std::vector<int64_t>{1, 1}}, {"pads", std::vector<int64_t>{2, 2, 2, 2}}}),
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Graph graph;
    const ValueId x = graph.add_input("x", DType::kFloat32, Shape{1, 4, 5, 5});
    Tensor w(DType::kFloat32, Shape{4, 6, 3, 3});
    for (size_t k = 0; k < w.mutable_as<float>().size(); ++k)
      w.mutable_as<float>()[k] = static_cast<float>(k % 7) - 2.5F;
    const auto y = ops::add_node(graph, "ConvTranspose", "y", {x, graph.add_constant("w", std::move(w))}, cases[i]);
    ASSERT_TRUE(y.ok()) << i << y.error().message();
    graph.add_output((*y)[0]);
    auto built = build(std::move(graph), target_named("rk3588"), "fp16");
    ASSERT_TRUE(built.ok()) << i << built.error().message();
    auto evaluator = eval::Evaluator::make(built->graph);
    auto golden = evaluator->run(built->inputs);
    auto run = simulate(*built, false);
    ASSERT_TRUE(golden.ok() && run.ok()) << i;
    EXPECT_GE(cosine(golden->at("y"), run->at("y")), 0.99999) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomChain, ::testing::Range(0, 24));

}  // namespace
}  // namespace openrknn::testing
