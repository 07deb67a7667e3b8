#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

// The parser asks for a sub-command and does not say that a word stood there which is none.
std::string no_command(const CLI::ParseError& error, const std::vector<Command>& commands, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return error.what();
  std::string known;
  for (const Command& command : commands) known += (known.empty() ? "" : ", ") + command.app->get_name();
  return "there is no sub-command \"" + std::string(argv[1]) + "\"; known: " + known;
}

int run(int argc, char** argv) {
  CLI::App app{"openrknn: converts, quantizes, compiles and simulates neural networks for Rockchip NPUs"};
  app.name("openrknn");
  app.require_subcommand(1);
  app.set_version_flag("--version", [] { return "openrknn " + tk::version(); });
  const std::vector<Command> commands{add_build(app),   add_run(app),       add_compare(app), add_bench(app),
                                      add_inspect(app), add_preflight(app), add_targets(app), add_version(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // --help and --version arrive here as well, with status 0.
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);
    for (const Command& command : commands) {
      if (command.app->parsed())
        return usage(std::string(e.what()) + " (openrknn " + command.app->get_name() + " --help)");
    }
    return usage(no_command(e, commands, argc, argv) + " (openrknn --help)");
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.work();
  }
  return usage("no sub-command given (openrknn --help)");
}

}  // namespace
}  // namespace openrknn::cli

int main(int argc, char** argv) {
  // A reader that went away is an error of writing, not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);
  // The interface does not throw; this is for memory that runs out in the frame itself.
  try {
    const int status = openrknn::cli::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return openrknn::cli::fail("cannot write the result", "stdout", "the device is full or closed",
                                 "give an output file");
    }
    return status;
  } catch (const std::exception& e) {
    return openrknn::cli::fail("cannot go on", "openrknn", e.what(),
                               "free memory, or report the command as a fault of openrknn");
  }
}
