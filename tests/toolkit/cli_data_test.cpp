// Data, types and arguments as a user meets them.
#include <limits>
#include <nlohmann/json.hpp>

#include "cli.hpp"
#include "onnx_bytes.hpp"

namespace openrknn::toolkit {
namespace {

using namespace onnx_bytes;

std::string second_digits_model() {
  return (std::filesystem::path(digits_model()).parent_path() / "vit_digits.onnx").string();
}

TEST_F(Cli, BlanksInsideNumbersAreRefused) {
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--mean", "10 20 30"}), {"--mean", "10 20 30"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--std", "1 0"}), {"--std", "1 0"});
  expect_failure(build(digits_model(), {"--dtype", "fp16", "--input", "1,1,8 8"}), {"--input", "8 8"});
  expect_no_program();
  EXPECT_EQ(build(digits_model(), {"--dtype", "fp16", "--input", "1, 1, 8, 8"}).status, 0) << "around them are fine";
}

TEST_F(Cli, GoldenRunKeepsTheModelsType) {
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), float_tensor({1, 4}, {-1, 0.5F, 1, 2})).ok());
  struct Case {
    int type;
    const char* listed;
    DType stored;
  };
  for (const Case& c : {Case{kFloat16, "float16", DType::kFloat16}, Case{kDouble, "float64", DType::kFloat64},
                        Case{kFloat, "float32", DType::kFloat32}}) {
    const std::string model =
        folder_.write("m.onnx", onnx_bytes::model("Relu", {{"x", c.type, {1, 4}}}, {"y", c.type, {1, 4}}));
    const Done done = openrknn({"run", model, "--input", folder_.file("x.npy"), "--outdir", folder_.file("out")});
    ASSERT_EQ(done.status, 0) << c.listed << done.err;
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_.file("out/outputs.json")))[0]["dtype"], c.listed);
    const auto tensor = read_npy(folder_.file("out/y.npy"));
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(tensor->dtype, c.stored) << c.listed;
    if (c.stored == DType::kFloat64) {
      EXPECT_EQ(tensor->as<double>()[1], 0.5);
    }
    if (c.stored == DType::kFloat16) {
      EXPECT_EQ(tensor->as<uint16_t>()[1], 0x3800) << "0.5";
    }
  }
}

TEST_F(Cli, CompareSaysWhenTheModelIsAnother) {
  const std::string list = write_list(folder_, 1);
  ASSERT_EQ(build(digits_model(), {"--dtype", "fp16"}).status, 0);
  Done done = openrknn({"compare", second_digits_model(), folder_.file("out.rknn"), "--dataset", list});
  EXPECT_NE(done.err.find("vit_digits.onnx is not the file"), std::string::npos) << done.err;
  done = openrknn({"compare", digits_model(), folder_.file("out.rknn"), "--dataset", list});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "");
  // The same network in another file: a field that says nothing is added (doc_string).
  const std::string other = folder_.write("other.onnx", read_file(digits_model()) + part(6, "again"));
  done = openrknn({"compare", other, folder_.file("out.rknn"), "--dataset", list});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.err.find("other.onnx is not the file"), std::string::npos) << done.err;
}

TEST_F(Cli, NonFiniteSamplesAreRefused) {
  write_list(folder_, 2);
  Tensor broken = digit(3);
  broken.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(write_npy(folder_.file("nan.npy"), broken).ok());
  const std::string list = folder_.write("nan.txt", "sample0.npy\n\nsample1.npy\nnan.npy\n");
  expect_failure(build(digits_model(), {"--dataset", list}), {"nan.txt line 4", "nan.npy", "element 5"});
  const std::string good = folder_.file("list.txt");
  expect_failure(build(digits_model(), {"--dataset", good, "--std", "1e-45"}),
                 {"list.txt line 1", "sample0.npy", "after mean and std"});
  expect_no_program();
  ASSERT_EQ(build(digits_model(), {"--dtype", "fp16"}).status, 0);
  expect_failure(openrknn({"compare", digits_model(), folder_.file("out.rknn"), "--dataset", list}),
                 {"nan.txt line 4", "nan.npy"});
}

