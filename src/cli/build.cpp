#include <filesystem>
#include <set>

#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/source_model.hpp"

namespace openrknn::cli {
namespace {

struct BuildArguments {
  Common common;
  std::string model, output, dataset, config_file;
  std::string target, dtype, algorithm, method, memory_plan, compute_order;
  ModelArguments source;
  std::vector<std::string> inputs, outputs, mean, std_dev, bgr, layer_dtype, disabled;
  std::string dump_after, dump_dir, stop_after;
  int64_t max_samples = 0, max_rewrites = -1, batch = 0;
  int opt_level = -1;
};

// "NAME=REST" split at the last '=' for dtypes, which have none.
tk::Status add_layer_dtypes(const std::vector<std::string>& arguments, tk::Config& config) {
  std::set<std::string> given;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size())
      return argument_error("--layer-dtype " + argument, "it is not NAME=DTYPE", "write NAME=DTYPE");
    const std::string name = argument.substr(0, equals);
    if (!given.insert(name).second)
      return argument_error("--layer-dtype " + argument, "\"" + name + "\" has a format already", "give each once");
    config.layer_dtype[name] = argument.substr(equals + 1);
  }
  return {};
}

// Options of the command line win over the file's.
tk::Status apply_options(const BuildArguments& a, BuildPlan& plan) {
  tk::Config& c = plan.config;
  const auto take = [](const std::string& given, std::string& value) {
    if (!given.empty()) value = given;
  };
  take(a.target, c.target);
  take(a.dtype, c.dtype);
  take(a.algorithm, c.algorithm);
  take(a.method, c.method);
  take(a.memory_plan, c.memory_plan);
  take(a.compute_order, c.compute_order);
  take(a.dump_after, c.dump_after);
  take(a.dump_dir, c.dump_dir);
  take(a.stop_after, c.stop_after);
  if (a.max_samples != 0) c.max_samples = a.max_samples;
  if (a.max_rewrites >= 0) c.max_rewrites = a.max_rewrites;
  if (a.batch != 0) c.batch = static_cast<int>(std::min<int64_t>(a.batch, 1 << 20));
  if (a.opt_level >= 0) c.opt_level = a.opt_level;
  if (!a.disabled.empty()) c.disabled_passes = a.disabled;
  if (!a.outputs.empty()) plan.load.outputs = a.outputs;
  for (const std::string& name : a.bgr) {
    if (name.empty()) {
      c.bgr_all = true;
    } else {
      c.bgr.push_back(name);
    }
  }
  if (!a.inputs.empty()) plan.load.inputs.clear();
  for (const std::string& argument : a.inputs) {
    auto shape = parse_shape(argument);
    if (!shape.ok()) return shape.error();
    for (const auto& other : plan.load.inputs) {
      if (other.name == shape->name)
        return argument_error("--input " + argument, "\"" + other.name + "\" has a shape already",
                              "give each input once");
    }
    plan.load.inputs.push_back(std::move(shape).value());
  }
  for (const auto& [option, given, values] :
       {std::tuple{"--mean", &a.mean, &c.mean}, std::tuple{"--std", &a.std_dev, &c.std_dev}}) {
    auto list = parse_channel_list(option, *given);
    if (!list.ok()) return list.error();
    if (!list->empty()) *values = std::move(list).value();
  }
  if (auto status = add_layer_dtypes(a.layer_dtype, c); !status.ok()) return status;
  return apply_model_options(plan.model, a.source, plan.load);
}

// A file that is or claims to be a .rknn: what is wrong with it, or that it needs no build.
int refuse_program(const std::string& path) {
  const auto program = tk::Program::load(path);
  if (!program.ok()) return fail(program.error());
  return fail("cannot build", path, "it is a .rknn already", "give the source model, or run it with: openrknn run");
}

Files files_of(const BuildArguments& a, const BuildPlan& plan) {
  Files files;
  files.reads("MODEL", plan.model);
  files.reads("--config", a.config_file);
  files.reads_list("--dataset", plan.dataset);
  note_files(a.source, files);
  files.writes("--out", a.output);
  return files;
}

void print_summary(const BuildPlan& plan, const std::string& output, const tk::ProgramReport& report) {
  int64_t npu = 0;
  int64_t macs = 0;
  int64_t npu_macs = 0;
  for (const auto& task : report.tasks) {
    macs += task.macs;
    npu += task.engine == "npu";
    npu_macs += task.engine == "npu" ? task.macs : 0;
  }
  std::error_code ignored;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(output, ignored));
  std::printf("%s: %s for %s\n", output.c_str(), report.dtype.c_str(), report.target.c_str());
  std::printf("  source    %s\n", plan.model.c_str());
  std::printf("  tasks     %zu, %lld on the NPU", report.tasks.size(), static_cast<long long>(npu));
  if (macs > 0)
    std::printf(" with %.2f %% of the multiply-adds",
                100.0 * static_cast<double>(npu_macs) / static_cast<double>(macs));
  std::printf("\n");
  std::printf("  file      %s, weights %s\n", bytes_text(ignored ? 0 : size).c_str(),
              bytes_text(report.weights).c_str());
  std::printf("  memory    %s\n", memory_text(report).c_str());
}

