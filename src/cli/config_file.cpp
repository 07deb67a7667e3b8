#include "cli/config_file.hpp"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

// yaml-cpp throws; these errors are caught in read_config_file and nowhere else.
struct ConfigError {
  std::string where;
  std::string why;
};

[[noreturn]] void refuse(const YAML::Node& node, const std::string& key, const std::string& why) {
  throw ConfigError{"line " + std::to_string(node.Mark().line + 1) + ", " + key, why};
}

std::string text(const YAML::Node& node, const std::string& key) {
  if (!node.IsScalar()) refuse(node, key, "a single value is expected");
  return node.as<std::string>();
}

bool flag(const YAML::Node& node, const std::string& key) {
  bool value = false;
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, value)) refuse(node, key, "true or false is expected");
  return value;
}

std::vector<std::string> texts(const YAML::Node& node, const std::string& key) {
  std::vector<std::string> values;
  if (node.IsScalar()) return {text(node, key)};
  if (!node.IsSequence()) refuse(node, key, "a list is expected");
  for (const auto& item : node) values.push_back(text(item, key));
  return values;
}

float number(const YAML::Node& node, const std::string& key) {
  float value = 0;
  if (!node.IsScalar() || !YAML::convert<float>::decode(node, value)) refuse(node, key, "a number is expected");
  return value;
}

int whole_number(const YAML::Node& node, const std::string& key) {
  int value = 0;
  if (!node.IsScalar() || !YAML::convert<int>::decode(node, value)) refuse(node, key, "a whole number is expected");
  return value;
}

// [a, b, c] for one input, [[a, b, c], [d]] for several.
std::vector<tk::ChannelValues> channels(const YAML::Node& node, const std::string& key) {
  if (node.IsScalar()) return {{"", {number(node, key)}}};
  if (!node.IsSequence()) refuse(node, key, "a list of numbers is expected");
  std::vector<tk::ChannelValues> list;
  const bool nested = node.size() > 0 && node[0].IsSequence();
  if (!nested) list.emplace_back();
  for (const auto& item : node) {
    if (nested) {
      if (!item.IsSequence()) refuse(item, key, "a list for each input is expected");
      list.emplace_back();
      for (const auto& x : item) list.back().values.push_back(number(x, key));
    } else {
      list.back().values.push_back(number(item, key));
    }
  }
  return list;
}

// "1, 3, 224, 224" or [1, 3, 224, 224].
std::vector<int64_t> dims(const YAML::Node& node, const std::string& key) {
  std::string joined;
  if (node.IsSequence()) {
    for (const auto& item : node) joined += (joined.empty() ? "" : ",") + text(item, key);
  } else {
    joined = text(node, key);
  }
  const auto shape = parse_shape(joined);
  if (!shape.ok()) refuse(node, key, "a shape like 1,3,224,224 is expected, given: " + joined);
  return shape->shape;
}

using Handler = std::function<void(const YAML::Node&, const std::string&)>;
using Handlers = std::map<std::string, Handler>;

void visit(const YAML::Node& map, const std::string& prefix, const Handlers& handlers) {
  if (!map.IsMap()) refuse(map, prefix, "a map is expected");
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const auto key = entry.first.as<std::string>();
    if (!seen.insert(key).second) refuse(entry.first, prefix + "." + key, "the key stands here twice");
    const auto it = handlers.find(key);
    if (it == handlers.end()) {
      std::string known;
      for (const auto& [name, handler] : handlers) known += (known.empty() ? "" : ", ") + name;
      refuse(entry.first, prefix + "." + key, "unknown key; known here: " + known);
    }
    if (!entry.second.IsNull()) it->second(entry.second, prefix + "." + key);
  }
}

void read_bgr(const YAML::Node& node, const std::string& key, tk::Config& config) {
  if (node.IsScalar()) {
    config.bgr_all = flag(node, key);
    return;
  }
  // One flag an input; inputs have no names here, so only "all" and "none" can be said.
  size_t set = 0;
  for (const auto& item : node) set += flag(item, key);
  if (set != 0 && set != node.size()) refuse(node, key, "a different choice for each input needs --bgr NAME");
  config.bgr_all = set != 0;
}

// Features of rknn_convert that are off by default and not there yet: only "off" is taken.
Handler only_off() {
  return [](const YAML::Node& node, const std::string& key) {
    if (flag(node, key)) refuse(node, key, "not there yet: only false can be given");
  };
}

