#include "analysis/compare.hpp"

#include <nlohmann/json.hpp>

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
  return facade::to_public(
      facade::compare(model.state().imported.graph, model.inputs(), program.state(), dataset, max_samples, bgr));
}

}  // namespace openrknn::toolkit
