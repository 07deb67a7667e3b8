// Converts the digit networks for the RK3588 in float16 and int8, runs every test picture on the simulated NPU and says
// what was lost, where, and how much memory the program takes.
//
//   digits MODELS_FOLDER OUTPUT_FOLDER
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "openrknn/toolkit.hpp"

namespace tk = openrknn::toolkit;

namespace {

constexpr char kTarget[] = "rk3588";
constexpr int64_t kCompareSamples = 20;
constexpr size_t kWorstLayers = 5;

struct Pictures {
  std::vector<tk::Tensor> images;  // [1, 1, 8, 8] each
  std::vector<int64_t> labels;
};

int fail(const tk::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message().c_str());
  return 1;
}

// [N, ...] as N tensors [1, ...].
std::vector<tk::Tensor> split_batch(const tk::Tensor& batch) {
  std::vector<tk::Tensor> out;
  const auto count = static_cast<size_t>(batch.shape.empty() ? 0 : batch.shape[0]);
  const size_t bytes = count == 0 ? 0 : batch.data.size() / count;
  for (size_t i = 0; i < count; ++i) {
    tk::Tensor one{batch.dtype, batch.shape, {}};
    one.shape[0] = 1;
    const auto begin = batch.data.begin() + static_cast<std::ptrdiff_t>(i * bytes);
    one.data.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    out.push_back(std::move(one));
  }
  return out;
}

tk::Result<Pictures> load_pictures(const std::string& folder) {
  auto images = tk::read_npy(folder + "/test_images_f32.npy");
  if (!images) return images.error();
  auto labels = tk::read_npy(folder + "/test_labels.npy");
  if (!labels) return labels.error();
  Pictures pictures{split_batch(*images), {}};
  if (labels->dtype != tk::DType::kInt64 || labels->elements() != static_cast<int64_t>(pictures.images.size())) {
    return tk::Error{tk::ErrorCode::kFormat, "cannot use the labels", folder + "/test_labels.npy",
                     "one int64 a picture is needed", ""};
  }
  pictures.labels.assign(labels->as<int64_t>(), labels->as<int64_t>() + labels->elements());
  return pictures;
}

// One .npy a calibration picture and the list of them.
tk::Result<std::string> write_calibration_list(const std::string& models, const std::string& folder) {
  auto batch = tk::read_npy(models + "/calib_images_f32.npy");
  if (!batch) return batch.error();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  std::string list;
  size_t index = 0;
  for (const tk::Tensor& image : split_batch(*batch)) {
    const std::string name = std::to_string(index++) + ".npy";
    if (auto written = tk::write_npy(folder + "/" + name, image); !written) return written.error();
    list += name + "\n";
  }
  const std::string path = folder + "/dataset.txt";
  if (auto written = tk::write_text(path, list); !written) return written.error();
  return path;
}

size_t best_class(const tk::Tensor& logits) {
  const float* begin = logits.as<float>();
  return static_cast<size_t>(std::max_element(begin, begin + logits.elements()) - begin);
}

// The class of every picture. `run` is a Model or a Program.
template <typename Runner>
tk::Result<std::vector<size_t>> classify(Runner& runner, const Pictures& pictures) {
  std::vector<size_t> classes;
  for (const tk::Tensor& image : pictures.images) {
    tk::Tensors inputs;
    inputs[runner.inputs()[0].name] = image;
    auto outputs = runner.run(inputs);
    if (!outputs) return outputs.error();
    classes.push_back(best_class(outputs->at(0).tensor));
  }
  return classes;
}

// Accuracy, and where the format errs although float does not.
void print_accuracy(const char* name, const std::vector<size_t>& classes, const std::vector<size_t>& golden,
                    const Pictures& pictures, double seconds) {
  size_t right = 0;
  size_t new_errors = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto label = static_cast<size_t>(pictures.labels[i]);
    right += classes[i] == label ? 1 : 0;
    new_errors += classes[i] != label && golden[i] == label ? 1 : 0;
  }
  std::printf("  %-8s %4zu of %zu right (%.2f %%)", name, right, classes.size(),
              100.0 * static_cast<double>(right) / static_cast<double>(classes.size()));
  if (&classes != &golden) std::printf(", %zu wrong where float is right", new_errors);
  std::printf(", %.1f s\n", seconds);
}

