// What is in a file: counts of a source model, tasks and memory of a program, engines before a build.
#pragma once

#include <string>

#include "import/importer.hpp"
#include "import/signature.hpp"
#include "model/program.hpp"
#include "openrknn/toolkit.hpp"

namespace openrknn::analysis {

// Inputs and outputs are filled in by the caller.
toolkit::ModelReport inspect_graph(const import::Imported& imported);
// Of a model that cannot be imported.
toolkit::ModelReport inspect_signature(const import::Signature& signature);
toolkit::ProgramReport inspect_program(const model::Program& program);
// Bytes that a task reads and writes: its tensors and constants, each once.
int64_t task_bytes(const model::Program& program, const model::Task& task);
// Optimises a copy and places every node. `dtype` empty: w8a8 where the target has it, else its first one.
Result<toolkit::PreflightReport> preflight(const Graph& graph, const std::string& target, const std::string& dtype);

}  // namespace openrknn::analysis
