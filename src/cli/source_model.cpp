#include "cli/source_model.hpp"

namespace openrknn::cli {
namespace {

// "NAME=FILE.npy" against the model's own input names, which may hold '='.
tk::Status add_input_values(const std::string& model, const std::vector<std::string>& arguments,
                            tk::LoadOptions& load) {
  if (arguments.empty()) return {};
  auto inputs = tk::model_inputs(model);
  if (!inputs.ok()) return inputs.error();
  for (const std::string& argument : arguments) {
    size_t length = 0;
    std::string known;
    for (const auto& info : *inputs) {
      known += (known.empty() ? "" : ", ") + info.name;
      if (info.name.size() > length && argument.size() > info.name.size() && argument.starts_with(info.name) &&
          argument[info.name.size()] == '=')
        length = info.name.size();
    }
    if (length == 0)
      return argument_error("--input-value " + argument, "no input of the model is named there",
                            "write NAME=FILE.npy with one of: " + known);
    const std::string name = argument.substr(0, length), file = argument.substr(length + 1);
    if (file.empty())
      return argument_error("--input-value " + argument, "no file stands behind the name", "write NAME=FILE.npy");
    auto tensor = tk::read_npy(file);
    if (!tensor.ok()) return tensor.error();
    if (!load.input_values.emplace(name, std::move(tensor).value()).second)
      return argument_error("--input-value " + argument, "\"" + name + "\" has a value already",
                            "give each input once");
  }
  return {};
}

}  // namespace

tk::Error argument_error(const std::string& where, const std::string& why, const std::string& hint) {
  return {tk::ErrorCode::kInvalidArgument, "cannot read an argument", where, why, hint};
}

void add_model_options(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--input-value", arguments.input_values, "NAME=FILE.npy bakes a constant in")->allow_extra_args(false);
  app.add_option("--max-unrolled", arguments.max_unrolled,
                 "Write loops out into at most so many nodes (default: 20000)")
      ->check(whole_number(0));
}

void note_files(const ModelArguments& arguments, Files& files) {
  for (const std::string& argument : arguments.input_values) {
    for (size_t at = argument.find('='); at != std::string::npos; at = argument.find('=', at + 1))
      files.reads("--input-value", argument.substr(at + 1));  // a name may hold '='
  }
}

tk::Status apply_model_options(const std::string& model, const ModelArguments& arguments, tk::LoadOptions& load) {
  if (arguments.max_unrolled >= 0) load.max_unrolled_nodes = arguments.max_unrolled;
  return add_input_values(model, arguments.input_values, load);
}

}  // namespace openrknn::cli
