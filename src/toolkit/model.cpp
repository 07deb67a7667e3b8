// The handle of a source model.
#include <fmt/core.h>

#include <algorithm>

#include "analysis/inspect.hpp"
#include "base/log.hpp"
#include "eval/evaluator.hpp"
#include "import/signature.hpp"
#include "npu/compile.hpp"
#include "toolkit/build.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/state.hpp"

namespace openrknn::facade {
namespace {

// Names for the entries that stand for an input by position.
Status name_inputs(const std::string& path, std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs) {
  const bool unnamed = std::any_of(inputs.begin(), inputs.end(), [](const auto& i) { return i.first.empty(); });
  if (!unnamed) return {};
  OPENRKNN_TRY(const import::Signature signature, import::read_signature(path));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].first.empty()) continue;
    if (i >= signature.inputs.size()) {
      return Error{ErrorCode::kInvalidArgument, "more shapes than inputs", fmt::format("shape {}", i + 1),
                   fmt::format("the model has {} input(s)", signature.inputs.size()), "leave it out"};
    }
    inputs[i].first = signature.inputs[i].name;
  }
  return {};
}

Result<import::Imported> load(const std::string& path, const toolkit::LoadOptions& options) {
  import::ImportOptions import_options;
  for (const auto& input : options.inputs) import_options.inputs.emplace_back(input.name, input.shape);
  OPENRKNN_CHECK_OK(name_inputs(path, import_options.inputs));
  for (const auto& [name, value] : options.input_values) {
    OPENRKNN_TRY(Tensor tensor, to_internal(value, name));
    import_options.input_values.insert_or_assign(name, std::move(tensor));
  }
  import_options.outputs = options.outputs;
  import_options.max_unrolled_nodes = options.max_unrolled_nodes;
  return import::import_model(path, import_options);
}

Result<Tensors> golden_inputs(const Graph& graph, const toolkit::Tensors& given) {
  Tensors inputs;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    const auto it = given.find(value.name);
    if (it == given.end()) {
      return Error{ErrorCode::kInvalidArgument, "input without data", value.name, "the run was given no tensor for it",
                   "give one tensor an input"};
    }
    OPENRKNN_TRY(const Tensor tensor, to_internal(it->second, value.name));
    OPENRKNN_TRY(Tensor coerced, coerce(tensor, value.dtype, value.name));
    inputs.insert_or_assign(value.name, std::move(coerced));
  }
  return inputs;
}

Result<std::vector<toolkit::Output>> golden_run(const import::Imported& imported, const toolkit::Tensors& given) {
  const Graph& graph = imported.graph;
  OPENRKNN_TRY(const Tensors inputs, golden_inputs(graph, given));
  OPENRKNN_TRY(const eval::Evaluator evaluator, eval::Evaluator::make(graph, eval::Runs::kOne));
  OPENRKNN_TRY(const eval::Tensors results, evaluator.run(inputs));
  std::vector<toolkit::Output> outputs;
  for (const ValueId id : graph.outputs()) {
    const std::string& name = graph.value(id).name;
    const Tensor& result = results.at(name);
    const auto declared = imported.declared_outputs.find(name);
    const Tensor kept = declared == imported.declared_outputs.end() ? result : cast(result.view(), declared->second);
    outputs.push_back({name, to_public(kept.view()), {}, {}});
  }
  return outputs;
}

std::vector<toolkit::TensorInfo> signature_infos(const std::vector<import::PortSignature>& ports) {
  std::vector<toolkit::TensorInfo> infos;
  for (const auto& port : ports) infos.push_back({port.name, to_public(port.dtype), port.dims, false});
  return infos;
}

toolkit::Result<toolkit::Program> build_program(const std::string& path, import::Imported imported,
                                                const toolkit::Config& config, const std::string& dataset) {
  auto state = std::make_unique<toolkit::Program::State>();
  auto program =
      within_memory(path, [&] { return build(path, std::move(imported), config, dataset, state->warnings); });
  if (!program.ok()) return to_public(program.error());
  state->program = std::move(program).value();
  state->inputs = port_infos(state->program.inputs);
  state->outputs = port_infos(state->program.outputs);
  return toolkit::Program(std::move(state));
}

}  // namespace
}  // namespace openrknn::facade

namespace openrknn::toolkit {

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  auto imported = facade::within_memory(path, [&] { return facade::load(path, options); });
  if (!imported.ok()) return facade::to_public(imported.error());
  auto state = std::make_unique<State>();
  state->path = path;
  state->imported = std::move(imported).value();
  const Graph& graph = state->imported.graph;
  state->inputs = facade::graph_infos(graph, graph.inputs(), state->imported.format);
  state->outputs = facade::graph_infos(graph, graph.outputs(), state->imported.format);
  for (TensorInfo& output : state->outputs) {
    const auto declared = state->imported.declared_outputs.find(output.name);
    if (declared != state->imported.declared_outputs.end()) output.dtype = facade::to_public(declared->second);
  }
  for (const std::string& warning : state->imported.warnings) log_warning("{}", warning);
  return Model(std::move(state));
}

const std::vector<TensorInfo>& Model::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& Model::outputs() const { return state_->outputs; }
const std::vector<std::string>& Model::warnings() const { return state_->imported.warnings; }

Result<std::vector<Output>> Model::run(const Tensors& inputs) const {
  return facade::to_public(
      facade::within_memory(state_->path, [&] { return facade::golden_run(state_->imported, inputs); }));
}

ModelReport Model::inspect() const {
  ModelReport report = analysis::inspect_graph(state_->imported);
  report.inputs = state_->inputs;
  report.outputs = state_->outputs;
  return report;
}

Result<PreflightReport> Model::preflight(const std::string& target, const std::string& dtype) const {
  return facade::to_public(
      facade::within_memory(state_->path, [&] { return analysis::preflight(state_->imported.graph, target, dtype); }));
}

Result<Program> Model::build(const Config& config, const std::string& dataset) const& {
  return facade::build_program(state_->path, state_->imported, config, dataset);
}

Result<Program> Model::build(const Config& config, const std::string& dataset) && {
  return facade::build_program(state_->path, std::move(state_->imported), config, dataset);
}

Result<std::vector<TensorInfo>> model_inputs(const std::string& path) {
  const auto signature = import::read_signature(path);
  if (!signature.ok()) return facade::to_public(signature.error());
  return facade::signature_infos(signature->inputs);
}

Result<ModelReport> inspect_model_file(const std::string& path) {
  const auto signature = import::read_signature(path);
  if (!signature.ok()) return facade::to_public(signature.error());
  ModelReport report = analysis::inspect_signature(*signature);
  report.inputs = facade::signature_infos(signature->inputs);
  report.outputs = facade::signature_infos(signature->outputs);
  return report;
}

}  // namespace openrknn::toolkit
