// The program itself, run as a user runs it: bad input ends in one clear error, the right exit status, and no partial
// file.
#include "cli.hpp"

#include <nlohmann/json.hpp>

namespace openrknn::toolkit {
namespace {

TEST_F(Cli, VersionAndHelp) {
  const Done version = openrknn({"version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "openrknn " OPENRKNN_VERSION "\n");
  EXPECT_EQ(openrknn({"--help"}).status, 0);
  for (const char* command : {"build", "run", "compare", "bench", "inspect", "preflight", "targets", "version"}) {
    EXPECT_EQ(openrknn({command, "--help"}).status, 0) << command;
  }
}

TEST_F(Cli, WrongUsageEndsWithTwo) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"no-such-command"},
      {"build"},
      {"build", "m.onnx", "-o", "x.rknn", "--no-such-option"},
      {"build", "m.onnx", "-o", "x.rknn"},
      {"build", "m.onnx", "-o", "x.rknn", "--target", "rk3588", "--opt-level", "7"},
      {"build", "m.onnx", "-o", "x.rknn", "--target", "rk3588", "--max-samples", "0"},
      {"run", "m.onnx"},
      {"compare", "m.onnx"},
      {"preflight", "m.onnx"},
      {"inspect"},
      {"bench"}};
  for (const auto& arguments : wrong) {
    const Done done = openrknn(arguments);
    std::string shown;
    for (const auto& a : arguments) shown += a + " ";
    EXPECT_EQ(done.status, 2) << shown << done.err;
    EXPECT_EQ(done.out, "") << shown;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << shown << done.err;
  }
}

TEST_F(Cli, UnreadableModels) {
  expect_failure(build(folder_.file("none.onnx")), {"none.onnx"});
  expect_failure(build(folder_.path()), {folder_.path(), "folder"});
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 123\n";
  expect_failure(build(folder_.write("lfs.onnx", pointer)), {"lfs.onnx", "LFS"});
  expect_failure(build(folder_.write("magic.onnx", std::string(300, '\x7f'))), {"magic.onnx"});
  expect_failure(build(folder_.write("empty.onnx", "")), {"empty.onnx"});
  expect_failure(build(folder_.write("cut.onnx", read_file(digits_model()).substr(0, 1000))), {"cut.onnx"});
  expect_no_program();
}

TEST_F(Cli, UnreadablePrograms) {
  const std::vector<std::string> files{
      folder_.write("magic.rknn", std::string(300, 'x')), folder_.write("empty.rknn", ""),
      folder_.write("vendor.rknn", std::string("RKNN") + std::string(300, '\x01')),
      folder_.write("lfs.rknn", "version https://git-lfs.github.com/spec/v1\n"), folder_.file("none.rknn")};
  for (const auto& file : files) {
    const std::string name = std::filesystem::path(file).filename().string();
    expect_failure(openrknn({"inspect", file}), {name});
    expect_failure(openrknn({"run", file, "--outdir", folder_.file("out")}), {name});
    expect_failure(openrknn({"bench", file}), {name});
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
}

TEST_F(Cli, UnknownTargetListsTheKnown) {
  expect_failure(
      openrknn({"build", digits_model(), "-o", folder_.file("out.rknn"), "--target", "rk9999", "--dtype", "fp16"}),
      {"rk9999", "rk3588", "rv1106"});
  expect_failure(openrknn({"preflight", digits_model(), "--target", "rk9999"}), {"rk9999", "rk3588"});
  expect_no_program();
}

TEST_F(Cli, LaterOptionsSaySo) {
  const std::vector<std::vector<std::string>> later{{"--dtype", "w8a16"},
                                                    {"--dtype", "w4a16"},
                                                    {"--dtype", "w16a16i_dfp"},
                                                    {"--algorithm", "mmse"},
                                                    {"--algorithm", "kl_divergence"},
                                                    {"--algorithm", "gdq"},
                                                    {"--method", "group32"},
                                                    {"--batch", "4"},
                                                    {"--layer-dtype", "x=w8a16"}};
  for (const auto& options : later) expect_failure(build(digits_model(), options), {"not there yet", options[0]});
  expect_failure(build(digits_model(), {"--dtype", "int3"}), {"int3", "w8a8", "fp16"});
  expect_failure(openrknn({"build", digits_model(), "-o", folder_.file("out.rknn"), "--target", "rk2118"}),
                 {"w8a8", "RK2118", "fp16"});
  expect_failure(build(digits_model(), {"--memory-plan", "Magic"}), {"Magic", "BestFit"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--disable", "no_such_pass"}), {"no_such_pass"});
  expect_no_program();
}

TEST_F(Cli, CalibrationLists) {
  expect_failure(build(digits_model()), {"--dataset"});
  expect_failure(build(digits_model(), {"--dataset", folder_.file("none.txt")}), {"none.txt"});
  expect_failure(build(digits_model(), {"--dataset", folder_.write("empty.txt", "\n# nothing\n")}), {"empty.txt"});
  const std::string list = write_list(folder_, 2);
  const std::string gaps = folder_.write("gaps.txt", "sample0.npy\ngone.npy\nsample1.npy\nlost.npy\n");
  expect_failure(build(digits_model(), {"--dataset", gaps}), {"gaps.txt", "gone.npy", "lost.npy", "2", "4"});
  const std::string wide = folder_.write("wide.txt", "sample0.npy sample1.npy\n");
  expect_failure(build(digits_model(), {"--dataset", wide}), {"wide.txt", "1"});
  ASSERT_TRUE(write_npy(folder_.file("wrong.npy"), float_tensor({1, 1, 4, 4}, std::vector<float>(16))).ok());
  expect_failure(build(digits_model(), {"--dataset", folder_.write("wrong.txt", "sample0.npy\nwrong.npy\n")}),
                 {"wrong.npy", "line 2", "[1, 1, 4, 4]", "[1, 1, 8, 8]"});
  const std::string broken = folder_.write("broken.jpg", "this is no picture");
  expect_failure(build(digits_model(), {"--dataset", folder_.write("broken.txt", "broken.jpg\n")}),
                 {"broken.jpg", "line 1"});
  expect_no_program();
}

TEST_F(Cli, ArgumentsOfBuild) {
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--output", "no_such_output"}), {"no_such_output"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--input", "x:1,zwei"}), {"zwei"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--input", "x:1,0"}), {"x:1,0"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--mean", "1,b"}), {"--mean", "b"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--mean", "1,2,3"}), {"--mean", "1,2,3", "1 channel"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--std", "0"}), {"--std", "0"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--mean", "no_input:1"}), {"no_input"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--bgr", "no_input"}), {"no_input"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--layer-dtype", "no_tensor=fp16"}), {"no_tensor"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--layer-dtype", "plain"}), {"NAME=DTYPE"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--input-value", "no_input=x.npy"}), {"no_input"});
  expect_failure(openrknn({"build", digits_model(), "-o", folder_.file("no/such/folder/x.rknn"), "--target", "rk3588",
                           "--dtype", "fp16"}),
                 {"no/such/folder"});
  expect_no_program();
}