int work(const BuildArguments& a) {
  BuildPlan plan;
  if (!a.config_file.empty()) {
    CLI_TRY(plan, read_config_file(a.config_file));
  }
  if (plan.model.empty() && a.model.empty())
    return usage("MODEL is required, as an argument or as models.model_file_path of --config");
  if (plan.config.target.empty() && a.target.empty())
    return usage("--target is required (openrknn targets lists them)");
  if (!a.model.empty()) plan.model = a.model;
  if (!a.dataset.empty()) plan.dataset = a.dataset;
  CLI_CHECK_OK(apply(a.common, files_of(a, plan)));
  if (tk::is_program_file(plan.model)) return refuse_program(plan.model);
  CLI_CHECK_OK(apply_options(a, plan));
  CLI_TRY(tk::Model model, tk::Model::load(plan.model, plan.load));
  CLI_TRY(const tk::Program program, std::move(model).build(plan.config, plan.dataset));
  CLI_CHECK_OK(program.write(a.output));
  const tk::ProgramReport report = program.inspect();
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (!a.common.json_on_stdout()) print_summary(plan, a.output, report);
  return kDone;
}

}  // namespace

Command add_build(CLI::App& app) {
  auto* sub = app.add_subcommand("build", "Convert, quantize and compile a model to a .rknn file");
  auto a = std::make_shared<BuildArguments>();
  sub->add_option("MODEL", a->model, "Source model")->check(not_empty());
  sub->add_option("-o,--out", a->output, "The .rknn to write")->required()->check(not_empty());
  sub->add_option("--target", a->target, "SoC, see: openrknn targets");
  sub->add_option("--dtype", a->dtype, "Number format: w8a8 (default), fp16; later w8a16, w4a16, w16a16i_dfp");
  sub->add_option("--dataset", a->dataset, "Calibration list: one sample a line, one file an input")
      ->check(not_empty());
  sub->add_option("--max-samples", a->max_samples, "Use at most so many samples")->check(whole_number(1));
  sub->add_option("--algorithm", a->algorithm, "Range rule: normal; later mmse, kl_divergence, gdq");
  sub->add_option("--method", a->method, "Weight scales: channel (default), layer; later groupN");
  sub->add_option("--input", a->inputs, "NAME:D,D,... binds a shape, or cuts the model at an inner tensor")
      ->allow_extra_args(false);
  add_model_options(*sub, a->source);
  sub->add_option("--output", a->outputs, "Cut the model at this tensor")->allow_extra_args(false);
  sub->add_option("--mean", a->mean, "[NAME:]A,B,C is subtracted from the input")->allow_extra_args(false);
  sub->add_option("--std", a->std_dev, "[NAME:]A,B,C divides it then")->allow_extra_args(false);
  sub->add_option("--bgr", a->bgr, "Swap red and blue of calibration pictures, of all inputs or of NAME")
      ->expected(0, 1)
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--layer-dtype", a->layer_dtype,
                  "NAME=DTYPE: another format for the producer of one tensor, or for an input")
      ->allow_extra_args(false);
  sub->add_option("--batch", a->batch, "Multiply the batch (not there yet)")->check(whole_number(1));
  sub->add_option("--opt-level", a->opt_level, "0 (only what is needed) to 3 (default)")->check(CLI::Range(0, 3));
  sub->add_option("--memory-plan", a->memory_plan,
                  "Optimal (default), BestFit, GreedyBySize, GreedyByLifetime, SlowPeakGrowth");
  sub->add_option("--compute-order", a->compute_order, "WidthFirst (default), DepthFirst");
  sub->add_option("--config", a->config_file, "YAML of rknn_convert (docs/CONFIG.md); options win over it")
      ->check(not_empty());
  sub->add_option("--dump-after", a->dump_after, "Write the graph's text after this pass, or after all");
  sub->add_option("--dump-dir", a->dump_dir, "Folder of these texts (default: the current one)")->check(not_empty());
  sub->add_option("--stop-after", a->stop_after, "Run no pass after this one");
  sub->add_option("--max-rewrites", a->max_rewrites, "Stop rewriting after so many")->check(whole_number(0));
  sub->add_option("--disable", a->disabled, "Leave this pass out")->allow_extra_args(false);
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