void print_worst_layers(const tk::CompareReport& report) {
  std::vector<tk::LayerDifference> layers = report.layers;
  std::stable_sort(layers.begin(), layers.end(),
                   [](const auto& a, const auto& b) { return a.entire.cos < b.entire.cos; });
  std::printf("  worst layers, cosine against float over %lld pictures:\n", static_cast<long long>(report.samples));
  for (size_t i = 0; i < std::min(kWorstLayers, layers.size()); ++i) {
    const tk::LayerDifference& layer = layers[i];
    std::printf("    %.6f  %-16s %s\n", layer.entire.cos, layer.op.c_str(), layer.name.c_str());
  }
}

void print_memory(const tk::ProgramReport& report) {
  const auto on_cpu =
      std::count_if(report.tasks.begin(), report.tasks.end(), [](const auto& t) { return t.engine == "cpu"; });
  std::printf(
      "  memory   weights %lld, internal %lld (bound %lld), inputs and outputs %lld bytes; %zu tasks, %lld on the "
      "CPU\n",
      static_cast<long long>(report.weights), static_cast<long long>(report.internal),
      static_cast<long long>(report.lower_bound), static_cast<long long>(report.io), report.tasks.size(),
      static_cast<long long>(on_cpu));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Network {
  std::string name;
  const tk::Model* model;
  const Pictures* pictures;
  std::vector<size_t> golden;
  std::string dataset;
  std::string folder;
};

tk::Status run_format(const Network& network, const std::string& dtype, const char* title) {
  tk::Config config;
  config.target = kTarget;
  config.dtype = dtype;
  auto program = network.model->build(config, dtype == "fp16" ? "" : network.dataset);
  if (!program) return program.error();
  const std::string path = network.folder + "/" + network.name + "_" + dtype + ".rknn";
  if (auto written = program->write(path); !written) return written.error();
  // From here on the file is what runs, as on a board.
  auto loaded = tk::Program::load(path);
  if (!loaded) return loaded.error();
  const auto start = std::chrono::steady_clock::now();
  auto classes = classify(*loaded, *network.pictures);
  if (!classes) return classes.error();
  print_accuracy(title, *classes, network.golden, *network.pictures, seconds_since(start));
  auto report = tk::compare(*network.model, *loaded, network.dataset, kCompareSamples);
  if (!report) return report.error();
  print_worst_layers(*report);
  print_memory(loaded->inspect());
  std::printf("  file     %s (%lld bytes)\n", path.c_str(), static_cast<long long>(std::filesystem::file_size(path)));
  return {};
}

// When a network cannot be built in one format, that is reported and the other format goes on.
int run_network(const std::string& name, const std::string& models, const std::string& folder, const Pictures& pictures,
                const std::string& dataset) {
  std::printf("\n%s for %s\n", name.c_str(), kTarget);
  tk::LoadOptions options;
  options.inputs = {{"", {1, 1, 8, 8}}};
  auto model = tk::Model::load(models + "/" + name + ".onnx", options);
  if (!model) return fail(model.error());
  const auto start = std::chrono::steady_clock::now();
  auto golden = classify(*model, pictures);
  if (!golden) return fail(golden.error());
  print_accuracy("float", *golden, *golden, pictures, seconds_since(start));
  const Network network{name, &*model, &pictures, *golden, dataset, folder};
  int status = 0;
  for (const auto& [dtype, title] : {std::pair{"fp16", "float16"}, std::pair{"w8a8", "int8"}}) {
    if (auto done = run_format(network, dtype, title); !done) {
      std::printf("  %-8s not built: %s\n", title, done.error().message().c_str());
      status = 1;
    }
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: digits MODELS_FOLDER OUTPUT_FOLDER\n");
    return 2;
  }
  const std::string models = argv[1];
  const std::string folder = argv[2];
  auto pictures = load_pictures(models);
  if (!pictures) return fail(pictures.error());
  auto dataset = write_calibration_list(models, folder + "/calibration");
  if (!dataset) return fail(dataset.error());
  const int status = run_network("convnet_digits", models, folder, *pictures, *dataset);
  // A transformer: what is not supported yet is said, and is no failure of this example.
  run_network("vit_digits", models, folder, *pictures, *dataset);
  std::printf("\nLook further:\n");
  std::printf("  build/release/bin/openrknn inspect %s/convnet_digits_w8a8.rknn\n", folder.c_str());
  std::printf("  build/release/bin/openrknn compare %s/convnet_digits.onnx %s/convnet_digits_w8a8.rknn --dataset %s\n",
              models.c_str(), folder.c_str(), dataset->c_str());
  return status;
}
