// Writes a run for recomputation by hand: tensors/<n>.npy, every task's constants, tasks.json (keys: docs/JSON.md).
#pragma once

#include <string>

#include "sim/machine.hpp"

namespace openrknn::analysis {

// Runs the program and writes folder/tasks.json, folder/tensors/*.npy, folder/constants/*.npy. Returns the outputs.
Result<sim::Tensors> run_and_dump(sim::Machine& machine, const model::Program& program, const sim::Tensors& inputs,
                                  sim::RunOptions options, const std::string& folder);

}  // namespace openrknn::analysis
