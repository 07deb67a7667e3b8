// The frame of the command line: common options, printing, splitting of arguments. One file per sub-command beside it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/files.hpp"
#include "openrknn/toolkit.hpp"

namespace openrknn::cli {

namespace tk = openrknn::toolkit;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

// What every sub-command takes.
struct Common {
  int threads = 0;
  int64_t memory_budget_mib = 0;  // 0: the default
  bool quiet = false;
  int verbose = 0;
  std::string log_file;
  std::string json;  // file, or "-" for stdout
  bool json_on_stdout() const { return json == "-"; }
};

// Adds a sub-command whose work is done after all arguments are known to be well-formed; it returns the exit status.
using Work = std::function<int()>;
struct Command {
  CLI::App* app = nullptr;
  Work work;
};

void add_common(CLI::App& app, Common& common, bool json = true);

// One line on stderr: what, where, why, what to do next. Returns kFailed.
int fail(const tk::Error& error);
int fail(const std::string& what, const std::string& where, const std::string& why, const std::string& hint);
// Wrong usage found after parsing. Returns kUsage.
int usage(const std::string& text);
// Writes the JSON form where --json says, if it says so.
tk::Status write_json(const Common& common, const std::string& json);

// "NAME:D,D" at the last ':'. Without ':' the name is empty.
tk::Result<tk::NamedShape> parse_shape(const std::string& argument);
tk::Result<tk::ChannelValues> parse_channels(const std::string& option, const std::string& argument);
tk::Result<std::vector<tk::ChannelValues>> parse_channel_list(const std::string& option,
                                                              const std::vector<std::string>& arguments);
tk::Result<tk::DataLayout> parse_layout(const std::string& text);
std::string shape_text(const std::vector<int64_t>& shape);
std::string bytes_text(int64_t bytes);
// "internal 20.06 KiB (no plan is smaller), inputs and outputs 192 B".
std::string memory_text(const tk::ProgramReport& report);

// A table with aligned columns on stdout. Columns named in `right` are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> right = {});
  void add(std::vector<std::string> row);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};
std::string format(const char* pattern, double value);

// One a sub-command; each is defined in the file of its name.
Command add_build(CLI::App& app);
Command add_run(CLI::App& app);
Command add_compare(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_preflight(CLI::App& app);
Command add_targets(CLI::App& app);
Command add_version(CLI::App& app);

// Checks the sub-command's files, those of --json and --log with them, then applies --threads, --quiet, -v and --log.
// Called first by every sub-command's work.
tk::Status apply(const Common& common, Files files = {});

// Checks of arguments while they are parsed.
CLI::Validator not_empty();
CLI::Validator whole_number(int64_t least);

}  // namespace openrknn::cli

#define CLI_CONCAT_INNER(a, b) a##b
#define CLI_CONCAT(a, b) CLI_CONCAT_INNER(a, b)
// CLI_TRY(auto x, f()): x is the value of f(), or the sub-command ends with its error.
#define CLI_TRY(lhs, expr) CLI_TRY_IMPL(CLI_CONCAT(cli_result_, __LINE__), lhs, expr)
#define CLI_TRY_IMPL(tmp, lhs, expr)                        \
  auto tmp = (expr);                                        \
  if (!tmp.ok()) return ::openrknn::cli::fail(tmp.error()); \
  lhs = std::move(tmp).value()
#define CLI_CHECK_OK(expr)                                                                            \
  do {                                                                                                \
    if (auto cli_status = (expr); !cli_status.ok()) return ::openrknn::cli::fail(cli_status.error()); \
  } while (false)
