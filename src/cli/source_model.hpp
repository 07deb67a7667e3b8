// Options of every sub-command that loads a source model.
#pragma once

#include "cli/cli.hpp"

namespace openrknn::cli {

struct ModelArguments {
  std::vector<std::string> input_values;  // NAME=FILE.npy
  int64_t max_unrolled = -1;
};

void add_model_options(CLI::App& app, ModelArguments& arguments);
// The files that these arguments read.
void note_files(const ModelArguments& arguments, Files& files);
tk::Status apply_model_options(const std::string& model, const ModelArguments& arguments, tk::LoadOptions& load);

tk::Error argument_error(const std::string& where, const std::string& why, const std::string& hint);

}  // namespace openrknn::cli
