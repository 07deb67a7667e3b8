// What the tests of rewrites share: graphs from text, one pass at a time, the same outputs before and after.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "ir/text.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"

namespace openrknn::opt::testing {

inline Graph parse(const std::string& body) {
  auto graph = parse_graph("graph \"test\" {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message());
  if (!graph.ok()) return {};
  const auto inferred = ops::infer_all(*graph);
  EXPECT_TRUE(inferred.ok()) << (inferred.ok() ? "" : inferred.error().message());
  const auto verified = ops::verify(*graph);
  EXPECT_TRUE(verified.ok()) << (verified.ok() ? "" : verified.error().message());
  return std::move(*graph);
}

inline const PassInfo& pass(const std::string& name) {
  for (const PassInfo& info : passes()) {
    if (info.name == name) return info;
  }
  ADD_FAILURE() << "no pass " << name;
  return passes()[0];
}

// Rewrites that the pass makes; the graph is verified behind it.
inline int run(Graph& graph, const std::string& name, const Capabilities& capabilities = {}) {
  RewriteLog log;
  PassContext context{capabilities, 3, &log};
  const auto count = pass(name).run(graph, context);
  EXPECT_TRUE(count.ok()) << name << ": " << (count.ok() ? "" : count.error().message());
  const auto verified = ops::verify(graph);
  EXPECT_TRUE(verified.ok()) << name << ": " << (verified.ok() ? "" : verified.error().message());
  return count.ok() ? *count : -1;
}

using Counts = std::map<std::string, int>;

inline Counts count_ops(const Graph& graph) {
  Counts counts;
  for (const NodeId id : graph.nodes()) ++counts[graph.node(id).op];
  return counts;
}

inline std::vector<Tensor> outputs_of(const Graph& graph, const eval::Tensors& inputs) {
  const auto evaluator = eval::Evaluator::make(graph);
  EXPECT_TRUE(evaluator.ok()) << (evaluator.ok() ? "" : evaluator.error().message());
  if (!evaluator.ok()) return {};
  const auto named = evaluator->run(inputs);
  EXPECT_TRUE(named.ok()) << (named.ok() ? "" : named.error().message());
  std::vector<Tensor> outputs;
  if (!named.ok()) return outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(named->at(graph.value(id).name));
  return outputs;
}

// Inputs in [-3, 3): both sides of every activation are met.
inline eval::Tensors wide_inputs(const Graph& graph, uint64_t seed) {
  eval::Tensors inputs = eval::seeded_inputs(graph, seed);
  for (auto& [name, tensor] : inputs) {
    if (tensor.dtype() != DType::kFloat32) continue;
    for (float& v : tensor.mutable_as<float>()) v = 6.0F * v - 3.0F;
  }
  return inputs;
}

// Rounding of the largest finite value that a run meets. An output that is left over where such values cancel each
// other means nothing below it.
inline double rounding_noise(const Graph& graph, const eval::Tensors& inputs) {
  constexpr double kNoise = 1e-6;  // of fp32, over a few operations
  const auto evaluator = eval::Evaluator::make(graph);
  double largest = 0.0;
  if (!evaluator.ok()) return largest;
  (void)evaluator->run(inputs, [&](ValueId, const TensorView& data) {
    if (data.dtype != DType::kFloat32) return;
    for (const float v : data.as<float>()) {
      if (std::isfinite(v)) largest = std::max(largest, std::abs(static_cast<double>(v)));
    }
  });
  return kNoise * largest;
}

// Largest error relative to the largest value, over all outputs; infinity where only one is finite. Errors up to
// `noise` do not count.
inline double difference(const std::vector<Tensor>& wanted, const std::vector<Tensor>& got, double noise = 0.0) {
  if (wanted.size() != got.size()) return INFINITY;
  double worst = 0.0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(wanted[i].shape() == got[i].shape())) return INFINITY;
    const auto a = to_doubles(wanted[i].view());
    const auto b = to_doubles(got[i].view());
    double largest = 1e-30, error = 0.0;
    for (size_t k = 0; k < a.size(); ++k) {
      if (std::isfinite(a[k]) != std::isfinite(b[k])) return INFINITY;
      if (!std::isfinite(a[k])) continue;
      largest = std::max(largest, std::abs(a[k]));
      error = std::max(error, std::abs(a[k] - b[k]));
    }
    if (error > noise) worst = std::max(worst, error / largest);
  }
  return worst;
}

// Runs passes in order and expects the counts of operators behind them, and the same outputs.
inline void expect_rewrite(const std::string& body, const std::vector<std::string>& names, const Counts& wanted,
                           const Capabilities& capabilities = {}, double tolerance = 1e-5) {
  SCOPED_TRACE(body);
  Graph graph = parse(body);
  const auto inputs = wide_inputs(graph, 3);
  const auto before = outputs_of(graph, inputs);
  for (const std::string& name : names) run(graph, name, capabilities);
  EXPECT_EQ(count_ops(graph), wanted) << print_graph(graph);
  EXPECT_LE(difference(before, outputs_of(graph, inputs)), tolerance) << print_graph(graph);
  if (names.size() == 1) {
    EXPECT_EQ(run(graph, names[0], capabilities), 0) << "a second run changes something";
  }
}

// The pass must leave the graph alone.
inline void expect_untouched(const std::string& body, const std::string& name, const Capabilities& capabilities = {}) {
  SCOPED_TRACE(body);
  Graph graph = parse(body);
  const std::string before = print_graph(graph);
  EXPECT_EQ(run(graph, name, capabilities), 0);
  EXPECT_EQ(print_graph(graph), before);
}

}  // namespace openrknn::opt::testing
