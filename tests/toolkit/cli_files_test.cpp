// Files that the program reads and writes: nothing that is there is destroyed, and nothing is done in vain.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cli.hpp"
#include "onnx_bytes.hpp"

namespace openrknn::toolkit {
namespace {

namespace fs = std::filesystem;

class CliFiles : public Cli {
 protected:
  // A build in fp16 that needs no calibration.
  Done build_to(const std::string& model, const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"build", model, "-o", output, "--target", "rk3588", "--dtype", "fp16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return openrknn(arguments, "timeout 60");
  }
};

TEST_F(CliFiles, OutputsDestroyNoInput) {
  const std::string bytes = read_file(digits_model());
  const std::string model = folder_.write("m.onnx", bytes);
  fs::create_symlink(model, folder_.file("link.onnx"));
  fs::create_hard_link(model, folder_.file("hard.onnx"));
  for (const char* name : {"m.onnx", "./m.onnx", "link.onnx", "hard.onnx"})
    expect_failure(build_to(model, folder_.file(name)), {"--out", name, "MODEL"});
  expect_failure(build_to(model, folder_.file("out.rknn"), {"--json", model}), {"--json", "MODEL"});
  expect_failure(build_to(model, folder_.file("out.rknn"), {"--log", model}), {"--log", "MODEL"});
  expect_failure(openrknn({"inspect", model, "--json", model}), {"--json", "FILE"});
  expect_failure(openrknn({"preflight", model, "--target", "rk3588", "--json", model}), {"--json", "MODEL"});
  EXPECT_EQ(read_file(model), bytes);
  expect_no_program();
}

TEST_F(CliFiles, OutputsDestroyNoCalibrationData) {
  const std::string list = write_list(folder_, 2);
  const std::string text = read_file(list);
  const std::string sample = read_file(folder_.file("sample1.npy"));
  expect_failure(build_to(digits_model(), list, {"--dataset", list}), {"--out", "--dataset"});
  expect_failure(build_to(digits_model(), folder_.file("sample1.npy"), {"--dataset", list}), {"--out", "sample1.npy"});
  EXPECT_EQ(read_file(list), text);
  EXPECT_EQ(read_file(folder_.file("sample1.npy")), sample);
}

TEST_F(CliFiles, OutputsDestroyNoOtherOutput) {
  const std::string out = folder_.file("out.rknn");
  expect_failure(build_to(digits_model(), out, {"--json", out}), {"--json", "--out"});
  expect_failure(build_to(digits_model(), out, {"--json", folder_.file("j"), "--log", folder_.file("./j")}),
                 {"--log", "--json"});
  expect_no_program();
}

TEST_F(CliFiles, RunDestroysNoInput) {
  fs::create_directories(folder_.file("out"));
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), digit(1)).ok());
  Done done = openrknn({"run", digits_model(), "--input", folder_.file("x.npy"), "--outdir", folder_.file("out")});
  ASSERT_EQ(done.status, 0) << done.err;
  const std::string name = nlohmann::json::parse(read_file(folder_.file("out/outputs.json")))[0]["file"];
  fs::copy_file(folder_.file("x.npy"), folder_.file("out/" + name), fs::copy_options::overwrite_existing);
  done = openrknn({"run", digits_model(), "--input", folder_.file("out/" + name), "--outdir", folder_.file("out")});
  expect_failure(done, {"--outdir", name, "--input"});
  EXPECT_EQ(read_file(folder_.file("out/" + name)), read_file(folder_.file("x.npy")));
}

