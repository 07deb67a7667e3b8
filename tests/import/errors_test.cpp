// Everything that can be wrong with a model file ends in one error that says what and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "import/onnx_load.hpp"
#include "model_file.hpp"

namespace openrknn::import {
namespace {

// "" when it imported.
std::string failure(const Result<Imported>& result) { return result.ok() ? "" : result.error().message(); }
std::string failure(const ModelBuilder& builder, const ImportOptions& options = {}) {
  return failure(import_built(builder, options));
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

ModelBuilder relu_model(const std::vector<int64_t>& dims = {1, 4}) {
  ModelBuilder b;
  b.input("x", dims).output("y");
  b.node("Relu", {"x"}, {"y"}, "relu");
  return b;
}

TEST(BadFile, IsToldApart) {
  TempFolder folder;
  const auto why = [&](const std::string& path) { return failure(import_model(path, {})); };
  expect_parts(why(folder.file("none.onnx")), {"none.onnx", "no such file"});
  expect_parts(why(folder.path()), {"folder"});
  expect_parts(why(folder.write("empty.onnx", "")), {"empty.onnx", "empty"});
  expect_parts(why(folder.write("lfs.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n")),
               {"Git LFS", "git lfs pull"});
  expect_parts(why(folder.write("page.onnx", "\n<!DOCTYPE html><html></html>")), {"web page"});
  expect_parts(why(folder.write("garbage.onnx", std::string(100, '\xEE'))),
               {"garbage.onnx", "not a complete ONNX model"});
  expect_parts(why(folder.write("noname", "something else")), {"format"});
  expect_parts(why(folder.write("m.tflite", std::string("\x1c\0\0\0TFL3....", 12))), {"TFLite"});
  expect_parts(why(folder.write("m.pt", "PK\x03\x04zip")), {"TorchScript"});
}

TEST(BadModel, HintsFitTheFailure) {
  ModelBuilder b;
  b.input("x", {1, 3, 8, 8}).output("y");
  b.floats("w", {1, 3, 1, 1}, {1, 2, 3});
  set_ints(b.node("Conv", {"x", "w"}, {"y"}), "strides", {0, 1});
  const std::string broken = failure(b);
  expect_parts(broken, {"attribute 'strides'", "value 0 is outside", "repair the model"});
  EXPECT_EQ(broken.find("cut the graph"), std::string::npos) << broken;

  ModelBuilder missing;
  missing.input("x", {1, 4}).output("y");
  auto* data = missing.graph().add_initializer();
  data->set_name("w");
  data->set_data_type(1);
  data->add_dims(4);
  data->set_data_location(1);
  auto* entry = data->add_external_data();
  entry->set_key("location");
  entry->set_value("none.bin");
  missing.node("Add", {"x", "w"}, {"y"});
  const std::string absent = failure(missing);
  expect_parts(absent, {"none.bin", "put the missing data files beside the model"});
  EXPECT_EQ(absent.find("cut the graph"), std::string::npos) << absent;

  ModelBuilder unknown;
  unknown.input("x", {1, 4}).output("y");
  unknown.node("Wobble", {"x"}, {"y"});
  expect_parts(failure(unknown), {"Wobble", "cut the graph"});
}

TEST(BadModel, AnOutputNamedTwice) {
  ImportOptions options;
  options.outputs = {"y", "y"};
  const std::string text = failure(relu_model(), options);
  expect_parts(text, {"--output", "'y'", "once"});
  EXPECT_EQ(text.find("malformed"), std::string::npos);
}

TEST(BadFile, CutAnywhereIsAnError) {
  ModelBuilder b = relu_model();
  b.floats("w", {4}, {1, 2, 3, 4});
  b.node("Add", {"y", "w"}, {"z"});
  b.output("z");
  const std::string bytes = b.bytes();
  ASSERT_TRUE(import_bytes(bytes).ok()) << failure(import_bytes(bytes));
  TempFolder folder;
  size_t accepted = 0;
  for (size_t length = 0; length < bytes.size(); ++length)
    accepted += import_onnx(folder.write("cut.onnx", bytes.substr(0, length)), {}).ok() ? 1 : 0;
  // Only the fields behind the graph may be lost without notice, and then the opset is missing.
  EXPECT_EQ(accepted, 0U);
  for (size_t i = 0; i < bytes.size(); ++i) {  // any answer will do, but an answer
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x2A);
    (void)import_onnx(folder.write("damaged.onnx", damaged), {}).ok();
  }
}

TEST(BadFile, DeepNestingIsAnError) {
  // If inside If inside If ..., deeper than the parser's limit: graph (field 7) > node (1) > attribute (5) > g (6) >
  // node ...
  std::string graph;
  const auto field = [](int number, const std::string& content) {
    std::string out;
    const auto varint = [&out](uint64_t v) {
      for (; v >= 128; v >>= 7) out += static_cast<char>(v | 0x80);
      out += static_cast<char>(v);
    };
    varint(static_cast<uint64_t>(number) << 3 | 2);
    varint(content.size());
    return out + content;
  };
  for (int i = 0; i < 2000; ++i) graph = field(1, field(5, field(6, graph)));
  expect_parts(failure(import_bytes(std::string("\x08\x08", 2) + field(7, graph))), {"not a complete ONNX model"});
}

TEST(BadModel, NamesItsFault) {
  ModelBuilder no_opset = relu_model();
  no_opset.model().clear_opset_import();
  expect_parts(failure(no_opset), {"opset"});

  ModelBuilder twice = relu_model();
  twice.node("Abs", {"x"}, {"y"}, "abs");
  expect_parts(failure(twice), {"'y'", "'relu'", "'abs'"});

  ModelBuilder two_weights = relu_model();
  two_weights.floats("w", {1}, {1}).floats("w", {1}, {2});
  expect_parts(failure(two_weights), {"'w'", "two initializers"});

  ModelBuilder two_inputs = relu_model();
  two_inputs.input("x", {1, 4});
  expect_parts(failure(two_inputs), {"'x'", "two inputs"});

  ModelBuilder cycle;
  cycle.input("x", {1}).output("b");
  cycle.node("Add", {"x", "b"}, {"a"}, "first");
  cycle.node("Relu", {"a"}, {"b"}, "second");
  expect_parts(failure(cycle), {"cycle", "first"});

  ModelBuilder dangling;
  dangling.input("x", {1}).output("y");
  dangling.node("Add", {"x", "ghost"}, {"y"}, "sum");
  expect_parts(failure(dangling), {"sum", "'ghost'"});

  ModelBuilder no_producer = relu_model();
  no_producer.output("nothing");
  expect_parts(failure(no_producer), {"'nothing'"});
}

TEST(BadModel, DeclaredShapeMustAgree) {
  ModelBuilder b = relu_model();
  b.declare("y", {1, 5});
  expect_parts(failure(b), {"'y'", "[1, 5]", "[1, 4]"});
  ModelBuilder open = relu_model();
  open.declare("y", {-1, 4});
  EXPECT_EQ(failure(open), "");
}

TEST(BadModel, ExtentsAreBounded) {
  expect_parts(failure(relu_model({int64_t{1} << 40, int64_t{1} << 40})), {"'x'"});
  expect_parts(failure(relu_model({int64_t{1} << 36})), {"'x'", "budget"});
  ModelBuilder weight = relu_model();
  weight.node("Add", {"y", "w"}, {"z"});
  weight.output("z");
  auto* t = weight.graph().add_initializer();
  t->set_name("w");
  t->set_data_type(1);
  t->add_dims(int64_t{1} << 62);
  t->add_dims(4);
  expect_parts(failure(weight), {"'w'"});
  t->clear_dims();
  t->add_dims(-4);
  expect_parts(failure(weight), {"'w'"});
  t->clear_dims();
  t->add_dims(int64_t{1} << 35);
  expect_parts(failure(weight), {"'w'", "budget"});
}

TEST(OpenDimension, NeedsAShape) {
  expect_parts(failure(relu_model({-1, 4})), {"'x'", "N1", "--input x:D,D"});
  ImportOptions options;
  options.inputs = {{"x", {2, 4}}};
  const auto bound = import_built(relu_model({-1, 4}), options);
  ASSERT_TRUE(bound.ok()) << failure(bound);
  EXPECT_EQ(bound->graph.value(*bound->graph.find_value("y")).shape, (Shape{2, 4}));
  options.inputs = {{"x", {2, 4, 1}}};
  expect_parts(failure(relu_model({-1, 4}), options), {"3 dimensions", "[N1, 4]"});
  options.inputs = {{"x", {0, 4}}};
  expect_parts(failure(relu_model({-1, 4}), options), {"dimension 0 is 0"});
}

TEST(OpenDimension, SymbolsAreSharedByInputs) {
  ModelBuilder b;
  b.input("a", {-1, 3}).input("b", {-1, 3}).output("c");
  b.node("Add", {"a", "b"}, {"c"});
  ImportOptions options;
  options.inputs = {{"a", {5, 3}}};
  const auto bound = import_built(b, options);
  ASSERT_TRUE(bound.ok()) << failure(bound);
  EXPECT_EQ(bound->graph.value(*bound->graph.find_value("b")).shape, (Shape{5, 3}));
}

TEST(OpenDimension, GivenShapeReplacesAFixedOne) {
  ModelBuilder b = relu_model({1, 4});
  b.declare("y", {1, 4});
  ImportOptions options;
  options.inputs = {{"x", {8, 4}}};
  const auto imported = import_built(b, options);
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(imported->warnings.size(), 1U);
}

TEST(UnknownName, ListsNearOnes) {
  ImportOptions options;
  options.outputs = {"yy"};
  expect_parts(failure(relu_model(), options), {"--output", "'yy'", "did you mean y"});
  options.outputs.clear();
  options.inputs = {{"image_tensor", {1}}};
  expect_parts(failure(relu_model(), options), {"--input", "image_tensor", "inputs are x"});
  options.inputs.clear();
  options.input_values.emplace("q", Tensor::scalar(1.0F));
  expect_parts(failure(relu_model(), options), {"--input-value", "'q'"});
}

TEST(Unsupported, AllNodesAreListed) {
  ModelBuilder b;
  b.input("x", {1, 4}).output("y");
  b.node("FancyOp", {"x"}, {"a"}, "first");
  b.node("Relu", {"a"}, {"b"}, "fine");
  b.node("QuiteOther", {"b"}, {"c"}).set_domain("com.example");
  auto& relu = b.node("Relu", {"c"}, {"d"}, "odd");
  set_int(relu, "wobble", 3);
  b.node("Relu", {"x"}, {"unused"}, "dead");
  b.node("Add", {"d"}, {"y"}, "last");
  const std::string text = failure(b);
  expect_parts(text, {"'first' (FancyOp)", "'QuiteOther:c' (QuiteOther)", "com.example", "'odd' (Relu)", "wobble",
                      "model.onnx"});
  EXPECT_EQ(text.find("'fine'"), std::string::npos) << text;
  EXPECT_EQ(text.find("'dead'"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;  // a line a node
}

TEST(Unsupported, InputsAreListedWithNodes) {
  ModelBuilder b;
  b.input("x", {-1, 4}).input("z", {2, -2}).input("w", {1, 4}).output("y");
  b.node("Add", {"x", "z"}, {"a"}, "sum");
  b.node("FancyOp", {"a"}, {"b"}, "first");
  set_int(b.node("Relu", {"w"}, {"c"}, "odd"), "wobble", 3);
  b.node("Add", {"b", "c"}, {"y"}, "last");
  const std::string text = failure(b);
  expect_parts(text, {"2 inputs and 2 nodes", "input 'x': dimension 0", "--input x:D,D", "input 'z': dimension 1",
                      "'first' (FancyOp)", "'odd' (Relu)", "wobble"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
}

TEST(Unsupported, DeadNodesDoNotMatter) {
  ModelBuilder b = relu_model();
  b.node("FancyOp", {"x"}, {"z"});
  EXPECT_EQ(failure(b), "");
}

TEST(Warning, NonFiniteWeights) {
  ModelBuilder b = relu_model();
  b.floats("bad_weights", {4}, {1, std::numeric_limits<float>::infinity(), 3, 4});
  b.node("Add", {"y", "bad_weights"}, {"z"});
  b.output("z");
  const auto imported = import_built(b);
  ASSERT_TRUE(imported.ok()) << failure(imported);
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_NE(imported->warnings[0].find("bad_weights"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::import
