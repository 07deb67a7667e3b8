// On the networks of the shared models no rewrite has to be rolled back, and a second run changes nothing.
#include <cstdlib>
#include <filesystem>
#include <set>

#include "import/importer.hpp"
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

namespace fs = std::filesystem;

fs::path shared_models() {
  const char* root = std::getenv("OPENRKNN_SHARED");
  const fs::path beside = fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path() / "shared";
  return fs::path(root != nullptr ? root : beside.string()) / "models";
}

import::ImportOptions options_for(const std::string& name){import::ImportOptions options;
if (name.find("OCRv4_det") != std::string::npos) options.inputs = {{"x", {1, 3, 320, 320}}};
if (name.find("OCRv4_rec") != std::string::npos) options.inputs = {{"x", {1, 3, 48, 320}}};
if (name.find("v2.0_cls") != std::string::npos) options.inputs = {{"x", {1, 3, 48, 192}}};
if (name.find("super_resolution") != std::string::npos) options.inputs = {{"input", {1, 1, 224, 224}}};
return options;
}  // namespace

TEST(RealModels, NothingIsRolledBack) {
  const fs::path root = shared_models();
  if (!fs::is_directory(root)) GTEST_SKIP() << "no shared models at " << root << " (set OPENRKNN_SHARED)";
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    // The light models hold no weights.
    const bool light = entry.path().string().find("onnx-light") != std::string::npos;
    if (entry.path().extension() == ".onnx" && !light) files.insert(entry.path());
  }
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    auto imported = import::import_model(file.string(), options_for(file.filename().string()));
    if (!imported.ok()) continue;  // recurrent layers; the importer's own test lists them
    const auto report = optimize(imported->graph, {});
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_TRUE(report->rolled_back.empty()) << report->rolled_back[0];
    EXPECT_GT(report->rewrites, 0);
    OptimizeOptions quick;
    quick.check_golden = false;
    const auto again = optimize(imported->graph, quick);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->rewrites, 0) << again->log[0].rule << ": " << again->log[0].what;
  }
}

}  // namespace openrknn::opt::testing
}  // namespace openrknn::opt::testing
