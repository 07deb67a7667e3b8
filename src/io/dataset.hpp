// Calibration lists: one sample a line, one file an input, separated by blanks; paths relative to the list's folder.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace openrknn::io {

struct Sample {
  int line = 0;                    // of the list, from 1
  std::vector<std::string> files;  // as paths that can be opened
};

// Blank lines and lines that start with '#' are skipped. Missing files are all reported in one error, with line
// numbers; lines with another number of files than `inputs` too. A list without samples is an error.
Result<std::vector<Sample>> read_dataset(const std::string& path, size_t inputs);
// Every file that the list names, there or not; nothing when the list cannot be read.
std::vector<std::string> dataset_files(const std::string& path);

}  // namespace openrknn::io
