// Models and inputs as run and bench take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/files.hpp"
#include "cli/source_model.hpp"
#include "openrknn/toolkit.hpp"

namespace openrknn::cli {

// A source model or a program with its inputs' data.
struct Loaded {
  std::optional<toolkit::Model> model;
  std::optional<toolkit::Program> program;
  toolkit::Tensors inputs;

  const std::vector<toolkit::TensorInfo>& outputs() const { return model ? model->outputs() : program->outputs(); }
};

struct FeedArguments {
  std::string file;                 // MODEL or FILE.rknn
  std::vector<std::string> inputs;  // [NAME=]FILE
  std::vector<std::string> mean, std_dev;
  bool bgr = false;
  std::string layout = "model";
  ModelArguments source;
  bool seeded = false;  // without files the inputs are seeded random numbers
};

// Every file that these arguments read.
Files files_of(const FeedArguments& arguments);
toolkit::Result<Loaded> load_and_feed(const FeedArguments& arguments);

}  // namespace openrknn::cli
