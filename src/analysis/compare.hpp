// The golden run of a Graph against the simulated run of its Program, tensor by tensor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "eval/evaluator.hpp"
#include "model/program.hpp"
#include "openrknn/toolkit.hpp"
#include "sim/machine.hpp"

namespace openrknn::analysis {

struct ComparedSample {
  eval::Tensors golden;  // graph inputs, mean and std applied
  sim::Tensors program;  // the same as the application gives them
};

using ComparedSource = std::function<Result<std::optional<ComparedSample>>()>;

// `entire`: each tensor of the simulated run against the golden tensor of the same name. `single`: each task alone, fed
// with golden tensors (from the nearest ones that exist). Tensors are matched by name and shape; those that only the
// program has are left out. Memory does not grow with the number of samples.
Result<toolkit::CompareReport> compare(const Graph& graph, const model::Program& program, sim::Machine& machine,
                                       const ComparedSource& next);

toolkit::Similarity similarity(const TensorView& golden, const TensorView& tested);

}  // namespace openrknn::analysis