TEST_F(Cli, InputsOfRun) {
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", digits_model(), "--outdir", folder_.file("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return openrknn(arguments);
  };
  expect_failure(run({}), {"--input"});
  expect_failure(run({"--input", folder_.file("none.npy")}), {"none.npy"});
  expect_failure(run({"--input", "no_input=" + folder_.file("none.npy")}), {"no_input"});
  ASSERT_TRUE(write_npy(folder_.file("good.npy"), digit(1)).ok());
  expect_failure(run({"--input", folder_.file("good.npy"), "--input", folder_.file("good.npy")}),
                 {"more files than inputs"});
  ASSERT_TRUE(write_npy(folder_.file("shape.npy"), float_tensor({1, 8, 8, 1}, std::vector<float>(64))).ok());
  expect_failure(run({"--input", folder_.file("shape.npy")}), {"shape.npy", "[1, 8, 8, 1]", "[1, 1, 8, 8]"});
  Tensor text = digit(1);
  text.dtype = DType::kInt32;
  std::vector<int32_t> large(64, (1 << 24) + 1);  // no float32 has this value
  std::memcpy(text.data.data(), large.data(), text.data.size());
  ASSERT_TRUE(write_npy(folder_.file("loss.npy"), text).ok());
  expect_failure(run({"--input", folder_.file("loss.npy")}), {"loss.npy", "int32", "float32"});
  expect_failure(run({"--input", folder_.write("broken.npy", "\x93NUMPY\x01")}), {"broken.npy"});
  expect_failure(run({"--input", folder_.write("broken.png", "\x89PNG\r\n\x1a\n")}), {"broken.png"});
  expect_failure(run({"--input", folder_.file("good.npy"), "--raw-output"}), {"--raw-output"});
  expect_failure(run({"--input", folder_.file("good.npy"), "--layout", "nwhc"}), {"nwhc"});
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out"))) << "a failed run leaves nothing";
}

