#include "toolkit/build.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "eval/evaluator.hpp"
#include "npu/compile.hpp"
#include "opt/pass.hpp"
#include "plan/planner.hpp"
#include "quant/embedded.hpp"
#include "toolkit/convert.hpp"

namespace openrknn::facade {
namespace {

constexpr float kHalfMax = 65504.0F;
constexpr size_t kMaxNamed = 20;  // tensors named in one warning

// What the file tells of its making: nothing that differs between two builds of the same model.
Result<std::string> provenance(const std::string& path, const import::Imported& imported, const toolkit::Config& config,
                               size_t samples) {
  OPENRKNN_TRY(const MappedFile file, MappedFile::open(path));
  nlohmann::ordered_json json;
  json["tool"] = "openrknn " OPENRKNN_VERSION;
  json["source"] = {{"file", std::filesystem::path(path).filename().string()},
                    {"checksum", checksum_text(file.bytes())},
                    {"opset", imported.opset}};
  auto& c = json["config"];
  c["target"] = to_lower(config.target);
  c["dtype"] = config.dtype;
  c["algorithm"] = config.algorithm;
  c["method"] = config.method;
  c["opt_level"] = config.opt_level;
  c["memory_plan"] = config.memory_plan;
  c["compute_order"] = config.compute_order;
  c["samples"] = samples;
  if (!config.layer_dtype.empty()) c["layer_dtype"] = config.layer_dtype;
  if (!config.disabled_passes.empty()) c["disabled_passes"] = config.disabled_passes;
  if (config.bgr_all) c["bgr"] = true;
  if (!config.bgr_all && !config.bgr.empty()) c["bgr"] = config.bgr;
  return json.dump();
}

struct ValueCheck {
  std::vector<std::string> not_finite, too_large;
};

void check_value(const Graph& graph, const quant::Placement& placement, ValueId id, std::span<const float> data,
                 ValueCheck& found) {
  bool finite = true;
  float largest = 0;
  for (const float x : data) {
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::fabs(x));
  }
  const Value& value = graph.value(id);
  if (!finite) found.not_finite.push_back(value.name);
  const auto placed = placement.nodes.find(value.producer);
  const bool half =
      value.producer.valid() && placed != placement.nodes.end() && placed->second.format == quant::Format::kFloat16;
  if (finite && half && largest > kHalfMax) found.too_large.push_back(fmt::format("{} ({:.6g})", value.name, largest));
}

Status check_bgr(const toolkit::Config& config, const Infos& inputs) {
  const auto names = names_of(inputs);
  for (const std::string& name : config.bgr) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return Error{ErrorCode::kNotFound, "unknown input", "--bgr " + name, "the model has no such input",
                 "its inputs are: " + join_names(names)};
  }
  for (const auto& info : inputs) {
    if (std::find(config.bgr.begin(), config.bgr.end(), info.name) == config.bgr.end() || channels_of(info) == 3)
      continue;
    return Error{ErrorCode::kInvalidArgument, "red and blue cannot be swapped", "--bgr " + info.name,
                 fmt::format("the input has {} channel(s), pictures have 3", channels_of(info)), "leave it out"};
  }
  return {};
}

// Calibration data that say nothing about what the network will see.
std::vector<std::string> odd_samples(const Graph& graph, const quant::Ranges& ranges) {
  std::vector<std::string> constant, infinite;
  for (const auto& [id, range] : ranges) {
    if (range.non_finite > 0) infinite.push_back(fmt::format("{} ({})", graph.value(id).name, range.non_finite));
  }
  std::vector<std::string> found;
  if (!infinite.empty()) {
    found.push_back("NaN or infinite values in the samples count for no range; int8 cuts them at the largest finite " +
                    ("ones: " + join_names(infinite, kMaxNamed)));
  }
  for (const ValueId id : graph.inputs()) {
    const auto it = ranges.find(id);
    if (it == ranges.end() || !it->second.seen || it->second.min != it->second.max) continue;
    if (graph.value(id).shape && graph.value(id).shape->elements() > 1)
      constant.push_back(fmt::format("{} ({:.6g})", graph.value(id).name, it->second.min));
  }
  if (!constant.empty()) {
    found.push_back("one and the same number everywhere in all samples of input " + join_names(constant, kMaxNamed) +
                    ": ranges from such data do not fit real data; check the dataset, --mean and --std");
  }
  return found;
}

