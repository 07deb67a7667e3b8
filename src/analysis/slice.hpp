// One task of a Program as a Program of its own.
#pragma once

#include <functional>

#include "model/program.hpp"

namespace openrknn::analysis {

// The task and those before it that it needs, back to tensors for which `known` is true; these become inputs without
// mean and std, the results of the task become outputs. Weights are shared.
model::Program slice(const model::Program& program, int task, const std::function<bool(int)>& known);

}  // namespace openrknn::analysis
