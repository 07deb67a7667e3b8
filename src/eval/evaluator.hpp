// The golden run: evaluates a Graph in fp32 (and the model's integer types), node by node in topological order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"
#include "ir/graph.hpp"
#include "kernels/cpu/registry.hpp"

namespace openrknn::eval {

using Tensors = std::map<std::string, Tensor, std::less<>>;

// Called with every non-constant value once, graph inputs included, as soon as it exists.
using Observer = std::function<void(ValueId value, const TensorView& data)>;

// Called after every step of a run with the node, as it was executed, and the time it took.
using StepTimer = std::function<void(const Node& node, double ms)>;

// How often an evaluator will run. For many runs constant weights are packed once and kept, which takes as much memory
// as they do.
enum class Runs { kOne, kMany };

class Evaluator {
 public:
  // Keeps a reference: the graph must outlive the evaluator and not change. Prepares order and lifetimes once.
  static Result<Evaluator> make(const Graph& graph, Runs runs = Runs::kMany);
  // `inputs` by graph input name; types and shapes must be the graph's (an error says given and expected). Intermediate
  // tensors are freed at their last use. Outputs by name.
  Result<Tensors> run(const Tensors& inputs, const Observer& observer = {}, const StepTimer& timer = {}) const;

 private:
  // What is executed in which order, and when tensors die.
  struct Schedule {
    std::vector<std::shared_ptr<const Node>> nodes;
    std::vector<std::vector<ValueId>> dies_after;  // per node
    // The last step that makes a tensor of a type and size: until then freed ones are kept for it.
    std::map<std::pair<DType, int64_t>, size_t> last_made;
    // Per node: what kernels keep of constant weights; empty where the weights are no constant.
    std::vector<std::unique_ptr<cpu::PackedWeights>> packed;
  };
  // Buffers that earlier runs have freed: fresh pages cost as much as the work on them. A run takes them all.
  struct Pool;
  static void find_lifetimes(const Graph& graph, size_t slots, bool keeps, Schedule& schedule);

  const Graph* graph_ = nullptr;
  Runs runs_ = Runs::kMany;
  size_t slots_ = 0;  // one per value id
  Schedule all_;      // every node: what an observer sees
  std::shared_ptr<Pool> pool_;
  Schedule fused_;  // convolutions with the additions and activations behind them, the same results
};

// Seeded inputs for a graph without data: uniform in [0, 1) for floats, small integers otherwise.
Tensors seeded_inputs(const Graph& graph, uint64_t seed);

}  // namespace openrknn::eval
