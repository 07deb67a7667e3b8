#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

int work(const Common& common) {
  CLI_CHECK_OK(apply(common));
  const std::vector<tk::TargetInfo> targets = tk::targets();
  CLI_CHECK_OK(write_json(common, tk::to_json(targets)));
  if (common.json_on_stdout()) return kDone;
  Table table({"name", "cores", "MHz", "int8 MAC/cycle/core", "CBUF", "dtypes"},
              {false, true, true, true, true, false});
  for (const auto& t : targets) {
    std::string dtypes;
    for (const auto& d : t.dtypes) dtypes += (dtypes.empty() ? "" : " ") + d;
    table.add({t.name, std::to_string(t.cores), format("%.0f", t.clock_mhz), std::to_string(t.int8_macs_per_cycle),
               bytes_text(t.cbuf_bytes), dtypes});
  }
  table.print();
  return kDone;
}

}  // namespace

Command add_targets(CLI::App& app) {
  auto* sub = app.add_subcommand("targets", "List the SoCs");
  auto common = std::make_shared<Common>();
  add_common(*sub, *common);
  return {sub, [common] { return work(*common); }};
}

}  // namespace openrknn::cli
