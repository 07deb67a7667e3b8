// The files that a sub-command reads and writes, checked before its work.
#pragma once

#include <string>
#include <vector>

#include "openrknn/toolkit.hpp"

namespace openrknn::cli {

// One file and the argument that names it.
struct FileUse {
  std::string argument;
  std::string path;
};

struct Files {
  std::vector<FileUse> inputs, outputs;  // an empty path is an argument that was not given

  void reads(std::string argument, std::string path) { inputs.push_back({std::move(argument), std::move(path)}); }
  void writes(std::string argument, std::string path) { outputs.push_back({std::move(argument), std::move(path)}); }
  // A calibration list and every file that it names.
  void reads_list(const std::string& argument, const std::string& path);
};

// Every output can be written and destroys neither an input nor another output.
toolkit::Status check_files(const Files& files);

}  // namespace openrknn::cli
