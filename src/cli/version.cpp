#include "cli/cli.hpp"

namespace openrknn::cli {

Command add_version(CLI::App& app) {
  auto* sub = app.add_subcommand("version", "Print the version");
  return {sub, [] {
            std::printf("openrknn %s\n", tk::version().c_str());
            return kDone;
          }};
}

}  // namespace openrknn::cli
