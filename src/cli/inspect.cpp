#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

struct InspectArguments {
  Common common;
  std::string file;
};

void print_infos(const char* title, const std::vector<tk::TensorInfo>& infos) {
  for (const auto& i : infos)
    std::printf("%s  %s %s %s\n", title, i.name.c_str(), std::string(tk::dtype_name(i.dtype)).c_str(),
                shape_text(i.shape).c_str());
}

std::string joined(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (const auto& n : names) text += (text.empty() ? "" : separator) + n;
  return text;
}

int inspect_program(const InspectArguments& a) {
  CLI_TRY(const tk::Program program, tk::Program::load(a.file));
  const tk::ProgramReport report = program.inspect();
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (a.common.json_on_stdout()) return kDone;
  std::printf("%s: openrknn program, %s for %s\n", a.file.c_str(), report.dtype.c_str(), report.target.c_str());
  print_infos("input ", report.inputs);
  print_infos("output", report.outputs);
  Table table({"task", "op", "engine", "source", "tiles", "MMAC", "bytes", "reason"},
              {false, false, false, false, true, true, true, false});
  for (const auto& t : report.tasks) {
    table.add({t.name, t.op, t.engine, joined(t.source, "+"), std::to_string(t.tiles),
               format("%.3f", static_cast<double>(t.macs) * 1e-6), bytes_text(t.bytes), t.reason});
  }
  table.print();
  std::printf("memory  weights %s, %s\n", bytes_text(report.weights).c_str(), memory_text(report).c_str());
  return kDone;
}

// Open dimensions: 1 for the first (the batch), `extent` for others.
std::vector<tk::NamedShape> filled(const std::vector<tk::TensorInfo>& inputs, int64_t extent) {
  std::vector<tk::NamedShape> shapes;
  for (const auto& info : inputs) {
    tk::NamedShape named{info.name, info.shape};
    for (size_t i = 0; i < named.shape.size(); ++i) {
      if (named.shape[i] < 0) named.shape[i] = i == 0 ? 1 : extent;
    }
    if (named.shape != info.shape) shapes.push_back(std::move(named));
  }
  return shapes;
}

// A model with open dimensions is shown with the first usual extent that all its operators accept.
tk::Result<tk::Model> load_any(const std::string& file) {
  auto model = tk::Model::load(file);
  if (model.ok() || model.error().code == tk::ErrorCode::kNotFound || model.error().code == tk::ErrorCode::kIo) {
    return model;
  }
  const auto inputs = tk::model_inputs(file);
  if (!inputs.ok() || filled(*inputs, 1).empty()) return model.error();
  for (const int64_t extent : {1, 32, 48, 64, 224, 320}) {
    tk::LoadOptions load;
    load.inputs = filled(*inputs, extent);
    auto bound = tk::Model::load(file, load);
    if (!bound.ok()) continue;
    std::string shapes;
    for (const auto& s : load.inputs) shapes += " --input " + s.name + ":" + shape_text(s.shape);
    tk::log(tk::LogLevel::kWarning, "the model has open dimensions; it is shown with" + shapes);
    return bound;
  }
  return model.error();
}

// A model that cannot be imported still says which operators it has: that is what its reader needs most.
tk::Result<tk::ModelReport> report_any(const std::string& file) {
  const auto model = load_any(file);
  if (model.ok()) return model->inspect();
  auto report = tk::inspect_model_file(file);
  if (!report.ok()) return model.error();
  tk::log(tk::LogLevel::kWarning,
          "the model is shown as its file describes it, it cannot be built: " + model.error().message());
  return report;
}

int inspect_model(const InspectArguments& a) {
  CLI_TRY(const tk::ModelReport report, report_any(a.file));
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (a.common.json_on_stdout()) return kDone;
  std::printf("%s: %s, opset %lld\n", a.file.c_str(), report.format.c_str(), static_cast<long long>(report.opset));
  print_infos("input ", report.inputs);
  print_infos("output", report.outputs);
  for (const auto& [op, count] : report.nodes) std::printf("%6lld  %s\n", static_cast<long long>(count), op.c_str());
  std::printf("parameters %lld, multiply-adds %s\n", static_cast<long long>(report.parameters),
              report.macs < 0 ? "unknown" : std::to_string(report.macs).c_str());
  return kDone;
}

int work(const InspectArguments& a) {
  Files files;
  files.reads("FILE", a.file);
  CLI_CHECK_OK(apply(a.common, std::move(files)));
  return tk::is_program_file(a.file) ? inspect_program(a) : inspect_model(a);
}

}  // namespace

Command add_inspect(CLI::App& app) {
  auto* sub = app.add_subcommand("inspect", "Show what is in a .rknn file or a source model");
  auto a = std::make_shared<InspectArguments>();
  sub->add_option("FILE", a->file, "The .rknn, or a source model")->required()->check(not_empty());
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
