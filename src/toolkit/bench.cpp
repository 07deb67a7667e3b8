#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "base/parallel.hpp"
#include "eval/evaluator.hpp"
#include "kernels/isa.hpp"
#include "kernels/tables_in_use.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/feed.hpp"
#include "toolkit/state.hpp"

namespace openrknn::facade {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr double kLeastMs = 1000;  // repeats last at least so long
constexpr int64_t kMaxRepeat = 1000000;

// Uniform reals of [low, high) or integers of [low, high], from the generator's raw bits: the same on every machine.
toolkit::Tensor seeded(const toolkit::TensorInfo& info, double low, double high, std::mt19937_64& random) {
  const DType dtype = to_internal(info.dtype);
  const Shape shape = Shape::make(info.shape).value();
  Tensor values(DType::kFloat64, shape);
  for (double& v : values.mutable_as<double>()) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    v = is_float(dtype) ? low + unit * (high - low) : low + std::floor(unit * (high - low + 1));
  }
  return to_public(cast(values.view(), dtype).view());
}

// Calls `once` until time and count are reached; `once` gives the milliseconds of the program alone.
template <typename Once>
Status repeat_runs(int64_t repeat, toolkit::BenchReport& report, const Once& once) {
  std::vector<double> times;
  const auto start = Clock::now();
  while (repeat > 0
             ? static_cast<int64_t>(times.size()) < repeat
             : times.empty() || (ms_since(start) < kLeastMs && static_cast<int64_t>(times.size()) < kMaxRepeat)) {
    OPENRKNN_TRY(const double ms, once());
    times.push_back(ms);
  }
  report.first_ms = times.front();
  std::sort(times.begin(), times.end());
  report.repeat = static_cast<int64_t>(times.size());
  report.min_ms = times.front();
  report.median_ms = times[times.size() / 2];
  return {};
}

void name_kernels(toolkit::BenchReport& report) {
  report.isa = isa_name(isa());
  for (const TableInUse& table : tables_in_use()) report.kernels.emplace_back(table.kernels, table.isa);
}

Result<toolkit::BenchReport> bench(toolkit::Program::State& state, const toolkit::Tensors& given, int64_t repeat) {
  const model::Program& program = state.program;
  toolkit::BenchReport report;
  report.model = std::filesystem::path(state.path).filename().string();
  report.target = program.target;
  report.threads = thread_count();
  name_kernels(report);
  report.load_ms = state.load_ms;
  Tensors inputs;
  for (const auto& [name, tensor] : given) {
    OPENRKNN_TRY(Tensor t, to_internal(tensor, name));
    inputs.insert_or_assign(name, std::move(t));
  }
  OPENRKNN_TRY(sim::Machine * machine, state.loaded_machine());
  for (const model::Task& task : program.tasks) report.tasks.push_back({task.name, task.op, 1e300, task.macs});
  double whole_min = 1e300;
  const auto once = [&]() -> Result<double> {
    const auto start = Clock::now();
    OPENRKNN_CHECK_OK(machine->run(inputs));
    const double whole = ms_since(start);
    double alone = 0;
    const std::vector<double>& task_ms = machine->task_ms();
    for (size_t i = 0; i < task_ms.size() && i < report.tasks.size(); ++i) {
      alone += task_ms[i];
      report.tasks[i].min_ms = std::min(report.tasks[i].min_ms, task_ms[i]);
    }
    whole_min = std::min(whole_min, whole);
    return alone;
  };
  OPENRKNN_CHECK_OK(repeat_runs(repeat, report, once));
  // The rest of a run is conversion of inputs and outputs, shared out by their sizes.
  const double rest = std::max(0.0, whole_min - report.min_ms);
  int64_t in = 0;
  int64_t out = 0;
  for (const model::Port& p : program.inputs) in += p.source_shape.elements();
  for (const model::Port& p : program.outputs) out += p.source_shape.elements();
  report.input_ms = in + out == 0 ? 0 : rest * static_cast<double>(in) / static_cast<double>(in + out);
  report.output_ms = rest - report.input_ms;
  return report;
}

Result<toolkit::BenchReport> bench(const toolkit::Model::State& state, const toolkit::Tensors& given, int64_t repeat) {
  toolkit::BenchReport report;
  report.model = std::filesystem::path(state.path).filename().string();
  report.threads = thread_count();
  name_kernels(report);
  Tensors inputs;
  for (const auto& [name, tensor] : given) {
    OPENRKNN_TRY(Tensor t, to_internal(tensor, name));
    inputs.insert_or_assign(name, std::move(t));
  }
  OPENRKNN_TRY(const eval::Evaluator evaluator, eval::Evaluator::make(state.imported.graph));
  size_t step = 0;
  const eval::StepTimer timer = [&](const Node& node, double ms) {
    if (step == report.tasks.size()) {
      std::string op = node.op;
      if (const auto* stages = node.attributes.get<std::vector<std::string>>("stages")) {
        for (const std::string& stage : *stages) op += "+" + stage;
      }
      report.tasks.push_back({node.name, std::move(op), ms, 0});
    }
    report.tasks[step].min_ms = std::min(report.tasks[step].min_ms, ms);
    ++step;
  };
  // The clock takes part of small networks' time: every second run goes without.
  bool timed = false;
  const auto once = [&]() -> Result<double> {
    step = 0;
    timed = !timed;
    const auto start = Clock::now();
    OPENRKNN_CHECK_OK(evaluator.run(inputs, {}, timed ? timer : eval::StepTimer()));
    return ms_since(start);
  };
  OPENRKNN_CHECK_OK(repeat_runs(repeat, report, once));
  return report;
}

}  // namespace
}  // namespace openrknn::facade

namespace openrknn::toolkit {

Result<BenchReport> bench(Program& program, const Tensors& inputs, int64_t repeat) {
  return facade::to_public(facade::bench(program.state(), inputs, repeat));
}

Result<BenchReport> bench(const Model& model, const Tensors& inputs, int64_t repeat) {
  return facade::to_public(facade::bench(model.state(), inputs, repeat));
}

Tensors seeded_inputs(const Model& model, uint64_t seed) {
  Tensors tensors;
  for (const auto& [name, tensor] : eval::seeded_inputs(model.state().imported.graph, seed))
    tensors.insert_or_assign(name, facade::to_public(tensor.view()));
  return tensors;
}

Tensors seeded_inputs(const Program& program, uint64_t seed) {
  Tensors tensors;
  std::mt19937_64 random(seed);
  const model::Program& p = program.state().program;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const TensorInfo& info = program.inputs()[i];
    double low = 0;
    double high = 1;
    const model::TensorDesc& tensor = p.tensor(p.inputs[i].tensor);
    if (tensor.quant) {  // the range that the numbers can hold, before mean and std
      const double scale = static_cast<double>(tensor.quant->scale());
      low = static_cast<double>(dtype_min(tensor.dtype) - tensor.quant->zero_point()) * scale;
      high = static_cast<double>(dtype_max(tensor.dtype) - tensor.quant->zero_point()) * scale;
    }
    const double mean = p.inputs[i].mean.empty() ? 0 : static_cast<double>(p.inputs[i].mean[0]);
    const double std_dev = p.inputs[i].std_dev.empty() ? 1 : static_cast<double>(p.inputs[i].std_dev[0]);
    tensors.insert_or_assign(info.name, facade::seeded(info, low * std_dev + mean, high * std_dev + mean, random));
  }
  return tensors;
}

}  // namespace openrknn::toolkit
