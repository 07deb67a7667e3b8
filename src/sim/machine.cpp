#include "sim/machine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

#include "base/text.hpp"
#include "sim/edges.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

Error out_of_memory() {
  return Error{ErrorCode::kResource, "cannot run the program", "", "not enough memory",
               "close other programs or use a smaller model"};
}

}  // namespace

struct Machine::State {
  using Clock = std::chrono::steady_clock;

  const model::Program& program;
  std::vector<RunnerPtr> runners;
  std::optional<Memory> fast, strict;  // made at the first run of the mode
  Scratch scratch;
  std::vector<double> task_ms;

  explicit State(const model::Program& p) : program(p), task_ms(p.tasks.size(), 0.0) {}

  Status prepare();
  Result<Memory*> memory(bool strict_mode);
  Status check_names(const Tensors& inputs) const;
  Status store_inputs(const Tensors& inputs, const Memory& m) const;
  Status observe(int tensor, const Memory& m, const RunOptions& options) const;
  Status run_task(size_t i, Memory& m, const RunOptions& options, Clock::time_point& start);
  Status look_at_results(int time, Memory& m, const RunOptions& options, Clock::time_point& start);
  Result<Tensors> load_outputs(const Memory& m, const RunOptions& options) const;
  Result<Tensors> run(const Tensors& inputs, const RunOptions& options);
};

Status Machine::State::prepare() {
  for (const model::Task& task : program.tasks) {
    OPENRKNN_TRY(RunnerPtr runner, make_runner(program, task));
    runners.push_back(std::move(runner));
  }
  return {};
}

Result<Memory*> Machine::State::memory(bool strict_mode) {
  std::optional<Memory>& m = strict_mode ? strict : fast;
  if (!m) {
    OPENRKNN_TRY(Memory made, Memory::make(program, strict_mode ? Mode::kStrict : Mode::kFast));
    m.emplace(std::move(made));
  }
  if (strict_mode) m->poison();
  return &*m;
}

Status Machine::State::check_names(const Tensors& inputs) const {
  std::vector<std::string> known;
  for (const auto& port : program.inputs) known.push_back(port.name);
  for (const auto& [name, tensor] : inputs) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error{ErrorCode::kInvalidArgument, "cannot take an input", name, "the program has no input of this name",
                   "its inputs are: " + join_names(known)};
    }
  }
  return {};
}

Status Machine::State::store_inputs(const Tensors& inputs, const Memory& m) const {
  OPENRKNN_CHECK_OK(check_names(inputs));
  for (const model::Port& port : program.inputs) {
    const auto given = inputs.find(port.name);
    if (given == inputs.end()) {
      return Error{ErrorCode::kInvalidArgument, "cannot run the program", port.name, "this input is not given",
                   fmt::format("give a tensor of shape {}", port.source_shape.to_string())};
    }
    OPENRKNN_CHECK_OK(store_input(program, port, given->second, m.view(port.tensor)));
  }
  return {};
}

Status Machine::State::observe(int tensor, const Memory& m, const RunOptions& options) const {
  if (!options.observer || tensor == model::kNone) return {};
  const model::TensorDesc& t = program.tensor(tensor);
  OPENRKNN_TRY(const Tensor raw, load_raw(t, m.view(tensor), t.shape));
  options.observer(tensor, raw);
  return {};
}

// `start`: when the task before it ended, one reading of the clock for both: it takes part of short tasks' time.
Status Machine::State::run_task(size_t i, Memory& m, const RunOptions& options, Clock::time_point& start) {
  const auto time = static_cast<int>(i);
  if (options.on_task) {
    options.on_task(time);
    start = Clock::now();
  }
  OPENRKNN_CHECK_OK(runners[i]->run(Context{program, m, scratch}));
  const Clock::time_point end = Clock::now();
  task_ms[i] = std::chrono::duration<double, std::milli>(end - start).count();
  start = end;
  if (options.observer || options.strict) OPENRKNN_CHECK_OK(look_at_results(time, m, options, start));
  return {};
}

Status Machine::State::look_at_results(int time, Memory& m, const RunOptions& options, Clock::time_point& start) {
  const auto i = static_cast<size_t>(time);
  for (const int output : program.tasks[i].outputs) OPENRKNN_CHECK_OK(observe(output, m, options));
  for (const model::Buffer& buffer : program.buffers) {
    if (options.strict && buffer.last_task == time) m.poison(buffer);
  }
  start = Clock::now();
  return {};
}

Result<Tensors> Machine::State::load_outputs(const Memory& m, const RunOptions& options) const {
  Tensors outputs;
  for (const model::Port& port : program.outputs) {
    const auto load = options.raw_outputs ? load_raw : load_real;
    OPENRKNN_TRY(Tensor tensor, load(program.tensor(port.tensor), m.view(port.tensor), port.source_shape));
    outputs.emplace(port.name, std::move(tensor));
  }
  return outputs;
}

Result<Tensors> Machine::State::run(const Tensors& inputs, const RunOptions& options) {
  OPENRKNN_TRY(Memory * m, memory(options.strict));
  OPENRKNN_CHECK_OK(store_inputs(inputs, *m));
  for (const model::Port& port : program.inputs) OPENRKNN_CHECK_OK(observe(port.tensor, *m, options));
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < runners.size(); ++i) OPENRKNN_CHECK_OK(run_task(i, *m, options, start));
  return load_outputs(*m, options);
}

Machine::Machine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;
Machine::~Machine() = default;

Result<Machine> Machine::load(const model::Program& program) {
  try {
    Machine machine(std::make_unique<State>(program));
    OPENRKNN_CHECK_OK(machine.state_->prepare());
    return machine;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<Tensors> Machine::run(const Tensors& inputs, const RunOptions& options) {
  try {
    return state_->run(inputs, options);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

const std::vector<double>& Machine::task_ms() const { return state_->task_ms; }

}  // namespace openrknn::sim