TEST_F(Cli, GoldenRunWritesOutputs) {
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), digit(1)).ok());
  const Done done = openrknn(
      {"run", digits_model(), "--input", folder_.file("x.npy"), "--outdir", folder_.file("out"), "--json", "-"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(read_file(folder_.file("out/outputs.json")));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["dtype"], "float32");
  const auto tensor = read_npy(folder_.file("out/" + json[0]["file"].get<std::string>()));
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(nlohmann::json(tensor->shape), json[0]["shape"]);
  EXPECT_EQ(nlohmann::json::parse(done.out), json) << "--json - gives the same list and nothing else";
}

TEST_F(Cli, WholeChain) {
  const std::string list = write_list(folder_, 4);
  for (const std::string dtype : {"fp16", "w8a8"}) {
    const std::string program = folder_.file(dtype + ".rknn");
    Done done =
        openrknn({"build", digits_model(), "-o", program, "--target", "RK3588", "--dtype", dtype, "--dataset", list});
    ASSERT_EQ(done.status, 0) << done.err;
    done = openrknn({"inspect", program, "--json", "-"});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    EXPECT_EQ(json["target"], "rk3588");
    EXPECT_EQ(json["dtype"], dtype);
    EXPECT_GE(json["memory"]["internal"], json["memory"]["lower_bound"]);
    std::string bytes;
    for (const std::string mode : {"", "--strict"}) {
      std::vector<std::string> run{
          "run", program, "--input", folder_.file("sample1.npy"), "--outdir", folder_.file("out" + mode)};
      if (!mode.empty()) run.push_back(mode);
      done = openrknn(run);
      ASSERT_EQ(done.status, 0) << done.err;
      const auto outputs = nlohmann::json::parse(read_file(folder_.file("out" + mode + "/outputs.json")));
      const std::string result = read_file(folder_.file("out" + mode + "/" + outputs[0]["file"].get<std::string>()));
      if (!bytes.empty()) {
        EXPECT_EQ(result, bytes) << "strict mode gives the same bytes";
      }
      bytes = result;
    }
    done = openrknn({"compare", digits_model(), program, "--dataset", list, "--json", "-"});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto report = nlohmann::json::parse(done.out);
    EXPECT_EQ(report["samples"], 4);
    EXPECT_GT(report["outputs"][0]["cos"].get<double>(), dtype == "fp16" ? 0.99999 : 0.99);
    EXPECT_FALSE(report["layers"].empty());
    for (const auto& layer : report["layers"]) EXPECT_TRUE(layer.contains("single")) << layer;
  }
}

TEST_F(Cli, ConfigFile) {
  write_list(folder_, 3);
  const std::string yaml = "models:\n  name: digits\n  platform: onnx\n  model_file_path: " + digits_model() +
                           "\n  quantize: true\n  dataset: list.txt\n  configs:\n    quantized_dtype: "
                           "asymmetric_quantized-8\n    mean_values: [0]\n    std_values: [[1]]\n"
                           "    optimization_level: 3\n";
  const std::string config = folder_.write("cfg.yml", yaml);
  const Done done = openrknn({"build", "--config", config, "-o", folder_.file("out.rknn"), "--target", "rk3588",
                              "--json", folder_.file("report.json")});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(folder_.file("report.json")))["dtype"], "w8a8");
  const auto bad = [&](const std::string& text) {
    return openrknn(
        {"build", "--config", folder_.write("bad.yml", text), "-o", folder_.file("no.rknn"), "--target", "rk3588"});
  };
  expect_failure(bad("models:\n  no_such_key: 1\n"), {"bad.yml", "line 2", "no_such_key"});
  expect_failure(bad("models: [\n"), {"bad.yml", "line"});
  expect_failure(bad("other: 1\n"), {"bad.yml", "models"});
  expect_failure(bad("models:\n  quantize: maybe\n"), {"bad.yml", "quantize"});
  EXPECT_FALSE(std::filesystem::exists(folder_.file("no.rknn")));
}

}  // namespace
}  // namespace openrknn::toolkit