TEST_F(CliFiles, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  expect_failure(build_to(digits_model(), folder_.file("pipe")), {"pipe", "regular file"});
  expect_failure(build_to(digits_model(), folder_.file("out.rknn"), {"--json", folder_.file("pipe")}),
                 {"--json", "pipe", "regular file"});
  EXPECT_TRUE(fs::is_fifo(folder_.file("pipe")));
  expect_failure(build_to(digits_model(), "/dev/null"), {"/dev/null", "regular file"});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  expect_failure(build_to(digits_model(), folder_.path()), {"folder"});
  fs::create_symlink(folder_.file("nothing"), folder_.file("dangling"));
  expect_failure(build_to(digits_model(), folder_.file("dangling")), {"dangling", "symbolic link"});
  EXPECT_FALSE(write_text(folder_.file("pipe"), "x").ok()) << "the library refuses by itself";
  expect_no_program();
}

TEST_F(CliFiles, SymbolicLinkIsWrittenThrough) {
  const std::string real = folder_.write("real.rknn", "old");
  fs::create_symlink(real, folder_.file("link.rknn"));
  const Done done = build_to(digits_model(), folder_.file("link.rknn"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(fs::is_symlink(folder_.file("link.rknn")));
  EXPECT_TRUE(Program::load(real).ok());
}

TEST_F(CliFiles, MissingFoldersAreFoundFirst) {
  const std::string out = folder_.file("out.rknn");
  expect_failure(build_to(digits_model(), out, {"--json", folder_.file("missing/j.json")}), {"--json", "missing"});
  expect_failure(build_to(digits_model(), out, {"--log", folder_.file("missing/log")}), {"--log", "missing"});
  EXPECT_FALSE(fs::exists(folder_.file("missing")));
  const std::string file = folder_.write("file", "");
  expect_failure(build_to(digits_model(), out, {"--dump-after", "all", "--dump-dir", file}), {file});
  expect_no_program();
}

TEST_F(CliFiles, PipesDoNotHang) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe.onnx").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(folder_.file("pipe.rknn").c_str(), 0600), 0);
  for (const char* name : {"pipe.onnx", "pipe.rknn"}) {
    expect_failure(openrknn({"inspect", folder_.file(name)}, "timeout 20"), {name, "regular file"});
    expect_failure(openrknn({"bench", folder_.file(name)}, "timeout 20"), {name, "regular file"});
    expect_failure(build_to(folder_.file(name), folder_.file("out.rknn")), {name, "regular file"});
  }
}

TEST_F(CliFiles, ClosedReaderIsAnErrorOfWriting) {
  // The reader is gone before the program starts to write.
  const std::string status = folder_.file("status");
  const std::string command = "(sleep 0.3; " + quoted(OPENRKNN_CLI) + " inspect " + quoted(digits_model()) + " 2>" +
                              quoted(folder_.file("err")) + "; echo $? >" + quoted(status) + ") | true; sleep 1";
  ASSERT_EQ(std::system(("bash -c " + quoted(command)).c_str()), 0);
  for (int i = 0; i < 100 && read_file(status).empty(); ++i) ::usleep(100000);
  EXPECT_EQ(read_file(status), "1\n");
  EXPECT_NE(read_file(folder_.file("err")).find("stdout"), std::string::npos) << read_file(folder_.file("err"));
}

TEST_F(CliFiles, LongOutputNamesAreShortened) {
  using namespace onnx_bytes;
  const std::string name = std::string(300, 'y') + "_end";
  const std::string model =
      folder_.write("long.onnx", onnx_bytes::model("Relu", {{"x", kFloat, {1, 4}}}, {name, kFloat, {1, 4}}));
  ASSERT_TRUE(write_npy(folder_.file("x.npy"), float_tensor({1, 4}, {-1, 0, 1, 2})).ok());
  const Done done = openrknn({"run", model, "--input", folder_.file("x.npy"), "--outdir", folder_.file("out")});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(read_file(folder_.file("out/outputs.json")));
  EXPECT_EQ(json[0]["name"], name);
  const std::string file = json[0]["file"];
  EXPECT_TRUE(file.ends_with("_end.npy")) << file;
  const auto tensor = read_npy(folder_.file("out/" + file));
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->as<float>()[3], 2);
}

}  // namespace
}  // namespace openrknn::toolkit
