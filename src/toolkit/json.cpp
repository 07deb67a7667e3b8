// The JSON forms of the reports. Keys are part of the interface: none goes without a line in the change log.
#include <cmath>
#include <nlohmann/json.hpp>

#include "openrknn/toolkit.hpp"

namespace openrknn::toolkit {
namespace {

using Json = nlohmann::ordered_json;

// Names come from files: bytes that are no UTF-8 are replaced, never thrown at.
std::string text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json pair(const Similarity& s) { return {{"cos", number(s.cos)}, {"euc", number(s.euc)}}; }

Json with_worst(const Similarity& mean, const Similarity& worst) {
  Json json = pair(mean);
  json["worst"] = pair(worst);
  return json;
}

Json infos(const std::vector<TensorInfo>& list) {
  Json json = Json::array();
  for (const auto& i : list)
    json.push_back({{"name", i.name},
                    {"dtype", dtype_name(i.dtype)},
                    {"shape", i.shape},
                    {"layout", i.shape.size() != 4 ? "plain"
                               : i.nhwc            ? "nhwc"
                                                   : "nchw"}});
  return json;
}

}  // namespace

std::string to_json(const CompareReport& report) {
  Json json{{"samples", report.samples}, {"outputs", Json::array()}, {"layers", Json::array()}};
  for (const auto& o : report.outputs) {
    Json entry{{"name", o.name}};
    entry.update(with_worst(o.mean, o.worst));
    entry["max_abs"] = number(o.max_abs);
    json["outputs"].push_back(std::move(entry));
  }
  for (const auto& l : report.layers) {
    Json entry{{"name", l.name},
               {"op", l.op},
               {"source", l.source},
               {"dtype", l.dtype},
               {"entire", with_worst(l.entire, l.entire_worst)}};
    if (l.has_single) entry["single"] = with_worst(l.single, l.single_worst);
    json["layers"].push_back(std::move(entry));
  }
  return text(json);
}

std::string to_json(const BenchReport& report) {
  Json json{{"model", report.model},       {"target", report.target.empty() ? Json(nullptr) : Json(report.target)},
            {"isa", report.isa},           {"kernels", Json::object()},
            {"threads", report.threads},   {"repeat", report.repeat},
            {"min_ms", report.min_ms},     {"median_ms", report.median_ms},
            {"first_ms", report.first_ms}, {"load_ms", report.load_ms},
            {"input_ms", report.input_ms}, {"output_ms", report.output_ms},
            {"tasks", Json::array()}};
  for (const auto& [kind, isa] : report.kernels) json["kernels"][kind] = isa;
  for (const auto& t : report.tasks)
    json["tasks"].push_back({{"name", t.name}, {"op", t.op}, {"min_ms", t.min_ms}, {"macs", t.macs}});
  return text(json);
}

std::string to_json(const ModelReport& report) {
  Json json{{"format", report.format},          {"opset", report.opset}, {"inputs", infos(report.inputs)},
            {"outputs", infos(report.outputs)}, {"nodes", report.nodes}, {"parameters", report.parameters}};
  if (report.macs >= 0) json["macs"] = report.macs;  // absent: not known
  return text(json);
}

std::string to_json(const ProgramReport& report) {
  Json json{{"format", report.format},        {"target", report.target},          {"dtype", report.dtype},
            {"inputs", infos(report.inputs)}, {"outputs", infos(report.outputs)}, {"tasks", Json::array()}};
  for (const auto& t : report.tasks) {
    json["tasks"].push_back({{"name", t.name},
                             {"op", t.op},
                             {"engine", t.engine},
                             {"source", t.source},
                             {"inputs", t.inputs},
                             {"outputs", t.outputs},
                             {"tiles", t.tiles},
                             {"macs", t.macs},
                             {"bytes", t.bytes},
                             {"reason", t.reason}});
  }
  json["memory"] = {{"weights", report.weights},
                    {"internal", report.internal},
                    {"lower_bound", report.lower_bound},
                    {"plan_is_smallest", report.plan_is_smallest},
                    {"io", report.io}};
  Json provenance = Json::parse(report.provenance, nullptr, false);
  json["provenance"] = provenance.is_discarded() ? Json(report.provenance) : std::move(provenance);
  return text(json);
}

std::string to_json(const PreflightReport& report) {
  Json json{{"target", report.target},
            {"buildable", report.buildable},
            {"nodes", Json::array()},
            {"unsupported", report.unsupported},
            {"summary", report.summary}};
  for (const auto& n : report.nodes) {
    json["nodes"].push_back({{"name", n.name},
                             {"op", n.op},
                             {"engine", n.engine},
                             {"reason", n.reason},
                             {"limit", n.limit},
                             {"macs", n.macs},
                             {"bytes", n.bytes}});
  }
  return text(json);
}

std::string to_json(const std::vector<TargetInfo>& targets) {
  Json json = Json::array();
  for (const auto& t : targets) {
    json.push_back({{"name", t.name},
                    {"title", t.title},
                    {"cores", t.cores},
                    {"clock_mhz", t.clock_mhz},
                    {"int8_macs_per_cycle", t.int8_macs_per_cycle},
                    {"cbuf_bytes", t.cbuf_bytes},
                    {"dram_gb_s", t.dram_gb_s},
                    {"dtypes", t.dtypes}});
  }
  return text(json);
}

}  // namespace openrknn::toolkit
