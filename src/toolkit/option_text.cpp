#include "toolkit/option_text.hpp"

#include <charconv>
#include <functional>
#include <map>

#include "base/text.hpp"

namespace openrknn::facade {
namespace {

using toolkit::ErrorCode;
using toolkit::Status;

Status expected(std::string_view name, const std::string& text, const std::string& what) {
  return toolkit::Error{ErrorCode::kInvalidArgument, "cannot read an option", std::string(name) + " \"" + text + "\"",
                        what + " is expected", "see openrknn/toolkit.h"};
}

template <typename T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "NAME:A,B" at the last ':'; without one the name is empty.
template <typename T>
bool parse_named_list(const std::string& text, std::string& name, std::vector<T>& values) {
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos) name = text.substr(0, colon);
  for (const std::string& part :
       split(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1), ',')) {
    if (!parse_number(trim(part), values.emplace_back())) return false;
  }
  return true;
}

using Setter = std::function<Status(TextOptions&, const std::string&)>;

template <typename T>
Setter number_into(std::string_view name, T& (*field)(TextOptions&)) {
  return [name, field](TextOptions& o, const std::string& text) -> Status {
    return parse_number(text, field(o)) ? Status{} : expected(name, text, "a whole number");
  };
}

Setter text_into(std::string& (*field)(TextOptions&)) {
  return [field](TextOptions& o, const std::string& text) -> Status {
    field(o) = text;
    return {};
  };
}

Setter flag_into(std::string_view name, bool& (*field)(TextOptions&)) {
  return [name, field](TextOptions& o, const std::string& text) -> Status {
    if (text != "0" && text != "1") return expected(name, text, "0 or 1");
    field(o) = text == "1";
    return {};
  };
}

Setter channels_into(std::string_view name, std::vector<toolkit::ChannelValues>& (*field)(TextOptions&)) {
  return [name, field](TextOptions& o, const std::string& text) -> Status {
    toolkit::ChannelValues v;
    if (!parse_named_list(text, v.input, v.values)) return expected(name, text, "[NAME:]A,B,C");
    field(o).push_back(std::move(v));
    return {};
  };
}

Status set_input(TextOptions& o, const std::string& text) {
  toolkit::NamedShape shape;
  if (!parse_named_list(text, shape.name, shape.shape)) return expected("input", text, "NAME:D,D,...");
  o.load.inputs.push_back(std::move(shape));
  return {};
}

Status set_bgr(TextOptions& o, const std::string& text) {
  if (text.empty()) {
    o.config.bgr_all = true;
  } else {
    o.config.bgr.push_back(text);
  }
  return {};
}

Status set_layer_dtype(TextOptions& o, const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return expected("layer-dtype", text, "NAME=DTYPE");
  o.config.layer_dtype[text.substr(0, equals)] = text.substr(equals + 1);
  return {};
}

const std::map<std::string, Setter, std::less<>>& setters() {
  using O = TextOptions;
  static const std::map<std::string, Setter, std::less<>> table{
      {"input", set_input},
      {"output",
       [](O& o, const std::string& text) -> Status {
         o.load.outputs.push_back(text);
         return {};
       }},
      {"target", text_into([](O& o) -> std::string& { return o.config.target; })},
      {"dtype", text_into([](O& o) -> std::string& { return o.config.dtype; })},
      {"algorithm", text_into([](O& o) -> std::string& { return o.config.algorithm; })},
      {"method", text_into([](O& o) -> std::string& { return o.config.method; })},
      {"memory-plan", text_into([](O& o) -> std::string& { return o.config.memory_plan; })},
      {"compute-order", text_into([](O& o) -> std::string& { return o.config.compute_order; })},
      {"custom-string", text_into([](O& o) -> std::string& { return o.config.custom_string; })},
      {"dump-after", text_into([](O& o) -> std::string& { return o.config.dump_after; })},
      {"dump-dir", text_into([](O& o) -> std::string& { return o.config.dump_dir; })},
      {"stop-after", text_into([](O& o) -> std::string& { return o.config.stop_after; })},
      {"dump", text_into([](O& o) -> std::string& { return o.run.dump_dir; })},
      {"disable",
       [](O& o, const std::string& text) -> Status {
         o.config.disabled_passes.push_back(text);
         return {};
       }},
      {"mean", channels_into("mean", [](O& o) -> std::vector<toolkit::ChannelValues>& { return o.config.mean; })},
      {"std", channels_into("std", [](O& o) -> std::vector<toolkit::ChannelValues>& { return o.config.std_dev; })},
      {"bgr", set_bgr},
      {"layer-dtype", set_layer_dtype},
      {"max-unrolled",
       number_into<int64_t>("max-unrolled", [](O& o) -> int64_t& { return o.load.max_unrolled_nodes; })},
      {"max-samples", number_into<int64_t>("max-samples", [](O& o) -> int64_t& { return o.config.max_samples; })},
      {"max-rewrites", number_into<int64_t>("max-rewrites", [](O& o) -> int64_t& { return o.config.max_rewrites; })},
      {"batch", number_into<int>("batch", [](O& o) -> int& { return o.config.batch; })},
      {"opt-level", number_into<int>("opt-level", [](O& o) -> int& { return o.config.opt_level; })},
      {"strict", flag_into("strict", [](O& o) -> bool& { return o.run.strict; })},
      {"raw-output", flag_into("raw-output", [](O& o) -> bool& { return o.run.raw_outputs; })},
  };
  return table;
}

}  // namespace

toolkit::Status set_option(TextOptions& options, std::string_view name, const std::string& text) {
  const auto it = setters().find(name);
  if (it != setters().end()) return it->second(options, text);
  std::vector<std::string> known;
  for (const auto& [key, setter] : setters()) known.push_back(key);
  return toolkit::Error{ErrorCode::kInvalidArgument, "unknown option", std::string(name),
                        "known: " + join_names(known, known.size()), "see openrknn/toolkit.h"};
}

}  // namespace openrknn::facade
