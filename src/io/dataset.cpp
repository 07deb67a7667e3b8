#include "io/dataset.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/text.hpp"

namespace openrknn::io {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < line.size()) {
    const size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

Error list_error(ErrorCode code, const std::string& path, std::string why, std::string hint) {
  return Error{code, "cannot use the calibration list", path, std::move(why), std::move(hint)};
}

std::string resolved(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path(name);
  return path.is_absolute() ? name : (folder / path).string();
}

Result<std::vector<Sample>> read_samples(const std::string& path) {
  OPENRKNN_TRY(const std::string text, read_text_file(path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<Sample> samples;
  int number = 0;
  for (std::string& line : split(text, '\n')) {
    ++number;
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // byte order mark
    Sample sample{number, words_of(line)};
    if (sample.files.empty() || sample.files[0].starts_with('#')) continue;
    for (std::string& file : sample.files) file = resolved(folder, file);
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

std::vector<std::string> dataset_files(const std::string& path) {
  std::vector<std::string> files;
  const auto samples = read_samples(path);
  if (!samples.ok()) return files;
  for (const Sample& sample : *samples) files.insert(files.end(), sample.files.begin(), sample.files.end());
  return files;
}

Result<std::vector<Sample>> read_dataset(const std::string& path, size_t inputs) {
  OPENRKNN_TRY(const std::vector<Sample> samples, read_samples(path));
  std::vector<std::string> missing;
  std::vector<std::string> uneven;
  for (const Sample& sample : samples) {
    if (sample.files.size() != inputs) uneven.push_back(fmt::format("line {} ({})", sample.line, sample.files.size()));
    for (const std::string& file : sample.files) {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(file, ignored))
        missing.push_back(fmt::format("line {}: {}", sample.line, file));
    }
  }
  if (samples.empty()) return list_error(ErrorCode::kFormat, path, "it names no samples", "write one sample a line");
  if (!uneven.empty()) {
    return list_error(ErrorCode::kFormat, path,
                      fmt::format("the model has {} input{}, so a line needs as many files: {}", inputs,
                                  inputs == 1 ? "" : "s", join_names(uneven)),
                      "write one file an input, separated by blanks; paths cannot hold blanks");
  }
  if (!missing.empty()) {
    return list_error(ErrorCode::kNotFound, path,
                      fmt::format("{} file{} missing: {}", missing.size(), missing.size() == 1 ? " is" : "s are",
                                  join_names(missing)),
                      "paths are relative to the folder of the list");
  }
  return samples;
}

}  // namespace openrknn::io
