// Messages for people. Everything goes to stderr (and to a file when one is set); results never do.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace openrknn {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void set_log_level(LogLevel level);
// Copies every message to `path` as well.
Status set_log_file(const std::string& path);
void log_message(LogLevel level, std::string_view text);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

// A progress line on a terminal, nothing elsewhere: Progress p("calibrating", 100); p.step();
class Progress {
 public:
  Progress(std::string label, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(int64_t count = 1);

 private:
  std::string label_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  int64_t last_shown_ms_ = 0;
  bool shown_ = false;
};
// Off by --quiet; on by default when stderr is a terminal.
void set_progress_enabled(bool enabled);

}  // namespace openrknn
