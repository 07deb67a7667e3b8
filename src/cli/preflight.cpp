#include "cli/source_model.hpp"

namespace openrknn::cli {
namespace {

struct PreflightArguments {
  Common common;
  ModelArguments source;
  std::string model, target, dtype;
  std::vector<std::string> inputs, outputs;
};

int work(const PreflightArguments& a) {
  Files files;
  files.reads("MODEL", a.model);
  note_files(a.source, files);
  CLI_CHECK_OK(apply(a.common, std::move(files)));
  tk::LoadOptions load;
  load.outputs = a.outputs;
  for (const std::string& argument : a.inputs) {
    CLI_TRY(tk::NamedShape shape, parse_shape(argument));
    load.inputs.push_back(std::move(shape));
  }
  CLI_CHECK_OK(apply_model_options(a.model, a.source, load));
  CLI_TRY(const tk::Model model, tk::Model::load(a.model, load));
  CLI_TRY(const tk::PreflightReport report, model.preflight(a.target, a.dtype));
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (!a.common.json_on_stdout()) {
    Table table({"node", "op", "engine", "MMAC", "bytes", "limit", "reason"},
                {false, false, false, true, true, false, false});
    for (const auto& n : report.nodes) {
      table.add({n.name, n.op, n.engine, format("%.3f", static_cast<double>(n.macs) * 1e-6), bytes_text(n.bytes),
                 n.limit, n.reason});
    }
    table.print();
    std::printf("%s\n", report.summary.c_str());
  }
  if (report.buildable) return kDone;
  std::string all;
  for (const auto& u : report.unsupported) all += (all.empty() ? "" : "; ") + u;
  return fail("the model cannot be built for " + report.target, a.model, all,
              "cut these nodes off with --output, or choose another target");
}

}  // namespace

Command add_preflight(CLI::App& app) {
  auto* sub = app.add_subcommand("preflight", "Show before a build which node runs where, and why");
  auto a = std::make_shared<PreflightArguments>();
  sub->add_option("MODEL", a->model, "Source model")->required()->check(not_empty());
  sub->add_option("--target", a->target, "SoC, see: openrknn targets")->required();
  sub->add_option("--dtype", a->dtype, "Number format (default: w8a8 where the target has it)");
  sub->add_option("--input", a->inputs, "NAME:D,D,... binds a shape, or cuts the model at an inner tensor")
      ->allow_extra_args(false);
  sub->add_option("--output", a->outputs, "Cut the model at this tensor")->allow_extra_args(false);
  add_model_options(*sub, a->source);
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
