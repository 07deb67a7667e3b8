#include <filesystem>

#include "cli/cli.hpp"
#include "cli/feed.hpp"

namespace openrknn::cli {
namespace {

struct RunArguments {
  Common common;
  FeedArguments feed;
  std::string outdir;
  tk::RunOptions options;
  int64_t repeat = 1;
};

// The outputs' names are known when the model is loaded. A folder that is not there yet holds nothing to destroy.
tk::Status check_outputs(const RunArguments& a, const Loaded& loaded) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(a.outdir, ignored)) return {};
  Files files = files_of(a.feed);
  for (const std::string& path : tk::output_paths(a.outdir, loaded.outputs())) files.writes("--outdir", path);
  if (!a.common.json_on_stdout()) files.writes("--json", a.common.json);
  files.writes("--log", a.common.log_file);
  return check_files(files);
}

int work(const RunArguments& a) {
  CLI_CHECK_OK(apply(a.common, files_of(a.feed)));
  CLI_TRY(const tk::DataLayout layout, parse_layout(a.feed.layout));
  const bool program_options = a.options.raw_outputs || a.options.strict || !a.options.dump_dir.empty();
  if (program_options && !tk::is_program_file(a.feed.file)) {
    return fail("cannot run", a.feed.file, "--raw-output, --strict and --dump are for .rknn files",
                "leave them out, or build the model first");
  }
  CLI_TRY(Loaded loaded, load_and_feed(a.feed));
  CLI_CHECK_OK(check_outputs(a, loaded));
  std::vector<tk::Output> outputs;
  for (int64_t i = 0; i < a.repeat; ++i) {
    if (loaded.model) {
      CLI_TRY(outputs, loaded.model->run(loaded.inputs));
    } else {
      CLI_TRY(outputs, loaded.program->run(loaded.inputs, a.options));
    }
  }
  CLI_CHECK_OK(tk::write_outputs(a.outdir, outputs, loaded.outputs(), layout));
  CLI_CHECK_OK(write_json(a.common, tk::outputs_to_json(outputs)));
  if (a.common.json_on_stdout()) return kDone;
  std::printf("%s: %zu output(s) in %s\n", a.feed.file.c_str(), outputs.size(), a.outdir.c_str());
  for (const auto& output : outputs) {
    std::printf("  %s  %s %s\n", output.name.c_str(), std::string(tk::dtype_name(output.tensor.dtype)).c_str(),
                shape_text(output.tensor.shape).c_str());
  }
  return kDone;
}

}  // namespace

Command add_run(CLI::App& app) {
  auto* sub = app.add_subcommand("run", "Run a source model in fp32, or simulate a .rknn file");
  auto a = std::make_shared<RunArguments>();
  sub->add_option("FILE", a->feed.file, "Source model or .rknn")->required()->check(not_empty());
  sub->add_option("--input", a->feed.inputs, "[NAME=]FILE: .npy, .jpg, .png or .bmp")->allow_extra_args(false);
  sub->add_option("--outdir", a->outdir, "Folder for the outputs and outputs.json")->required()->check(not_empty());
  sub->add_option("--layout", a->feed.layout,
                  "Layout of 4-D .npy inputs and of the outputs written: model (default), nchw, nhwc");
  sub->add_option("--mean", a->feed.mean, "[NAME:]A,B,C is subtracted from the input")->allow_extra_args(false);
  sub->add_option("--std", a->feed.std_dev, "[NAME:]A,B,C divides it then")->allow_extra_args(false);
  sub->add_flag("--bgr", a->feed.bgr, "Swap red and blue of pictures");
  sub->add_flag("--raw-output", a->options.raw_outputs, "Outputs as the program's own numbers");
  sub->add_flag("--strict", a->options.strict, "Run in one poisoned arena at the program's own addresses");
  sub->add_option("--dump", a->options.dump_dir, "Write every tensor and constant to this folder")->check(not_empty());
  sub->add_option("--repeat", a->repeat, "Run so many times")->check(whole_number(1));
  add_model_options(*sub, a->feed.source);
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
