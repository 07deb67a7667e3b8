#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  // Blanks around a number are fine, inside they are not: "10 20" is no number.
  for (std::string& part : parts) {
    part.erase(part.find_last_not_of(' ') + 1);
    part.erase(0, part.find_first_not_of(' '));
  }
  return parts;
}

tk::Error bad_argument(const std::string& where, const std::string& why, const std::string& hint) {
  return {tk::ErrorCode::kInvalidArgument, "cannot read an argument", where, why, hint};
}

}  // namespace

void add_common(CLI::App& app, Common& common, bool json) {
  app.add_option("--threads", common.threads, "Worker threads (default: all cores); changes speed only")
      ->check(CLI::Range(0, 1024));
  app.add_option("--memory-budget", common.memory_budget_mib,
                 "MiB that all tensors together may take (default: 8192); what needs more is an error")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_flag("--quiet", common.quiet, "No warnings, no progress");
  app.add_flag("-v,--verbose", common.verbose, "More messages; twice: all of them");
  app.add_option("--log", common.log_file, "Copy every message to this file")->check(not_empty());
  if (json) {
    app.add_option("--json", common.json, "Write the result as JSON to this file (-: stdout, and nothing else there)")
        ->check(not_empty());
  }
}

CLI::Validator not_empty() {
  return {[](std::string& text) { return text.empty() ? std::string("a path is needed, not \"\"") : std::string(); },
          ""};
}

CLI::Validator whole_number(int64_t least) {
  return {[least](std::string& text) {
            int64_t value = 0;
            const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (code == std::errc() && end == text.data() + text.size() && value >= least) return std::string();
            return "\"" + text + "\" is not a whole number from " + std::to_string(least) + " to " +
                   std::to_string(std::numeric_limits<int64_t>::max());
          },
          ""};
}

tk::Status apply(const Common& common, Files files) {
  if (!common.json_on_stdout()) files.writes("--json", common.json);
  files.writes("--log", common.log_file);
  if (auto status = check_files(files); !status.ok()) return status;
  tk::set_threads(common.threads);
  tk::set_memory_budget(common.memory_budget_mib << 20);
  tk::set_log_level(common.quiet          ? tk::LogLevel::kError
                    : common.verbose == 0 ? tk::LogLevel::kWarning
                    : common.verbose == 1 ? tk::LogLevel::kInfo
                                          : tk::LogLevel::kDebug);
  if (common.quiet) tk::set_progress(false);
  if (!common.log_file.empty()) return tk::set_log_file(common.log_file);
  return {};
}

int fail(const tk::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message().c_str());
  return kFailed;
}

int fail(const std::string& what, const std::string& where, const std::string& why, const std::string& hint) {
  return fail(tk::Error{tk::ErrorCode::kInvalidArgument, what, where, why, hint});
}

int usage(const std::string& text) {
  std::fprintf(stderr, "usage: %s\n", text.c_str());
  return kUsage;
}

tk::Status write_json(const Common& common, const std::string& json) {
  if (common.json.empty()) return {};
  if (!common.json_on_stdout()) return tk::write_text(common.json, json);
  std::fwrite(json.data(), 1, json.size(), stdout);
  return {};
}

tk::Result<tk::NamedShape> parse_shape(const std::string& argument) {
  const std::string where = "--input " + argument;
  const size_t colon = argument.rfind(':');
  tk::NamedShape result;
  if (colon != std::string::npos) result.name = argument.substr(0, colon);
  const std::string dims = colon == std::string::npos ? argument : argument.substr(colon + 1);
  if (dims.empty() && colon != std::string::npos) return result;  // "NAME:" is a scalar
  for (const std::string& part : split_commas(dims)) {
    int64_t value = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (code != std::errc() || end != part.data() + part.size() || part.empty()) {
      return bad_argument(where, "\"" + part + "\" is not a dimension", "write NAME:D,D,... with whole numbers");
    }
    if (value < 1)
      return bad_argument(where, "dimension " + part + " is not positive", "write NAME:D,D,... with positive numbers");
    result.shape.push_back(value);
  }
  return result;
}

tk::Result<tk::ChannelValues> parse_channels(const std::string& option, const std::string& argument) {
  const size_t colon = argument.rfind(':');
  tk::ChannelValues result;
  if (colon != std::string::npos) result.input = argument.substr(0, colon);
  for (const std::string& part : split_commas(colon == std::string::npos ? argument : argument.substr(colon + 1))) {
    float value = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (code != std::errc() || end != part.data() + part.size() || part.empty() || !std::isfinite(value)) {
      return bad_argument(option + " " + argument, "\"" + part + "\" is not a number", "write [NAME:]A,B,C");
    }
    result.values.push_back(value);
  }
  return result;
}

tk::Result<std::vector<tk::ChannelValues>> parse_channel_list(const std::string& option,
                                                              const std::vector<std::string>& arguments) {
  std::vector<tk::ChannelValues> list;
  for (const std::string& argument : arguments) {
    auto values = parse_channels(option, argument);
    if (!values.ok()) return values.error();
    list.push_back(std::move(values).value());
  }
  return list;
}

tk::Result<tk::DataLayout> parse_layout(const std::string& text) {
  if (text == "model") return tk::DataLayout::kModel;
  if (text == "nchw") return tk::DataLayout::kNchw;
  if (text == "nhwc") return tk::DataLayout::kNhwc;
  return bad_argument("--layout " + text, "no such layout", "known: model, nchw, nhwc");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string format(const char* pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

std::string bytes_text(int64_t bytes) {
  if (bytes >= 1 << 20) return format("%.2f MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return format("%.2f KiB", static_cast<double>(bytes) / (1 << 10));
  return std::to_string(bytes) + " B";
}

std::string memory_text(const tk::ProgramReport& report) {
  std::string plan = "no plan is smaller";
  if (report.plan_is_smallest && report.internal > report.lower_bound) {
    plan = "at most " + bytes_text(report.lower_bound) + " are live at once; proved: no plan is smaller";
  } else if (!report.plan_is_smallest) {
    plan = "no plan can be below " + bytes_text(report.lower_bound);
  }
  return "internal " + bytes_text(report.internal) + " (" + plan + "), inputs and outputs " + bytes_text(report.io);
}

namespace {

// The end of a long name tells more than its beginning; JSON has all of it.
std::string shortened(std::string cell) {
  constexpr size_t kLongest = 60;
  if (cell.size() <= kLongest) return cell;
  size_t begin = cell.size() - (kLongest - 3);
  while (begin < cell.size() && (static_cast<unsigned char>(cell[begin]) & 0xC0U) == 0x80U) ++begin;  // inside UTF-8
  return "..." + cell.substr(begin);
}

}  // namespace

Table::Table(std::vector<std::string> header, std::vector<bool> right) : right_(std::move(right)) {
  right_.resize(header.size());
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  row.resize(right_.size());
  for (size_t i = 0; i + 1 < row.size(); ++i) row[i] = shortened(std::move(row[i]));  // the last one bends no column
  rows_.push_back(std::move(row));
}

void Table::print() const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (right_[i] ? fill + row[i] : row[i] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace openrknn::cli
