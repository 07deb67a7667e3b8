// The handle of a compiled network.
#include <fmt/core.h>

#include <chrono>

#include "analysis/dump.hpp"
#include "analysis/inspect.hpp"
#include "model/container.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/feed.hpp"
#include "toolkit/state.hpp"

namespace openrknn::toolkit {

openrknn::Result<sim::Machine*> Program::State::loaded_machine() {
  if (!machine) {
    OPENRKNN_TRY(machine, sim::Machine::load(program));
  }
  return &*machine;
}

}  // namespace openrknn::toolkit

namespace openrknn::facade {
namespace {

Result<Tensors> program_inputs(const model::Program& program, const toolkit::Tensors& given) {
  Tensors inputs;
  for (const model::Port& port : program.inputs) {
    const auto it = given.find(port.name);
    if (it == given.end()) {
      return Error{ErrorCode::kInvalidArgument, "input without data", port.name, "the run was given no tensor for it",
                   "give one tensor an input"};
    }
    OPENRKNN_TRY(Tensor tensor, to_internal(it->second, port.name));
    inputs.insert_or_assign(port.name, std::move(tensor));
  }
  return inputs;
}

Result<std::vector<toolkit::Output>> run(toolkit::Program::State& state, const toolkit::Tensors& given,
                                         const toolkit::RunOptions& options) {
  const model::Program& program = state.program;
  OPENRKNN_TRY(const Tensors inputs, program_inputs(program, given));
  OPENRKNN_TRY(sim::Machine * machine, state.loaded_machine());
  sim::RunOptions run_options;
  run_options.strict = options.strict;
  run_options.raw_outputs = options.raw_outputs;
  auto run = options.dump_dir.empty()
                 ? machine->run(inputs, run_options)
                 : analysis::run_and_dump(*machine, program, inputs, run_options, options.dump_dir);
  if (!run.ok()) return state.path.empty() ? run.error() : run.error().within(state.path);
  const Tensors results = std::move(run).value();
  std::vector<toolkit::Output> outputs;
  for (const model::Port& port : program.outputs) {
    toolkit::Output output{port.name, to_public(results.at(port.name).view()), {}, {}};
    const model::TensorDesc& tensor = program.tensor(port.tensor);
    if (options.raw_outputs && tensor.quant) {
      output.scale = tensor.quant->scale();
      output.zero_point = tensor.quant->zero_point();
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace
}  // namespace openrknn::facade

namespace openrknn::toolkit {

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Result<Program> Program::load(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  auto program = facade::within_memory(path, [&] { return model::read_program(path); });
  if (!program.ok()) return facade::to_public(program.error());
  auto state = std::make_unique<State>();
  state->path = path;
  state->program = std::move(program).value();
  state->inputs = facade::port_infos(state->program.inputs);
  state->outputs = facade::port_infos(state->program.outputs);
  auto machine = state->loaded_machine();
  if (!machine.ok()) return facade::to_public(machine.error().within(path));
  state->load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return Program(std::move(state));
}

Status Program::write(const std::string& path) const {
  return facade::to_public(model::write_program(state_->program, path));
}
const std::vector<TensorInfo>& Program::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& Program::outputs() const { return state_->outputs; }
const std::vector<std::string>& Program::warnings() const { return state_->warnings; }

Result<std::vector<Output>> Program::run(const Tensors& inputs, const RunOptions& options) {
  return facade::to_public(facade::within_memory(state_->path, [&] { return facade::run(*state_, inputs, options); }));
}

ProgramReport Program::inspect() const {
  ProgramReport report = analysis::inspect_program(state_->program);
  report.inputs = state_->inputs;
  report.outputs = state_->outputs;
  return report;
}

}  // namespace openrknn::toolkit
