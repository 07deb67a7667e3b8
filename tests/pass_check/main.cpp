// Does every rewrite keep the float meaning of a model file? Each pass alone, passes in seeded random orders, and all
// of them as a build runs them, on seeded inputs; prints one line per model and violation.
//   openrknn_pass_check MODEL...        0: all kept
#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <vector>

#include "import/importer.hpp"
#include "opt/support.hpp"

namespace {

using namespace openrknn;  // NOLINT

constexpr double kTolerance = 1e-4;  // of the largest value
constexpr int kOrders = 3;

// Multiples of 1/8, so that comparisons and roundings in the model are certain.
eval::Tensors coarse_inputs(const Graph& graph) {
  eval::Tensors inputs = eval::seeded_inputs(graph, 5);
  for (auto& [name, tensor] : inputs) {
    if (tensor.dtype() != DType::kFloat32) continue;
    for (float& v : tensor.mutable_as<float>()) v = std::round(v * 32.0F) / 8.0F - 2.0F;
  }
  return inputs;
}

class Check {
 public:
  Check(std::string model, const Graph& graph)
      : model_(std::move(model)), graph_(graph), inputs_(coarse_inputs(graph)) {}

  int violations() {
    wanted_ = opt::testing::outputs_of(graph_, inputs_);
    for (const opt::PassInfo& pass : opt::passes()) sequence({&pass});
    std::mt19937 random(17);
    for (int i = 0; i < kOrders; ++i) {
      std::vector<const opt::PassInfo*> order;
      for (const opt::PassInfo& pass : opt::passes()) order.insert(order.end(), 2, &pass);
      std::shuffle(order.begin(), order.end(), random);
      sequence(order);
    }
    whole();
    return violations_;
  }

 private:
  void report(const std::string& passes, const std::string& what) {
    fmt::print("{}: {}: {}\n", model_, passes, what);
    ++violations_;
  }

  void compare(const Graph& changed, const std::string& passes) {
    const double difference = opt::testing::difference(wanted_, opt::testing::outputs_of(changed, inputs_));
    if (!(difference <= kTolerance)) report(passes, fmt::format("the outputs differ by {:.2e}", difference));
  }

  void sequence(const std::vector<const opt::PassInfo*>& order) {
    Graph changed = graph_;
    std::string applied;
    for (const opt::PassInfo* pass : order) {
      opt::RewriteLog log;
      opt::PassContext context{{}, 3, &log};
      const auto count = pass->run(changed, context);
      if (!count.ok()) return report(applied + std::string(pass->name), count.error().message());
      if (*count == 0) continue;
      applied += std::string(pass->name) + " ";
      const Status verified = ops::verify(changed);
      if (!verified.ok()) return report(applied, verified.error().message());
    }
    if (!applied.empty()) compare(changed, applied);
  }

  void whole() {
    Graph changed = graph_;
    opt::OptimizeOptions options;
    options.golden_inputs = inputs_;
    const auto done = opt::optimize(changed, options);
    if (!done.ok()) return report("all", done.error().message());
    for (const std::string& rewrite : done->rolled_back) report("all", "rolled back " + rewrite);
    compare(changed, "all");
  }

  std::string model_;
  const Graph& graph_;
  eval::Tensors inputs_;
  std::vector<Tensor> wanted_;
  int violations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int violations = 0;
  for (int i = 1; i < argc; ++i) {
    const auto imported = import::import_model(argv[i], {});
    if (!imported.ok()) {
      fmt::print("{}: {}\n", argv[i], imported.error().message());
      ++violations;
      continue;
    }
    violations += Check(argv[i], imported->graph).violations();
  }
  fmt::print("{} models, {} violations\n", argc - 1, violations);
  return violations == 0 ? 0 : 1;
}
