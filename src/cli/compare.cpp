#include <algorithm>
#include <cmath>

#include "cli/source_model.hpp"

namespace openrknn::cli {
namespace {

struct CompareArguments {
  Common common;
  ModelArguments source;
  std::string model, program, dataset;
  int64_t max_samples = std::numeric_limits<int64_t>::max();
  bool bgr = false;
};

constexpr size_t kWorstLayers = 5;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& n : names) text += (text.empty() ? "" : "+") + n;
  return text;
}

void print_layers(const tk::CompareReport& report) {
  Table table({"layer", "op", "dtype", "entire cos", "euc", "single cos", "euc"},
              {false, false, false, true, true, true, true});
  for (const auto& l : report.layers) {
    table.add({l.name, l.op, l.dtype, format("%.5f", l.entire.cos), format("%.5g", l.entire.euc),
               l.has_single ? format("%.5f", l.single.cos) : "-", l.has_single ? format("%.5g", l.single.euc) : "-"});
  }
  table.print();
}

// Layers whose cosine is no number come first.
double rank(const tk::LayerDifference* layer) { return std::isnan(layer->single.cos) ? -2.0 : layer->single.cos; }

// The layers that lose most by themselves: where another number format helps.
void print_worst(const tk::CompareReport& report) {
  std::vector<const tk::LayerDifference*> layers;
  for (const auto& l : report.layers) {
    if (l.has_single) layers.push_back(&l);
  }
  std::stable_sort(layers.begin(), layers.end(), [](const auto* a, const auto* b) { return rank(a) < rank(b); });
  layers.resize(std::min(layers.size(), kWorstLayers));
  if (layers.empty()) return;
  std::printf("\nworst layers by themselves (put them in fp16 with --layer-dtype NAME=fp16):\n");
  for (const auto* l : layers) {
    std::printf("  %.5f  %s (%s of %s)\n", l->single.cos, l->name.c_str(), l->op.c_str(), joined(l->source).c_str());
  }
}

void print(const tk::CompareReport& report) {
  print_layers(report);
  print_worst(report);
  std::printf("\noutputs over %lld sample(s):\n", static_cast<long long>(report.samples));
  for (const auto& o : report.outputs) {
    std::printf("  %s: cosine %.6f (worst %.6f), euclidean distance %.5g (worst %.5g), largest difference %.5g\n",
                o.name.c_str(), o.mean.cos, o.worst.cos, o.mean.euc, o.worst.euc, o.max_abs);
  }
}

int work(const CompareArguments& a) {
  Files files;
  files.reads("MODEL", a.model);
  files.reads("FILE", a.program);
  files.reads_list("--dataset", a.dataset);
  note_files(a.source, files);
  CLI_CHECK_OK(apply(a.common, std::move(files)));
  CLI_TRY(tk::Program program, tk::Program::load(a.program));
  // Open dimensions of the model are those that the program was built with.
  CLI_TRY(const auto signature, tk::model_inputs(a.model));
  tk::LoadOptions load;
  for (const auto& info : program.inputs()) {
    const auto it =
        std::find_if(signature.begin(), signature.end(), [&](const auto& s) { return s.name == info.name; });
    if (it == signature.end() || it->shape != info.shape) load.inputs.push_back({info.name, info.shape});
  }
  CLI_CHECK_OK(apply_model_options(a.model, a.source, load));
  CLI_TRY(const tk::Model full, tk::Model::load(a.model, load));
  for (const auto& output : program.outputs()) load.outputs.push_back(output.name);
  const bool cut = full.outputs().size() != load.outputs.size() ||
                   !std::equal(full.outputs().begin(), full.outputs().end(), load.outputs.begin(),
                               [](const auto& o, const auto& n) { return o.name == n; });
  std::optional<tk::Model> part;
  if (cut) {
    CLI_TRY(part, tk::Model::load(a.model, load));
  }
  CLI_TRY(const tk::CompareReport report, tk::compare(cut ? *part : full, program, a.dataset, a.max_samples, a.bgr));
  CLI_CHECK_OK(write_json(a.common, tk::to_json(report)));
  if (!a.common.json_on_stdout()) print(report);
  return kDone;
}

}  // namespace

Command add_compare(CLI::App& app) {
  auto* sub = app.add_subcommand("compare", "Compare the simulated program with the source model, layer by layer");
  auto a = std::make_shared<CompareArguments>();
  sub->add_option("MODEL", a->model, "Source model")->required()->check(not_empty());
  sub->add_option("FILE", a->program, "The .rknn built from it")->required()->check(not_empty());
  sub->add_option("--dataset", a->dataset, "List of samples, as for build")->required()->check(not_empty());
  sub->add_option("--max-samples", a->max_samples, "Use at most so many samples")->check(whole_number(1));
  sub->add_flag("--bgr", a->bgr, "Swap red and blue of pictures");
  add_model_options(*sub, a->source);
  add_common(*sub, a->common);
  return {sub, [a] { return work(*a); }};
}

}  // namespace openrknn::cli
