// Graph to Program to simulated run, for the tests of the whole chain.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "eval/evaluator.hpp"
#include "npu/compile.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"
#include "quant/calibration.hpp"
#include "sim/machine.hpp"

namespace openrknn::testing {

struct Built {
  Graph graph;
  model::Program program;
  eval::Tensors inputs;
};

inline Result<Built> build(Graph graph, const target::Target& target, const std::string& dtype,
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

inline double cosine(const Tensor& a, const Tensor& b) {
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

inline Result<sim::Tensors> simulate(const Built& b, bool strict, bool raw = false) {
  OPENRKNN_TRY(auto machine, sim::Machine::load(b.program));
  sim::RunOptions options;
  options.strict = strict;
  options.raw_outputs = raw;
  return machine.run(b.inputs, options);
}

inline void expect_same(const sim::Tensors& a, const sim::Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const Tensor& other = b.at(name);
    ASSERT_EQ(tensor.bytes(), other.bytes());
    ASSERT_EQ(std::memcmp(tensor.data(), other.data(), tensor.bytes()), 0) << what << ": " << name;
  }
}

inline const target::Target& target_named(const char* name) { return **target::find(name); }

}  // namespace openrknn::testing