void read_configs(const YAML::Node& node, const std::string& prefix, tk::Config& c) {
  const auto set = [](std::string& value) {
    return [&value](const YAML::Node& n, const std::string& k) { value = text(n, k); };
  };
  const Handlers handlers{
      {"quantized_dtype",
       [&](const YAML::Node& n, const std::string& k) {
         c.dtype = text(n, k);
         if (c.dtype == "asymmetric_quantized-8") c.dtype = "w8a8";  // the name of older releases
       }},
      {"float_dtype",
       [](const YAML::Node& n, const std::string& k) {
         if (text(n, k) != "float16") refuse(n, k, "float16 is the only one");
       }},
      {"target_platform", set(c.target)},
      {"mean_values", [&](const YAML::Node& n, const std::string& k) { c.mean = channels(n, k); }},
      {"std_values", [&](const YAML::Node& n, const std::string& k) { c.std_dev = channels(n, k); }},
      {"quant_img_RGB2BGR", [&](const YAML::Node& n, const std::string& k) { read_bgr(n, k, c); }},
      {"quantized_algorithm", set(c.algorithm)},
      {"quantized_method", set(c.method)},
      {"optimization_level", [&](const YAML::Node& n, const std::string& k) { c.opt_level = whole_number(n, k); }},
      {"memory_plan_strategy", set(c.memory_plan)},
      {"compute_order", set(c.compute_order)},
      {"custom_string", set(c.custom_string)},
      {"disable_rules", [&](const YAML::Node& n, const std::string& k) { c.disabled_passes = texts(n, k); }},
      {"single_core_mode",
       [](const YAML::Node& n, const std::string& k) { (void)flag(n, k); }},  // programs are single-core anyway
      {"model_pruning", only_off()},
      {"quantize_weight", only_off()},
      {"compress_weight", only_off()},
      {"remove_weight", only_off()},
      {"remove_reshape", only_off()},
      {"sparse_infer", only_off()},
      {"enable_flash_attention", only_off()},
  };
  visit(node, prefix, handlers);
}

void read_subgraphs(const YAML::Node& node, const std::string& prefix, tk::LoadOptions& load) {
  std::vector<std::vector<int64_t>> sizes;
  std::vector<std::string> inputs;
  visit(node, prefix,
        {{"input_size_list",
          [&](const YAML::Node& n, const std::string& k) {
            if (!n.IsSequence()) refuse(n, k, "a list of shapes is expected");
            for (const auto& item : n) sizes.push_back(dims(item, k));
          }},
         {"inputs", [&](const YAML::Node& n, const std::string& k) { inputs = texts(n, k); }},
         {"outputs", [&](const YAML::Node& n, const std::string& k) { load.outputs = texts(n, k); }}});
  if (!inputs.empty() && inputs.size() != sizes.size()) {
    refuse(node, prefix,
           std::to_string(inputs.size()) + " inputs and " + std::to_string(sizes.size()) +
               " entries of input_size_list: each input needs its size");
  }
  for (size_t i = 0; i < sizes.size(); ++i) load.inputs.push_back({inputs.empty() ? "" : inputs[i], sizes[i]});
}

BuildPlan read(const YAML::Node& root, const std::filesystem::path& folder) {
  BuildPlan plan;
  bool quantize = true;
  const auto path = [&](const std::string& file) {
    return std::filesystem::path(file).is_absolute() ? file : (folder / file).string();
  };
  const auto ignore = [](const YAML::Node&, const std::string&) {};
  const auto later = [](const YAML::Node& n, const std::string& k) {
    refuse(n, k, "not there yet: give an ONNX model by model_file_path");
  };
  const Handlers models{
      {"name", ignore},
      {"platform", ignore},  // the format is found from the content
      {"model_file_path", [&](const YAML::Node& n, const std::string& k) { plan.model = path(text(n, k)); }},
      {"prototxt_file_path", later},
      {"caffemodel_file_path", later},
      {"darknet_cfg_path", later},
      {"darknet_weights_path", later},
      {"subgraphs", [&](const YAML::Node& n, const std::string& k) { read_subgraphs(n, k, plan.load); }},
      {"quantize", [&](const YAML::Node& n, const std::string& k) { quantize = flag(n, k); }},
      {"dataset", [&](const YAML::Node& n, const std::string& k) { plan.dataset = path(text(n, k)); }},
      {"configs", [&](const YAML::Node& n, const std::string& k) { read_configs(n, k, plan.config); }}};
  if (!root.IsMap() || !root["models"]) throw ConfigError{"models", "the file has no map \"models\""};
  visit(root, "", {{"models", [&](const YAML::Node& n, const std::string&) { visit(n, "models", models); }}});
  if (!quantize) plan.config.dtype = "fp16";
  return plan;
}

}  // namespace

toolkit::Result<BuildPlan> read_config_file(const std::string& path) {
  const auto error = [&](const std::string& where, const std::string& why) {
    return tk::Error{tk::ErrorCode::kFormat, "cannot read the configuration", where.empty() ? path : path + " " + where,
                     why, "docs/CONFIG.md lists the keys"};
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return error("", "it is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return error("", "it cannot be opened");
  std::stringstream content;
  content << file.rdbuf();
  try {
    return read(YAML::Load(content.str()), std::filesystem::path(path).parent_path());
  } catch (const ConfigError& e) {
    return error(e.where, e.why);
  } catch (const YAML::Exception& e) {
    return error("line " + std::to_string(e.mark.line + 1), e.msg);
  } catch (const std::exception& e) {
    return error("", e.what());
  }
}

}  // namespace openrknn::cli