// `embedded`: the model brings ranges itself.
Result<std::optional<SampleReader>> open_samples(const Infos& inputs, const toolkit::Config& config,
                                                 const std::string& dataset, bool embedded) {
  if (inputs.empty()) return std::optional<SampleReader>(SampleReader::empty());
  if (!dataset.empty()) {
    OPENRKNN_TRY(SampleReader reader, SampleReader::open(dataset, inputs, config));
    return std::optional<SampleReader>(std::move(reader));
  }
  const bool quantized = config.dtype != "fp16" || std::any_of(config.layer_dtype.begin(), config.layer_dtype.end(),
                                                               [](const auto& l) { return l.second != "fp16"; });
  if (!quantized || embedded) return std::optional<SampleReader>{};
  return Error{ErrorCode::kInvalidArgument, "no calibration list", "--dataset",
               "int8 ranges come from sample inputs and none were given",
               "give --dataset LIST.txt (one sample a line), or build with --dtype fp16"};
}

Result<opt::OptimizeReport> run_passes(Graph& graph, const target::Target& target, const toolkit::Config& config,
                                       const Tensors& first_sample) {
  opt::OptimizeOptions options;
  options.level = config.opt_level;
  options.capabilities = npu::capabilities(target);
  options.disabled = config.disabled_passes;
  options.stop_after = config.stop_after;
  options.dump_after = config.dump_after;
  options.dump_dir = config.dump_dir;
  options.max_rewrites = config.max_rewrites;
  options.golden_inputs = first_sample;
  return opt::optimize(graph, options);
}

npu::CompileOptions compile_options(const toolkit::Config& config, const Infos& inputs, const ChannelMap& mean,
                                    const ChannelMap& std_dev) {
  npu::CompileOptions options;
  options.dtype = config.dtype;
  options.compute_order = config.compute_order;
  options.custom_string = config.custom_string;
  for (const auto& info : inputs) {
    const auto m = mean.find(info.name);
    const auto s = std_dev.find(info.name);
    if (m == mean.end() && s == std_dev.end()) continue;
    // One value stands for all channels; an absent list for zeros or ones.
    const auto fill = [&](const ChannelMap& map, ChannelMap::const_iterator it, float fallback) {
      std::vector<float> values(static_cast<size_t>(channels_of(info)), it == map.end() ? fallback : it->second[0]);
      if (it != map.end() && it->second.size() > 1) values = it->second;
      return values;
    };
    options.normalization[info.name] = {fill(mean, m, 0.0F), fill(std_dev, s, 1.0F)};
  }
  return options;
}

// Measured over the samples, as far as the model does not bring them.
Result<quant::Ranges> ranges_of(const Graph& graph, const quant::Placement& placement,
                                std::optional<SampleReader>& samples, const quant::EmbeddedRanges& embedded) {
  quant::Ranges ranges;
  if (samples) {
    const auto next = [&]() -> Result<std::optional<eval::Tensors>> { return samples->next(); };
    OPENRKNN_TRY(ranges, quant::calibrate(graph, next, static_cast<int64_t>(samples->count())));
  }
  if (!embedded.empty()) quant::apply_embedded(graph, embedded, ranges);
  const auto missing = quant::without_range(graph, placement, ranges);
  if (samples || missing.empty()) return ranges;
  return Error{ErrorCode::kInvalidArgument, "no calibration list", "--dataset",
               "the model's own quantization gives no range for " + join_names(missing, kMaxNamed),
               "give --dataset LIST.txt (one sample a line), or build with --dtype fp16"};
}

void warn(std::vector<std::string>& warnings, std::string text) {
  log_warning("{}", text);
  warnings.push_back(std::move(text));
}

}  // namespace

std::string checksum_text(std::span<const std::byte> bytes) { return fmt::format("{:016x}", checksum(bytes)); }

