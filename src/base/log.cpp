#include "base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

namespace openrknn {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("openrknn", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%L%$ %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool& progress_flag() {
  static bool enabled = isatty(STDERR_FILENO) == 1;
  return enabled;
}

int64_t now_ms() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

Status set_log_file(const std::string& path) {
  try {
    logger().sinks().push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, true));
  } catch (const spdlog::spdlog_ex& e) {
    return Error{ErrorCode::kIo, "cannot open the log file", path, e.what(), "give a path in a writable folder"};
  }
  return {};
}

void log_message(LogLevel level, std::string_view text) { logger().log(to_spdlog(level), text); }

void set_progress_enabled(bool enabled) { progress_flag() = enabled && isatty(STDERR_FILENO) == 1; }

Progress::Progress(std::string label, int64_t total)
    : label_(std::move(label)), total_(total), last_shown_ms_(now_ms()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::step(int64_t count) {
  done_ += count;
  if (!progress_flag()) return;
  const int64_t now = now_ms();
  if (now - last_shown_ms_ < 200) return;
  last_shown_ms_ = now;
  shown_ = true;
  std::fputs(fmt::format("\r\033[K{} {}/{}", label_, done_, total_).c_str(), stderr);
}

}  // namespace openrknn
