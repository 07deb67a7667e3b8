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
  // Keeps a reference: the graph must outlive the evaluator and not change. Prepares order and memory once.
  static Result<Evaluator> make(const Graph& graph, Runs runs = Runs::kMany);
  // `inputs` by graph input name; types and shapes must be the graph's (an error says given and expected). Intermediate
  // values share memory by their lifetimes. Outputs by name.
  Result<Tensors> run(const Tensors& inputs, const Observer& observer = {}, const StepTimer& timer = {}) const;

 private:
  struct Frame;     // the memory of one run
  struct Prepared;  // a schedule, and a frame that waits for the next run
  class Run;
  Result<std::unique_ptr<Frame>> take_frame(Prepared& prepared) const;
  void give_back(Prepared& prepared, std::unique_ptr<Frame> frame) const;

  const Graph* graph_ = nullptr;
  Runs runs_ = Runs::kMany;
  std::shared_ptr<Prepared> all_;    // every node: what an observer sees
  std::shared_ptr<Prepared> fused_;  // nodes taken together (eval/fusion.hpp), the same results
};

// Seeded inputs for a graph without data: uniform in [0, 1) for floats, small integers otherwise.
Tensors seeded_inputs(const Graph& graph, uint64_t seed);

}  // namespace openrknn::eval