TEST_F(Cli, WhatIsWrongWithAProgramIsSaid) {
  const std::string lfs = folder_.write("lfs.rknn", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  expect_failure(openrknn({"run", lfs, "--outdir", folder_.file("out")}), {"lfs.rknn", "LFS", "git lfs pull"});
  expect_failure(build(folder_.file("nothere.rknn")), {"nothere.rknn", "No such file"});
  expect_failure(build(folder_.write("empty.rknn", "")), {"empty.rknn", "the file is empty"});
  ASSERT_EQ(build(digits_model(), {"--dtype", "fp16"}).status, 0);
  std::filesystem::rename(folder_.file("out.rknn"), folder_.file("made.rknn"));
  expect_failure(build(folder_.file("made.rknn")), {"made.rknn", "it is a .rknn already"});
  expect_no_program();
}

TEST_F(Cli, VersionTakesTheCommonOptions) {
  const Done done = openrknn({"version", "--json", "-", "--threads", "1", "--quiet"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out)["version"], OPENRKNN_VERSION);
}

TEST_F(Cli, WrongUsageIsNamed) {
  const auto expect_usage = [](const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const Done done = openrknn(arguments);
    EXPECT_EQ(done.status, 2) << done.err;
    for (const auto& part : parts) EXPECT_NE(done.err.find(part), std::string::npos) << part << " not in " << done.err;
  };
  expect_usage({"wobble"}, {"\"wobble\"", "build", "inspect"});
  const std::vector<std::string> build{"build", digits_model(), "-o", folder_.file("out.rknn"), "--target", "rk3588"};
  for (const char* count : {"0", "-1", "1.5", "99999999999999999999", "many"}) {
    std::vector<std::string> arguments = build;
    arguments.insert(arguments.end(), {"--max-samples", count});
    expect_usage(arguments, {"--max-samples", count, "whole number from 1"});
  }
  expect_usage({"build", digits_model(), "-o", "", "--target", "rk3588"}, {"--out"});
  expect_usage({"inspect", digits_model(), "--json", ""}, {"--json"});
  expect_usage({"inspect", ""}, {"FILE"});
  expect_no_program();
}

TEST_F(Cli, TheMemoryBudgetHolds) {
  // 4 MiB each.
  const std::string model =
      folder_.write("m.onnx", onnx_bytes::model("Relu", {{"x", kFloat, {1024, 1024}}}, {"y", kFloat, {1024, 1024}}));
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), float_tensor({1024, 1024}, std::vector<float>(1 << 20))).ok());
  const auto run = [&](const char* mebibytes) {
    return openrknn({"run", model, "--input", folder_.file("x.npy"), "--outdir", folder_.file("out"), "--memory-budget",
                     mebibytes});
  };
  expect_failure(run("2"), {"m.onnx", "input 'x'", "--memory-budget"});
  expect_failure(run("6"), {"m.onnx", "node 'node'", "memory", "--memory-budget"});
  EXPECT_EQ(run("64").status, 0);
  EXPECT_EQ(run("0").status, 2);
}

TEST_F(Cli, ErrorsOfTheSimulatorNameTheFile) {
  const std::string model = folder_.write(
      "gather.onnx", onnx_bytes::model("Gather", {{"x", kFloat, {3, 2}}, {"i", kInt64, {1}}}, {"y", kFloat, {1, 2}}));
  ASSERT_EQ(build(model, {"--dtype", "fp16"}).status, 0);
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), float_tensor({3, 2}, std::vector<float>(6))).ok());
  Tensor index{DType::kInt64, {1}, std::vector<std::byte>(8)};
  *index.as<int64_t>() = 3;
  ASSERT_TRUE(write_npy(folder_.file("i.npy"), index).ok());
  expect_failure(openrknn({"run", folder_.file("out.rknn"), "--input", "x=" + folder_.file("x.npy"), "--input",
                           "i=" + folder_.file("i.npy"), "--outdir", folder_.file("out")}),
                 {"out.rknn: y", "index 3"});
}

TEST_F(Cli, ConfigErrorsNameTheDocument) {
  const std::string config = folder_.write("c.yml", "models:\n  wobble: 1\n");
  expect_failure(openrknn({"build", "--config", config, "-o", folder_.file("out.rknn"), "--target", "rk3588"}),
                 {"c.yml line 2", "wobble", "docs/CONFIG.md"});
}

}  // namespace
}  // namespace openrknn::toolkit
