#include <algorithm>

#include "cli/cli.hpp"
#include "cli/feed.hpp"

namespace openrknn::cli {
namespace {

struct BenchArguments {
  Common common;
  FeedArguments feed;
  int64_t repeat = 0;
  bool per_task = false;
};

int work(const BenchArguments& a) {
  CLI_CHECK_OK(apply(a.common, files_of(a.feed)));
  CLI_TRY(Loaded loaded, load_and_feed(a.feed));
  CLI_TRY(const tk::BenchReport report, loaded.model ? tk::bench(*loaded.model, loaded.inputs, a.repeat)
                                                     : tk::bench(*loaded.program, loaded.inputs, a.repeat));
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (a.common.json_on_stdout()) return kDone;
  if (a.per_task) {
    Table table({"task", "op", "min ms", "MMAC"}, {false, false, true, true});
    for (const auto& t : report.tasks)
      table.add({t.name, t.op, format("%.3f", t.min_ms), format("%.3f", static_cast<double>(t.macs) * 1e-6)});
    table.print();
  }
  std::string kernels;
  for (const auto& [kind, isa] : report.kernels) kernels += (kernels.empty() ? "" : ", ") + kind + " " + isa;
  std::printf(
      "%s%s%s: min %.3f ms, median %.3f ms over %lld run(s), the first %.3f ms; load %.3f ms, inputs %.3f ms, outputs "
      "%.3f ms; %d "
      "thread(s), %s (%s)\n",
      report.model.c_str(), report.target.empty() ? "" : " for ", report.target.c_str(), report.min_ms,
      report.median_ms, static_cast<long long>(report.repeat), report.first_ms, report.load_ms, report.input_ms,
      report.output_ms, report.threads, report.isa.c_str(), kernels.c_str());
  return kDone;
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto* sub = app.add_subcommand("bench", "Measure how long a run takes on this machine");
  auto a = std::make_shared<BenchArguments>();
  a->feed.seeded = true;
  sub->add_option("FILE", a->feed.file, "The .rknn, or a source model")->required()->check(not_empty());
  sub->add_option("--input", a->feed.inputs, "[NAME=]FILE (default: seeded random data)")->allow_extra_args(false);
  sub->add_option("--repeat", a->repeat, "Run so many times (default: at least one second)")->check(whole_number(1));
  sub->add_flag("--per-task", a->per_task, "Show every task");
  add_model_options(*sub, a->feed.source);
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
