// Graph to Program to simulated run, on seeded random networks: the compiler and the simulator against the golden run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "eval/evaluator.hpp"
#include "npu/compile.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"
#include "quant/calibration.hpp"
#include "random_network.hpp"
#include "sim/machine.hpp"

namespace openrknn {
namespace {

struct Built {
  Graph graph;
  model::Program program;
  eval::Tensors inputs;
};

Result<Built> build(Graph graph, const target::Target& target, const std::string& dtype,
                    const npu::CompileOptions& base = {}, bool optimize = false) {
  Built b;
  b.graph = std::move(graph);
  b.inputs = eval::seeded_inputs(b.graph, 11);
  if (optimize) {
    opt::OptimizeOptions options;
    options.capabilities = npu::capabilities(target);
    options.golden_inputs = b.inputs;
    OPENRKNN_TRY(const auto report, opt::optimize(b.graph, options));
    if (!report.rolled_back.empty()) return Error{ErrorCode::kInternal, "rolled back", report.rolled_back[0], "", ""};
  }
  OPENRKNN_TRY(const auto placement, quant::place(b.graph, target, {dtype, {}}));
  if (dtype == "w8a8") {
    int samples = 0;
    OPENRKNN_TRY(const auto ranges, quant::calibrate(
                                        b.graph,
                                        [&]() -> Result<std::optional<eval::Tensors>> {
                                          if (samples++ > 0) return std::optional<eval::Tensors>();
                                          return std::optional<eval::Tensors>(b.inputs);
                                        },
                                        1));
    OPENRKNN_CHECK_OK(quant::assign_params(b.graph, placement, ranges, "channel"));
  }
  npu::CompileOptions options = base;
  options.dtype = dtype;
  OPENRKNN_TRY(b.program, npu::compile(b.graph, placement, target, options));
  return b;
}

double cosine(const Tensor& a, const Tensor& b) {
  const auto x = to_doubles(a.view());
  const auto y = to_doubles(b.view());
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += y[i] * y[i];
  }
  return xx == 0 && yy == 0 ? 1.0 : xy / std::sqrt(xx * yy + 1e-60);
}

Result<sim::Tensors> simulate(const Built& b, bool strict, bool raw = false) {
  OPENRKNN_TRY(auto machine, sim::Machine::load(b.program));
  sim::RunOptions options;
  options.strict = strict;
  options.raw_outputs = raw;
  return machine.run(b.inputs, options);
}

void expect_same(const sim::Tensors& a, const sim::Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const Tensor& other = b.at(name);
    ASSERT_EQ(tensor.bytes(), other.bytes());
    ASSERT_EQ(std::memcmp(tensor.data(), other.data(), tensor.bytes()), 0) << what << ": " << name;
  }
}

const target::Target& target_named(const char* name) { return **target::find(name); }

class RandomChain : public ::testing::TestWithParam<int> {};

TEST_P(RandomChain, ProgramFollowsTheGoldenRun) {
  const auto seed = static_cast<uint32_t>(GetParam());
  for (const char* dtype : {"fp16", "w8a8"}) {
    for (const bool optimize : {false, true}) {
      auto built = build(testing::random_network(seed, 12), target_named("rk3588"), dtype, {}, optimize);
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
      auto whole = build(testing::random_network(seed, 10), target, dtype);
      ASSERT_TRUE(whole.ok()) << target.name << ": " << whole.error().message();
      auto fast = simulate(*whole, false, true);
      ASSERT_TRUE(fast.ok()) << fast.error().message();
      npu::CompileOptions options;
      options.max_tile_rows = 1 + seed % 5;
      options.max_tile_columns = 1 + seed % 7;
      options.max_tile_channels = 32;
      for (const npu::CompileOptions& tiles : {npu::CompileOptions{}, options}) {
        auto split = build(testing::random_network(seed, 10), target, dtype, tiles);
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
}  // namespace openrknn