Result<std::vector<std::string>> check_values(const Graph& graph, const quant::Placement& placement,
                                              const Tensors& sample) {
  OPENRKNN_TRY(const eval::Evaluator evaluator, eval::Evaluator::make(graph, eval::Runs::kOne));
  ValueCheck found;
  const auto observe = [&](ValueId id, const TensorView& data) {
    if (data.dtype == DType::kFloat32) check_value(graph, placement, id, data.as<float>(), found);
  };
  OPENRKNN_CHECK_OK(evaluator.run(sample, observe));
  std::vector<std::string> warnings;
  if (!found.not_finite.empty())
    warnings.push_back("NaN or infinite values in the first sample: " + join_names(found.not_finite, kMaxNamed));
  if (!found.too_large.empty()) {
    warnings.push_back("values beyond 65504 become infinite in fp16: " + join_names(found.too_large, kMaxNamed));
  }
  return warnings;
}

Result<model::Program> build(const std::string& path, import::Imported imported, const toolkit::Config& config,
                             const std::string& dataset, std::vector<std::string>& warnings) {
  OPENRKNN_CHECK_OK(check_config(config));
  OPENRKNN_TRY(const target::Target* target, target::find(config.target));
  if (!target->supports(config.dtype)) {
    return Error{ErrorCode::kUnsupported, "cannot build", "--dtype " + config.dtype,
                 target->title + " has no such number format", "it has: " + join_names(target->dtypes)};
  }
  if (!config.dump_after.empty()) OPENRKNN_CHECK_OK(make_folders(config.dump_dir));
  const Infos inputs = graph_infos(imported.graph, imported.graph.inputs(), imported.format);
  OPENRKNN_CHECK_OK(check_bgr(config, inputs));
  if (config.bgr_all && std::none_of(inputs.begin(), inputs.end(), [](const auto& i) { return channels_of(i) == 3; }))
    warn(warnings, "no input has 3 channels: swapping red and blue (--bgr) changes nothing");
  OPENRKNN_TRY(const ChannelMap mean, match_channels(config.mean, inputs, "--mean"));
  OPENRKNN_TRY(const ChannelMap std_dev, match_channels(config.std_dev, inputs, "--std"));
  Graph graph = std::move(imported.graph);
  OPENRKNN_TRY(const quant::EmbeddedRanges embedded,
               quant::absorb_quantization(graph, config.dtype == "w8a8" && config.layer_dtype.empty()));
  OPENRKNN_TRY(std::optional<SampleReader> samples, open_samples(inputs, config, dataset, !embedded.empty()));
  Tensors first_sample;
  if (samples) {
    OPENRKNN_TRY(first_sample, samples->read(0));
  }

  OPENRKNN_TRY(const opt::OptimizeReport report, run_passes(graph, *target, config, first_sample));
  return_free_memory();
  for (const std::string& rule : report.rolled_back)
    warnings.push_back("rewrite rolled back: " + rule);  // logged there
  OPENRKNN_TRY(const quant::Placement placement, quant::place(graph, *target, {config.dtype, config.layer_dtype}));
  if (samples) {
    OPENRKNN_TRY(const std::vector<std::string> found, check_values(graph, placement, first_sample));
    for (const std::string& text : found) warn(warnings, text);
  }
  const bool quantized = std::any_of(placement.nodes.begin(), placement.nodes.end(),
                                     [](const auto& n) { return n.second.format == quant::Format::kInt8; });
  if (quantized && (samples || !embedded.empty())) {
    OPENRKNN_TRY(const quant::Ranges ranges, ranges_of(graph, placement, samples, embedded));
    return_free_memory();
    OPENRKNN_CHECK_OK(quant::assign_params(graph, placement, ranges, config.method));
    for (const std::string& text : odd_samples(graph, ranges)) warn(warnings, text);
    for (const std::string& text : quant::crowded_concats(graph, placement, ranges)) warn(warnings, text);
  }
  npu::CompileOptions options = compile_options(config, inputs, mean, std_dev);
  OPENRKNN_TRY(options.memory_plan, plan::strategy_from_name(config.memory_plan));
  OPENRKNN_TRY(options.provenance, provenance(path, imported, config, samples ? samples->count() : 0));
  return npu::compile(graph, placement, *target, options);
}

}  // namespace openrknn::facade
