// Every ONNX file of the shared models imports, or fails with one message that lists all of its nodes that cannot be
// imported.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "import/importer.hpp"
#include "ops/registry.hpp"

namespace openrknn::import {
namespace {

namespace fs = std::filesystem;

fs::path shared_models() {
  const char* root = std::getenv("OPENRKNN_SHARED");
  const fs::path beside = fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path() / "shared";
  return fs::path(root != nullptr ? root : beside.string()) / "models";
}

ImportOptions options_for(const std::string& name) {
  ImportOptions options;
  if (name.find("OCRv4_det") != std::string::npos) options.inputs = {{"x", {1, 3, 320, 320}}};
  if (name.find("OCRv4_rec") != std::string::npos) options.inputs = {{"x", {1, 3, 48, 320}}};
  if (name.find("v2.0_cls") != std::string::npos) options.inputs = {{"x", {1, 3, 48, 192}}};
  if (name.find("super_resolution") != std::string::npos) options.inputs = {{"input", {1, 1, 224, 224}}};
  if (name.find("silero") != std::string::npos) {
    options.inputs = {{"input", {1, 512}}, {"state", {2, 1, 128}}};
    options.input_values.emplace("sr", Tensor::scalar<int64_t>(16000));
  }
  return options;
}

// These hold recurrent layers (LSTM, GRU), which are not imported.
const std::set<std::string> kMayFail{"model_1.onnx", "gtcrn_simple.onnx", "silero_vad_16k_op15.onnx"};

TEST(RealModels, ImportOrNameEveryUnsupportedNode) {
  const fs::path root = shared_models();
  if (!fs::is_directory(root)) GTEST_SKIP() << "no shared models at " << root << " (set OPENRKNN_SHARED)";
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".onnx") files.insert(entry.path());
  }
  EXPECT_FALSE(files.empty());
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    const auto imported = import_model(file.string(), options_for(name));
    std::printf("%-44s %s\n", name.c_str(), imported.ok() ? "imported" : imported.error().message().c_str());
    if (!imported.ok()) {
      EXPECT_TRUE(kMayFail.contains(name)) << imported.error().message();
      continue;
    }
    EXPECT_GT(imported->graph.node_count(), 0U);
    const auto verified = ops::verify(imported->graph);
    EXPECT_TRUE(verified.ok()) << name << ": " << (verified.ok() ? "" : verified.error().message());
    for (const auto& warning : imported->warnings) std::printf("    %s\n", warning.c_str());
  }
}

}  // namespace
}  // namespace openrknn::import
