#include "target/loader.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "target/json_reader.hpp"

namespace openrknn::target {
namespace {

using nlohmann::json;

// The element type of a number format's activations.
struct DTypeName {
  std::string_view format;
  std::string_view element;
};
constexpr DTypeName kFormats[] = {
    {"w8a8", "int8"}, {"fp16", "float16"}, {"w8a16", "float16"}, {"w4a16", "float16"}, {"w16a16i_dfp", "int16"}};

Error bad_file(std::string_view name, const std::string& why) {
  return {ErrorCode::kFormat, "cannot read a target description", "targets/" + std::string(name) + ".json", why,
          "see docs/ADDING.md"};
}

// The file's content over that of the files it extends.
Result<json> resolve(std::string_view name, const std::map<std::string, json, std::less<>>& files, int depth = 0) {
  const auto it = files.find(name);
  if (it == files.end()) return bad_file(name, "it is extended but does not exist");
  if (depth > 8) return bad_file(name, "it extends itself, or more than 8 files");
  if (!it->second.contains("extends")) return it->second;
  if (!it->second["extends"].is_string()) return bad_file(name, "'extends' must be a text");
  OPENRKNN_TRY(json merged, resolve(it->second["extends"].get<std::string>(), files, depth + 1));
  merged.erase("abstract");
  json own = it->second;
  own.erase("extends");
  merged.merge_patch(own);
  return merged;
}

bool is_abstract(const json& file) { return file.value("abstract", json(false)) == json(true); }

Result<Lanes> read_lanes(const json& object, const std::string& where) {
  JsonReader in(object, where);
  Lanes lanes;
  lanes.c2 = static_cast<int>(in.integer("c2", 1));
  lanes.kernel_group = static_cast<int>(in.integer("kernel_group", 1));
  lanes.channel_group = static_cast<int>(in.integer("channel_group", 1));
  lanes.depthwise_group = static_cast<int>(in.integer("depthwise_group", 1));
  OPENRKNN_CHECK_OK(in.finish());
  return lanes;
}

Result<Cbuf> read_cbuf(const json& object, const std::string& where) {
  JsonReader in(object, where);
  Cbuf cbuf;
  cbuf.banks = in.integer("banks", 2);
  cbuf.bank_bytes = in.integer("bank_bytes", 1);
  cbuf.entry_bytes = in.integer("entry_bytes", 1);
  OPENRKNN_CHECK_OK(in.finish());
  return cbuf;
}

Result<NumericsProfile> read_numerics(const json& object, const std::string& where) {
  JsonReader in(object, where);
  NumericsProfile profile;
  profile.name = in.text("name");
  const std::string multiplier = in.text("channel_multiplier");
  if (multiplier != "int16" && multiplier != "q14") in.fail("channel_multiplier", "it must be int16 or q14");
  profile.channel_multiplier = multiplier == "q14" ? ChannelMultiplier::kQ14 : ChannelMultiplier::kInt16;
  profile.zero_point_before_rounding = in.boolean("zero_point_before_rounding");
  profile.fused_residual = in.boolean("fused_residual");
  profile.fp16_group = static_cast<int>(in.integer("fp16_group", 1));
  profile.fp16_slice = static_cast<int>(in.integer("fp16_slice", 1));
  OPENRKNN_CHECK_OK(in.finish());
  return profile;
}

Status read_limits(const json& object, const std::string& where, Target& target) {
  JsonReader in(object, where);
  for (std::string_view name : limit_names()) {
    const std::string key(name);
    JsonReader entry(in.object(key), where + ", limit '" + key + "'");
    if (!in.has(key)) break;  // finish() names it
    Limit limit{entry.integer("value", 0), entry.text("source")};
    OPENRKNN_CHECK_OK(entry.finish());
    target.limits.emplace(key, std::move(limit));
  }
  return in.finish();
}

// Operators with the element types that both the file and the target's number formats name.
Status read_operators(JsonReader& in, const std::string& where, Target& target) {
  std::set<std::string, std::less<>> elements;
  for (const std::string& format : target.dtypes) {
    const auto* it = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const DTypeName& entry) { return entry.format == format; });
    if (it == std::end(kFormats)) {
      in.fail("dtypes", "'" + format + "' is no number format");
      return {};
    }
    elements.emplace(it->element);
  }
  const json& ops = in.object("npu_ops");
  JsonReader reader(ops, where + ", npu_ops");
  for (const auto& [op, value] : ops.items()) {
    std::vector<std::string> runs_in;
    for (const std::string& name : reader.texts(op)) {
      if (!dtype_from_name(name)) reader.fail(op, "'" + name + "' is no element type");
      if (elements.contains(name)) runs_in.push_back(name);
    }
    if (!runs_in.empty()) target.npu_ops.emplace(op, std::move(runs_in));
  }
  OPENRKNN_CHECK_OK(reader.finish());
  const std::string source = in.text("operators_source");
  target.limits.emplace("npu.operators", Limit{static_cast<int64_t>(target.npu_ops.size()), source});
  return {};
}

