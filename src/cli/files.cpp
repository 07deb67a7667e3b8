#include "cli/files.hpp"

#include <filesystem>

namespace openrknn::cli {
namespace {

namespace fs = std::filesystem;
namespace tk = openrknn::toolkit;

tk::Error cannot_write(const FileUse& output, const std::string& why, const std::string& hint) {
  return {tk::ErrorCode::kIo, "cannot write the result", output.argument + " " + output.path, why, hint};
}

tk::Status check_place(const FileUse& output) {
  std::error_code ignored;
  const fs::path folder = fs::path(output.path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return cannot_write(output, "there is no folder " + folder.string(), "make it first");
  const fs::file_status status = fs::status(output.path, ignored);
  if (fs::is_directory(status)) return cannot_write(output, "it is a folder", "give a file name");
  if (fs::exists(status) && !fs::is_regular_file(status))
    return cannot_write(output, "it is not a regular file", "give the path of a regular file or of a new one");
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(output.path, ignored)))
    return cannot_write(output, "it is a symbolic link to nothing", "remove it, or give another path");
  return {};
}

// Device and inode when both are there (hard links too), else the path without links and dots.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code code;
  if (fs::equivalent(a, b, code) && !code) return true;
  const fs::path left = fs::weakly_canonical(fs::absolute(a, code), code);
  if (code) return false;
  const fs::path right = fs::weakly_canonical(fs::absolute(b, code), code);
  return !code && left == right;
}

}  // namespace

void Files::reads_list(const std::string& argument, const std::string& path) {
  reads(argument, path);
  if (path.empty()) return;
  for (const std::string& file : tk::dataset_files(path)) reads("a file of " + argument + " " + path, file);
}

tk::Status check_files(const Files& files) {
  const std::string hint = "give another path";
  for (size_t i = 0; i < files.outputs.size(); ++i) {
    const FileUse& output = files.outputs[i];
    if (output.path.empty()) continue;
    if (auto status = check_place(output); !status.ok()) return status;
    for (const FileUse& input : files.inputs) {
      if (!input.path.empty() && same_file(output.path, input.path))
        return cannot_write(output, "it is also read (" + input.argument + ")", hint);
    }
    for (size_t k = 0; k < i; ++k) {
      if (!files.outputs[k].path.empty() && same_file(output.path, files.outputs[k].path))
        return cannot_write(output, "it is also written by " + files.outputs[k].argument, hint);
    }
  }
  return {};
}

}  // namespace openrknn::cli
