// The C++ interface: matching of names and files, feeding, outputs on disk, and the chain from model to report.
#include <cmath>
#include <nlohmann/json.hpp>

#include "openrknn/toolkit.hpp"
#include "support.hpp"

namespace openrknn::toolkit {
namespace {

std::vector<TensorInfo> inputs_named(const std::vector<std::string>& names) {
  std::vector<TensorInfo> infos;
  for (const auto& name : names) infos.push_back({name, DType::kFloat32, {1, 3, 2, 2}, false});
  return infos;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(MatchFiles, ByNameAndInOrder) {
  const auto infos = inputs_named({"a", "b", "c"});
  const auto matched = match_files({"b=two.npy", "one.npy", "three.npy"}, infos);
  ASSERT_TRUE(matched.ok()) << matched.error().message();
  EXPECT_EQ(*matched, (Pairs{{"a", "one.npy"}, {"b", "two.npy"}, {"c", "three.npy"}}));
}

TEST(MatchFiles, NamesMayHoldTheSeparators) {
  const auto infos = inputs_named({"input:0", "input:0=x", "in/put"});
  const auto matched = match_files({"input:0=x=a=b.npy", "in/put=c.npy", "input:0=d.npy"}, infos);
  ASSERT_TRUE(matched.ok()) << matched.error().message();
  EXPECT_EQ(*matched, (Pairs{{"input:0", "d.npy"}, {"input:0=x", "a=b.npy"}, {"in/put", "c.npy"}}));
}

TEST(MatchFiles, FilesMayHoldEquals) {
  const TempFolder folder;
  const std::string file = folder.write("k=v.npy", "");
  const auto matched = match_files({file}, inputs_named({"x"}));
  ASSERT_TRUE(matched.ok()) << matched.error().message();
  EXPECT_EQ(matched->at(0).second, file);
}

TEST(MatchFiles, Refusals) {
  EXPECT_FALSE(match_files({}, inputs_named({"x"})).ok());
  EXPECT_FALSE(match_files({"x=1.npy", "x=2.npy"}, inputs_named({"x"})).ok());
  EXPECT_FALSE(match_files({"1.npy", "2.npy"}, inputs_named({"x"})).ok());
  const auto unknown = match_files({"y=1.npy"}, inputs_named({"x"}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("\"y\""), std::string::npos);
  EXPECT_TRUE(match_files({}, {}).ok()) << "a model without inputs takes none";
}

TEST(LoadInputs, MeanAndStdApplyToArrays) {
  const TempFolder folder;
  std::vector<float> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(write_npy(folder.file("x.npy"), float_tensor({1, 3, 2, 2}, values)).ok());
  FeedOptions options;
  options.mean = {{"x", {1, 2, 3}}};
  options.std_dev = {{"", {2}}};  // the first input, one value for all channels
  const auto loaded = load_inputs({{"x", folder.file("x.npy")}}, inputs_named({"x"}), options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Tensor& x = loaded->at("x");
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(x.as<float>()[i], (values[i] - static_cast<float>(i / 4 + 1)) / 2.0F);
}

TEST(LoadInputs, LayoutOfArrays) {
  const TempFolder folder;
  std::vector<float> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(write_npy(folder.file("x.npy"), float_tensor({1, 2, 2, 3}, values)).ok());
  FeedOptions options;
  EXPECT_FALSE(load_inputs({{"x", folder.file("x.npy")}}, inputs_named({"x"}), options).ok())
      << "NHWC data for an NCHW input";
  options.layout = DataLayout::kNhwc;
  const auto loaded = load_inputs({{"x", folder.file("x.npy")}}, inputs_named({"x"}), options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Tensor& x = loaded->at("x");
  EXPECT_EQ(x.shape, (std::vector<int64_t>{1, 3, 2, 2}));
  for (size_t c = 0; c < 3; ++c) {
    for (size_t p = 0; p < 4; ++p) EXPECT_EQ(x.as<float>()[c * 4 + p], values[p * 3 + c]);
  }
}

TEST(BindOpenDimensions, TakesTheShapeOfTheArray) {
  const TempFolder folder;
  ASSERT_TRUE(write_npy(folder.file("x.npy"), float_tensor({2, 3, 2, 2}, std::vector<float>(24))).ok());
  std::vector<TensorInfo> infos{{"x", DType::kFloat32, {-1, 3, -1, 2}, false}, {"y", DType::kFloat32, {2}, false}};
  const auto bound = bind_open_dimensions({{"x", folder.file("x.npy")}, {"y", folder.file("none.npy")}}, infos);
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  ASSERT_EQ(bound->size(), 1U);
  EXPECT_EQ(bound->at(0).shape, (std::vector<int64_t>{2, 3, 2, 2}));
  infos[0].shape = {-1, 4, -1, 2};
  EXPECT_FALSE(bind_open_dimensions({{"x", folder.file("x.npy")}}, infos).ok());
}

TEST(WriteOutputs, NamesBecomeUniqueFiles) {
  const TempFolder folder;
  const Tensor one = float_tensor({1}, {1});
  Output raw{"a/b", one, 0.5F, -3};
  const std::vector<Output> outputs{raw, {"a:b", one, {}, {}}, {"A_b", one, {}, {}}};
  ASSERT_TRUE(write_outputs(folder.file("out"), outputs, inputs_named({"a/b", "a:b", "A_b"})).ok());
  const auto json = nlohmann::json::parse(read_file(folder.file("out/outputs.json")));
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["file"], "a_b.npy");
  EXPECT_EQ(json[0]["scale"], 0.5);
  EXPECT_EQ(json[0]["zero_point"], -3);
  EXPECT_FALSE(json[1].contains("scale"));
  EXPECT_NE(json[1]["file"], json[0]["file"]);
  EXPECT_NE(json[2]["file"], json[1]["file"]);
  for (const auto& entry : json) EXPECT_TRUE(read_npy(folder.file("out/" + entry["file"].get<std::string>())).ok());
}

TEST(Targets, AllOfThePlatforms) {
  std::vector<std::string> names;
  for (const auto& t : targets()) {
    names.push_back(t.name);
    EXPECT_FALSE(t.dtypes.empty()) << t.name;
  }
  for (const std::string name : {"rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rv1103", "rv1103b",
                                 "rv1106", "rv1106b", "rv1126b"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

class Chain : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Model::load(digits_model());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    model_.emplace(std::move(loaded).value());
    input_ = model_->inputs().at(0).name;
  }

  TempFolder folder_;
  std::optional<Model> model_;
  std::string input_;
};

TEST_F(Chain, GoldenRunTakesDataThatConvertWithoutLoss) {
  const auto floats = model_->run({{input_, digit(3)}});
  ASSERT_TRUE(floats.ok()) << floats.error().message();
  Tensor doubles{DType::kFloat64, {1, 1, 8, 8}, std::vector<std::byte>(64 * 8)};
  for (size_t i = 0; i < 64; ++i) doubles.as<double>()[i] = static_cast<double>(digit(3).as<float>()[i]);
  const auto again = model_->run({{input_, doubles}});
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(floats->at(0).tensor.data, again->at(0).tensor.data);
  EXPECT_FALSE(model_->run({}).ok());
  EXPECT_FALSE(model_->run({{input_, float_tensor({1, 1, 4, 4}, std::vector<float>(16))}}).ok());
  Tensor short_data = digit(3);
  short_data.data.resize(10);
  EXPECT_FALSE(model_->run({{input_, short_data}}).ok());
}

TEST_F(Chain, BuildsTheSameBytesTwice) {
  Config config;
  config.target = "rk3588";
  const std::string list = write_list(folder_, 5);
  for (const char* name : {"a.rknn", "b.rknn"}) {
    set_threads(name[0] == 'a' ? 1 : 2);
    const auto program = model_->build(config, list);
    ASSERT_TRUE(program.ok()) << program.error().message();
    ASSERT_TRUE(program->write(folder_.file(name)).ok());
  }
  set_threads(0);
  EXPECT_EQ(read_file(folder_.file("a.rknn")), read_file(folder_.file("b.rknn")));
}

TEST_F(Chain, RawOutputsDequantizeToTheFloatOnes) {
  Config config;
  config.target = "rk3588";
  auto program = model_->build(config, write_list(folder_, 5));
  ASSERT_TRUE(program.ok()) << program.error().message();
  const auto real = program->run({{input_, digit(1)}});
  RunOptions options;
  options.raw_outputs = true;
  const auto raw = program->run({{input_, digit(1)}}, options);
  ASSERT_TRUE(real.ok() && raw.ok());
  ASSERT_EQ(real->at(0).tensor.dtype, DType::kFloat32);
  if (raw->at(0).tensor.dtype != DType::kInt8) GTEST_SKIP() << "the last layer is not int8";
  for (int64_t i = 0; i < raw->at(0).tensor.elements(); ++i) {
    const auto k = static_cast<size_t>(i);
    EXPECT_EQ(static_cast<float>(raw->at(0).tensor.as<int8_t>()[k] - *raw->at(0).zero_point) * *raw->at(0).scale,
              real->at(0).tensor.as<float>()[k]);
  }
}

TEST_F(Chain, OneLayerInAnotherFormat) {
  Config config;
  config.target = "rk3588";
  config.layer_dtype[model_->outputs()[0].name] = "fp16";
  auto program = model_->build(config, write_list(folder_, 5));
  ASSERT_TRUE(program.ok()) << program.error().message();
  const auto compared = compare(*model_, *program, folder_.file("list.txt"), 2);
  ASSERT_TRUE(compared.ok()) << compared.error().message();
  EXPECT_EQ(compared->samples, 2);
  const bool has_half =
      std::any_of(compared->layers.begin(), compared->layers.end(), [](const auto& l) { return l.dtype == "float16"; });
  const bool has_int8 =
      std::any_of(compared->layers.begin(), compared->layers.end(), [](const auto& l) { return l.dtype == "int8"; });
  EXPECT_TRUE(has_half && has_int8);
}

TEST_F(Chain, SingleErrorsDoNotAccumulate) {
  Config config;
  config.target = "rk3588";
  config.dtype = "fp16";
  auto program = model_->build(config, "");
  ASSERT_TRUE(program.ok()) << program.error().message();
  const auto compared = compare(*model_, *program, write_list(folder_, 3));
  ASSERT_TRUE(compared.ok()) << compared.error().message();
  for (const auto& layer : compared->layers) {
    EXPECT_GT(layer.entire.cos, 0.9999) << layer.name;
    EXPECT_TRUE(layer.has_single) << layer.name;
    EXPECT_GT(layer.single.cos, 0.9999) << layer.name;
    EXPECT_LE(layer.single.cos, 1.0 + 1e-12) << layer.name;
  }
}

TEST_F(Chain, MeanAndStdAreBuiltIn) {
  Config config;
  config.target = "rk3588";
  config.dtype = "fp16";
  config.mean = {{input_, {0.25F}}};
  config.std_dev = {{"", {0.5F}}};
  auto program = model_->build(config, "");
  ASSERT_TRUE(program.ok()) << program.error().message();
  Tensor shifted = digit(2);
  for (size_t i = 0; i < 64; ++i) shifted.as<float>()[i] = (shifted.as<float>()[i] - 0.25F) / 0.5F;
  const auto golden = model_->run({{input_, shifted}});
  const auto run = program->run({{input_, digit(2)}});
  ASSERT_TRUE(golden.ok() && run.ok());
  for (int64_t i = 0; i < golden->at(0).tensor.elements(); ++i) {
    const float expected = golden->at(0).tensor.as<float>()[i];
    EXPECT_NEAR(run->at(0).tensor.as<float>()[i], expected, 0.01F * std::max(1.0F, std::fabs(expected)));
  }
  const auto compared = compare(*model_, *program, write_list(folder_, 2));
  ASSERT_TRUE(compared.ok()) << compared.error().message();
  EXPECT_GT(compared->outputs[0].worst.cos, 0.9999) << "the golden run gets the program's mean and std";
}

TEST_F(Chain, PreflightShowsEveryNode) {
  const auto report = model_->preflight("rk3588");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(report->buildable);
  EXPECT_FALSE(report->nodes.empty());
  int64_t macs = 0;
  for (const auto& node : report->nodes) {
    macs += node.macs;
    if (node.engine == "cpu") {
      EXPECT_FALSE(node.limit.empty()) << node.name << " cites a limit";
    }
  }
  EXPECT_EQ(macs, model_->inspect().macs);
}

TEST_F(Chain, BenchCountsItsRuns) {
  const auto report = bench(*model_, seeded_inputs(*model_, 1), 3);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->repeat, 3);
  EXPECT_LE(report->min_ms, report->median_ms);
  Config config;
  config.target = "rk3588";
  config.dtype = "fp16";
  auto program = model_->build(config, "");
  ASSERT_TRUE(program.ok());
  const auto simulated = bench(*program, seeded_inputs(*program, 1), 3);
  ASSERT_TRUE(simulated.ok()) << simulated.error().message();
  EXPECT_EQ(simulated->tasks.size(), program->inspect().tasks.size());
}

// A field of a protobuf message, of less than 128 bytes; or a number below 128.
std::string field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} + content;
}
std::string field(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }

// An ONNX model of one node over a tensor of one dimension, open when it is 0.
std::string one_node(const std::string& op, int type, int extent) {
  const std::string dim = extent > 0 ? field(1, extent) : field(2, std::string("N"));
  const std::string tensor = field(1, field(1, type) + field(2, field(1, dim)));
  const std::string node = field(1, std::string("x")) + field(2, std::string("y")) + field(4, op);
  const std::string graph = field(1, node) + field(2, std::string("g")) +
                            field(11, field(1, std::string("x")) + field(2, tensor)) +
                            field(12, field(1, std::string("y")) + field(2, tensor));
  return field(1, 8) + field(7, graph) + field(8, field(2, 13));
}

TEST(GoldenRun, KeepsTheModelsType) {
  const TempFolder folder;
  const std::vector<std::pair<int, DType>> types{{1, DType::kFloat32}, {10, DType::kFloat16}, {11, DType::kFloat64}};
  for (const auto& [onnx_type, dtype] : types) {
    const auto model = Model::load(folder.write("m.onnx", one_node("Relu", onnx_type, 3)));
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->outputs()[0].dtype, dtype);
    const auto outputs = model->run({{"x", float_tensor({3}, {-1, 0.5F, 2})}});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    EXPECT_EQ(outputs->at(0).tensor.dtype, dtype);
    EXPECT_EQ(outputs->at(0).tensor.data.size(), 3 * dtype_size(dtype));
  }
}

TEST(InspectModelFile, DescribesWhatCannotBeLoaded) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", one_node("Wobble", 1, 0));
  EXPECT_FALSE(Model::load(path).ok());
  const auto report = inspect_model_file(path);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->opset, 13);
  EXPECT_EQ(report->nodes, (std::map<std::string, int64_t>{{"Wobble", 1}}));
  ASSERT_EQ(report->inputs.size(), 1U);
  EXPECT_EQ(report->inputs[0].shape, std::vector<int64_t>{-1});
  ASSERT_EQ(report->outputs.size(), 1U);
  const auto json = nlohmann::json::parse(to_json(*report));
  EXPECT_EQ(json.at("format"), "onnx");
  EXPECT_FALSE(json.contains("macs"));
}

}  // namespace
}  // namespace openrknn::toolkit