// Per element type; every type must be one of the target's or name a known one.
template <typename T>
Status read_by_dtype(const json& object, const std::string& where, std::map<std::string, T>& out) {
  JsonReader in(object, where);
  for (const auto& [key, value] : object.items()) {
    if (!dtype_from_name(key)) in.fail(key, "it is no element type");
    out[key] = static_cast<T>(in.integer(key, 1));
  }
  return in.finish();
}

Result<Target> read_target(std::string_view name, const json& object) {
  const std::string where = "targets/" + std::string(name) + ".json";
  JsonReader in(object, where);
  Target target;
  target.name = std::string(name);
  target.title = in.text("title");
  target.group = in.text("group");
  target.cores = static_cast<int>(in.integer("cores", 1));
  target.clock_mhz = in.positive("clock_mhz");
  target.dram_gb_s = in.positive("dram_gb_s");
  target.atom_bytes = static_cast<int>(in.integer("atom_bytes", 1));
  target.buffer_alignment = in.integer("buffer_alignment", 1);
  target.plane_pixel_align = static_cast<int>(in.integer("plane_pixel_align", 1));
  target.dtypes = in.texts("dtypes");
  OPENRKNN_CHECK_OK(read_by_dtype(in.object("macs_per_cycle"), where + ", macs_per_cycle", target.macs_per_cycle));
  OPENRKNN_CHECK_OK(
      read_by_dtype(in.object("input_width_align"), where + ", input_width_align", target.input_width_align));
  const json& lanes = in.object("lanes");
  for (const auto& [key, value] : lanes.items()) {
    if (!dtype_from_name(key)) in.fail("lanes", "'" + key + "' is no element type");
    OPENRKNN_TRY(target.lanes[key], read_lanes(value, where + ", lanes of " + key));
  }
  const json& cbuf = in.object("cbuf");
  const json& numerics = in.object("numerics");
  const json& limits = in.object("limits");
  OPENRKNN_CHECK_OK(read_operators(in, where, target));
  if (in.has("cpu_ops") && object["cpu_ops"] == json("all")) {
    in.skip("cpu_ops");
    target.cpu_ops_all = true;
  } else {
    target.cpu_ops = in.texts("cpu_ops");
    target.cpu_ops_all = false;
  }
  if (in.has("notes")) in.texts("notes");
  OPENRKNN_CHECK_OK(in.finish());
  OPENRKNN_TRY(target.cbuf, read_cbuf(cbuf, where + ", cbuf"));
  OPENRKNN_TRY(target.numerics, read_numerics(numerics, where + ", numerics"));
  OPENRKNN_CHECK_OK(read_limits(limits, where, target));
  return target;
}

// What every number format of the target needs to be there.
Status check(const Target& target) {
  for (const std::string& format : target.dtypes) {
    for (const auto& [known, element] : kFormats) {
      const std::string key(element);
      if (known != format) continue;
      if (!target.lanes.contains(key)) return bad_file(target.name, "lanes of " + key + " are missing, for " + format);
      if (!target.macs_per_cycle.contains(key))
        return bad_file(target.name, "macs_per_cycle of " + key + " is missing");
      if (!target.input_width_align.contains(key)) {
        return bad_file(target.name, "input_width_align of " + key + " is missing");
      }
    }
  }
  if ((target.buffer_alignment & (target.buffer_alignment - 1)) != 0) {
    return bad_file(target.name, "buffer_alignment is not a power of two");
  }
  return {};
}

}  // namespace

Result<std::vector<Target>> load_targets(std::span<const Source> sources) {
  std::map<std::string, json, std::less<>> files;
  for (const Source& source : sources) {
    json file = json::parse(source.text, nullptr, false);
    if (!file.is_object()) return bad_file(source.name, "it is not a JSON object");
    files[std::string(source.name)] = std::move(file);
  }
  std::vector<Target> targets;
  for (const auto& [name, file] : files) {
    if (is_abstract(file)) continue;
    OPENRKNN_TRY(const json merged, resolve(name, files));
    OPENRKNN_TRY(Target target, read_target(name, merged));
    OPENRKNN_CHECK_OK(check(target));
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace openrknn::target
