#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

int work(const Common& common) {
  CLI_CHECK_OK(apply(common));
  CLI_CHECK_OK(write_json(common, "{\"version\": \"" + tk::version() + "\"}\n"));
  if (!common.json_on_stdout()) std::printf("openrknn %s\n", tk::version().c_str());
  return kDone;
}

}  // namespace

Command add_version(CLI::App& app) {
  auto* sub = app.add_subcommand("version", "Print the version");
  auto common = std::make_shared<Common>();
  add_common(*sub, *common);
  return {sub, [common] { return work(*common); }};
}

}  // namespace openrknn::cli
