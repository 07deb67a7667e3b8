#include "analysis/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "base/log.hpp"
#include "toolkit/build.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/state.hpp"

namespace openrknn::facade {
namespace {

// What the program applies to its inputs, so that the golden run gets the same.
toolkit::Config feed_of(const model::Program& program, int64_t max_samples, bool bgr) {
  toolkit::Config config;
  config.max_samples = max_samples;
  config.bgr_all = bgr;
  for (const model::Port& port : program.inputs) {
    if (!port.mean.empty()) config.mean.push_back({port.name, port.mean});
    if (!port.std_dev.empty()) config.std_dev.push_back({port.name, port.std_dev});
  }
  const auto json = nlohmann::json::parse(program.provenance, nullptr, false);
  if (!json.is_object() || !json.contains("config") || !json["config"].is_object()) return config;
  const auto& c = json["config"];
  if (!c.contains("bgr")) return config;
  if (c["bgr"].is_boolean()) config.bgr_all = config.bgr_all || c["bgr"].get<bool>();
  if (c["bgr"].is_array()) {
    for (const auto& name : c["bgr"]) {
      if (name.is_string()) config.bgr.push_back(name.get<std::string>());
    }
  }
  return config;
}

// The checksum of the source file that the program was built from; empty when it does not say.
std::string source_checksum(const model::Program& program) {
  const auto json = nlohmann::json::parse(program.provenance, nullptr, false);
  const auto pointer = nlohmann::json::json_pointer("/source/checksum");
  if (!json.is_object() || !json.contains(pointer) || !json[pointer].is_string()) return {};
  return json[pointer].get<std::string>();
}

bool is_port(const model::Program& program, const std::string& name) {
  const auto named = [&](const model::Port& port) { return port.name == name; };
  return std::any_of(program.inputs.begin(), program.inputs.end(), named) ||
         std::any_of(program.outputs.begin(), program.outputs.end(), named);
}

// A program of another file is compared with a warning as long as inner tensors of both have the same names.
Status check_source(const std::string& path, const Graph& graph, const model::Program& program) {
  const std::string built_from = source_checksum(program);
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  if (built_from.empty() || built_from == checksum_text(file.bytes())) return {};
  std::set<std::string, std::less<>> names;
  for (const ValueId id : graph.values()) names.insert(graph.value(id).name);
  size_t inner = 0;
  size_t known = 0;
  for (const auto& tensor : program.tensors) {
    if (is_port(program, tensor.name)) continue;
    ++inner;
    known += names.contains(tensor.name);
  }
  if (inner > 0 && known == 0) {
    return Error{ErrorCode::kInvalidArgument, "the program was built from another model", path,
                 fmt::format("none of the program's {} inner tensors is in the model", inner),
                 "give the model that the program was built from"};
  }
  log_warning("{} is not the file that the program was built from; what has the same name is compared", path);
  return {};
}

Result<toolkit::CompareReport> compare(const Graph& graph, const Infos& inputs, toolkit::Program::State& state,
                                       const std::string& dataset, int64_t max_samples, bool bgr) {
  if (max_samples < 1) {
    return Error{ErrorCode::kInvalidArgument, "no samples", "--max-samples", "at least one sample is needed",
                 "give a positive number"};
  }
  const toolkit::Config config = feed_of(state.program, max_samples, bgr);
  SampleReader samples = SampleReader::empty();
  if (!inputs.empty()) {
    OPENRKNN_TRY(samples, SampleReader::open(dataset, inputs, config));
  }
  OPENRKNN_TRY(sim::Machine * machine, state.loaded_machine());
  Progress progress("comparing", static_cast<int64_t>(samples.count()));
  size_t index = 0;
  const auto next = [&]() -> Result<std::optional<analysis::ComparedSample>> {
    if (index > 0) progress.step();
    if (index == samples.count()) return std::optional<analysis::ComparedSample>{};
    analysis::ComparedSample sample;
    OPENRKNN_TRY(sample.golden, samples.read(index));
    OPENRKNN_TRY(sample.program, samples.read_raw(index));
    ++index;
    return std::optional<analysis::ComparedSample>(std::move(sample));
  };
  return analysis::compare(graph, state.program, *machine, next);
}

}  // namespace
}  // namespace openrknn::facade

namespace openrknn::toolkit {

Result<CompareReport> compare(const Model& model, Program& program, const std::string& dataset, int64_t max_samples,
                              bool bgr) {
  const auto source = facade::check_source(model.state().path, model.state().imported.graph, program.state().program);
  if (!source.ok()) return facade::to_public(source.error());
  return facade::to_public(
      facade::compare(model.state().imported.graph, model.inputs(), program.state(), dataset, max_samples, bgr));
}

}  // namespace openrknn::toolkit
