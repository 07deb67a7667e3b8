// The YAML of rknn_convert.
#pragma once

#include <string>

#include "openrknn/toolkit.hpp"

namespace openrknn::cli {

// Everything that a build needs.
struct BuildPlan {
  std::string model;
  std::string dataset;
  toolkit::LoadOptions load;
  toolkit::Config config;
};

// Keys: models.{name,platform,model_file_path,subgraphs,quantize,dataset,configs}. Paths are relative to the file's
// folder. Unknown keys are errors that name the line.
toolkit::Result<BuildPlan> read_config_file(const std::string& path);

}  // namespace openrknn::cli
