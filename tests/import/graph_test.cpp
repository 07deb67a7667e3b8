// What an imported graph looks like: names, cuts, constants, folding, conditionals, functions.
#include <gtest/gtest.h>

#include "import/signature.hpp"
#include "ir/text.hpp"
#include "model_file.hpp"

namespace openrknn::import {
namespace {

std::string failure(const Result<Imported>& result) { return result.ok() ? "" : result.error().message(); }

#define ASSERT_IMPORTED(name, expr) \
  const auto name = (expr);         \
  ASSERT_TRUE(name.ok()) << failure(name)

const Value& value_of(const Imported& imported, const std::string& name) {
  return imported.graph.value(*imported.graph.find_value(name));
}
std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(graph.value(id).name);
  return names;
}
using Names = std::vector<std::string>;

ModelBuilder chain() {
  ModelBuilder b;
  b.input("x", {1, 4}).output("c");
  b.floats("w", {4}, {1, 2, 3, 4});
  b.node("Relu", {"x"}, {"a"}, "relu");
  b.node("Add", {"a", "w"}, {"b"});
  b.node("Abs", {"b"}, {"c"});
  return b;
}

TEST(Import, SaysWhatPromotedOutputsAreDeclaredAs) {
  const auto declared_as = [](int type) {
    ModelBuilder b;
    b.input("x", {1, 4}, type);
    ModelBuilder::set_type(*b.graph().add_output(), "y", {1, 4}, type);
    b.node("Relu", {"x"}, {"y"});
    const auto imported = import_built(b);
    EXPECT_TRUE(imported.ok()) << imported.error().message();
    EXPECT_EQ(imported->graph.value(imported->graph.outputs()[0]).dtype, DType::kFloat32);
    return imported->declared_outputs;
  };
  using Declared = std::map<std::string, DType, std::less<>>;
  EXPECT_EQ(declared_as(10), (Declared{{"y", DType::kFloat16}}));
  EXPECT_EQ(declared_as(11), (Declared{{"y", DType::kFloat64}}));
  EXPECT_EQ(declared_as(16), Declared{}) << "bfloat16 is widened";
  EXPECT_EQ(declared_as(1), Declared{});
}

TEST(Import, AnOutputListedTwiceIsGivenOnce) {
  ModelBuilder b = chain();
  b.output("c");
  ASSERT_IMPORTED(imported, import_built(b));
  EXPECT_EQ(names_of(imported->graph, imported->graph.outputs()), Names{"c"});
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_NE(imported->warnings[0].find("'c'"), std::string::npos);
}

TEST(Import, WarnsOfOldOpsets) {
  const auto warnings = [](int64_t opset) {
    ModelBuilder b(opset);
    b.input("x", {1, 4}).output("y");
    b.node("Relu", {"x"}, {"y"});
    const auto imported = import_built(b);
    EXPECT_TRUE(imported.ok()) << imported.error().message();
    return imported->warnings;
  };
  EXPECT_TRUE(warnings(7).empty());
  ASSERT_EQ(warnings(6).size(), 1U);
  EXPECT_NE(warnings(6)[0].find("opset 6"), std::string::npos);
}

TEST(Signature, SaysWhatAFileHoldsThatCannotBeImported) {
  ModelBuilder b;
  b.input("x", {-1, 4}).output("y");
  b.floats("w", {4}, {1, 2, 3, 4});
  b.node("Add", {"x", "w"}, {"a"});
  b.node("Add", {"a", "w"}, {"b"});
  b.node("Wobble", {"b"}, {"c"});
  b.node("Wobble", {"c"}, {"y"}).set_domain("com.example");
  EXPECT_FALSE(import_built(b).ok());
  TempFolder folder;
  const auto signature = read_signature(folder.write("m.onnx", b.bytes()));
  ASSERT_TRUE(signature.ok()) << signature.error().message();
  EXPECT_EQ(signature->opset, 13);
  EXPECT_EQ(signature->nodes, (std::map<std::string, int64_t>{{"Add", 2}, {"Wobble", 1}, {"com.example.Wobble", 1}}));
  ASSERT_EQ(signature->inputs.size(), 1U);
  EXPECT_EQ(signature->inputs[0].dims, (std::vector<int64_t>{-1, 4}));
  ASSERT_EQ(signature->outputs.size(), 1U);
  EXPECT_EQ(signature->outputs[0].name, "y");
  EXPECT_EQ(signature->parameters, 4);
}

TEST(Import, KeepsNamesAndSources) {
  ASSERT_IMPORTED(imported, import_built(chain()));
  const Graph& g = imported->graph;
  EXPECT_EQ(names_of(g, g.inputs()), Names{"x"});
  EXPECT_EQ(names_of(g, g.outputs()), Names{"c"});
  EXPECT_EQ(imported->opset, 13);
  const Node& relu = g.node(value_of(*imported, "a").producer);
  EXPECT_EQ(relu.name, "relu");
  EXPECT_EQ(relu.source.nodes, Names{"relu"});
  EXPECT_NE(relu.source.file.find("model.onnx"), std::string::npos);
  const Node& add = g.node(value_of(*imported, "b").producer);
  EXPECT_EQ(add.name, "b");
  EXPECT_EQ(add.source.nodes, Names{"Add:b"});
}

TEST(Import, InitializersListedAsInputsAreNone) {
  ModelBuilder b = chain();
  b.input("w", {4});
  ASSERT_IMPORTED(imported, import_built(b));
  EXPECT_EQ(names_of(imported->graph, imported->graph.inputs()), Names{"x"});
}

TEST(Import, NodesMayStandInAnyOrder) {
  ModelBuilder b = chain();
  b.graph().mutable_node()->SwapElements(0, 2);
  ASSERT_IMPORTED(imported, import_built(b));
  EXPECT_EQ(imported->graph.node_count(), 3U);
}

TEST(Import, CutsAtInnerTensors) {
  ImportOptions options;
  options.inputs = {{"a", {1, 4}}};
  options.outputs = {"b"};
  ASSERT_IMPORTED(imported, import_built(chain(), options));
  EXPECT_EQ(names_of(imported->graph, imported->graph.inputs()), Names{"a"});
  EXPECT_EQ(names_of(imported->graph, imported->graph.outputs()), Names{"b"});
  EXPECT_EQ(imported->graph.node_count(), 1U);
}

TEST(Import, BakesValuesIn) {
  ModelBuilder b;
  b.input("x", {1, 4}).input("shape", {2}, 7).output("y");
  b.node("Reshape", {"x", "shape"}, {"y"});
  ImportOptions options;
  options.input_values.emplace("shape", Tensor::ints({2, 2}));
  ASSERT_IMPORTED(imported, import_built(b, options));
  EXPECT_EQ(names_of(imported->graph, imported->graph.inputs()), Names{"x"});
  EXPECT_EQ(value_of(*imported, "y").shape, (Shape{2, 2}));
  options.input_values.clear();
  options.input_values.emplace("shape", Tensor::ints({2, 2, 1}));
  EXPECT_NE(failure(import_built(b, options)).find("[3]"), std::string::npos);
}

TEST(Import, FoldsShapeArithmetic) {
  ModelBuilder b;
  b.input("x", {2, 3, 4}).output("y");
  b.ints("zero", {1}, {0}).ints("rest", {1}, {-1});
  b.node("Shape", {"x"}, {"dims"});
  b.node("Gather", {"dims", "zero"}, {"batch"});
  auto& concat = b.node("Concat", {"batch", "rest"}, {"target"});
  set_int(concat, "axis", 0);
  b.node("Reshape", {"x", "target"}, {"y"});
  ASSERT_IMPORTED(imported, import_built(b));
  EXPECT_EQ(value_of(*imported, "y").shape, (Shape{2, 12}));
  EXPECT_EQ(imported->graph.node_count(), 1U);
  EXPECT_FALSE(imported->graph.find_value("dims").has_value());
}

TEST(Import, ConstantsOfEveryForm) {
  ModelBuilder b;
  b.input("x", {2}).output("y");
  auto& value = b.node("Constant", {}, {"c1"});
  auto* a = value.add_attribute();
  a->set_name("value");
  a->set_type(4);
  ModelBuilder::set_floats(*a->mutable_t(), "", {2}, {1, 2});
  set_float(b.node("Constant", {}, {"c2"}), "value_float", 3);
  set_floats(b.node("Constant", {}, {"c3"}), "value_floats", {4, 5});
  b.node("Sum", {"x", "c1", "c2", "c3"}, {"y"});
  ASSERT_IMPORTED(imported, import_built(b));
  const Tensor& c2 = *value_of(*imported, "c2").constant;
  EXPECT_EQ(c2.shape().rank(), 0);
  EXPECT_EQ(c2.as<float>()[0], 3);
  EXPECT_EQ(value_of(*imported, "c3").constant->as<float>()[1], 5);
  EXPECT_EQ(value_of(*imported, "c1").constant->as<float>()[1], 2);
}

TEST(Import, UnusedExtraResultsAreDropped) {
  ModelBuilder b;
  b.input("x", {1, 1, 4, 4}).output("y");
  auto& pool = b.node("MaxPool", {"x"}, {"y", "indices"});
  set_ints(pool, "kernel_shape", {2, 2});
  {
    ASSERT_IMPORTED(imported, import_built(b));
    EXPECT_EQ(imported->graph.node(imported->graph.nodes().front()).outputs.size(), 1U);
  }
  b.output("indices");
  EXPECT_EQ(failure(import_built(b)), "");
  b.node("BatchNormalization", {"y", "s", "s", "s", "s"}, {"z", "mean", "variance"});
  b.floats("s", {1}, {1}).output("z");
  EXPECT_EQ(failure(import_built(b)), "");
  b.output("mean");
  EXPECT_NE(failure(import_built(b)).find("training_mode"), std::string::npos);
}

// if (condition) y = Relu(x) else y = Abs(x)
ModelBuilder conditional(int opset = 13) {
  ModelBuilder b(opset);
  b.input("x", {3}).input("condition", {}, 9).output("y");
  auto& node = b.node("If", {"condition"}, {"y"}, "choice");
  for (const auto& [branch, op] : {std::pair("then_branch", "Relu"), std::pair("else_branch", "Abs")}) {
    auto* a = node.add_attribute();
    a->set_name(branch);
    a->set_type(5);
    ModelBuilder::fill(*a->mutable_g()->add_node(), op, {"x"}, {"inner"});
    a->mutable_g()->add_output()->set_name("inner");
  }
  return b;
}

TEST(Import, ConstantConditionTakesItsBranch) {
  for (const bool taken : {true, false}) {
    ImportOptions options;
    Tensor condition(DType::kBool, Shape{});
    *static_cast<uint8_t*>(condition.mutable_data()) = taken ? 1 : 0;
    options.input_values.emplace("condition", condition);
    ASSERT_IMPORTED(imported, import_built(conditional(), options));
    const Node& copy = imported->graph.node(value_of(*imported, "y").producer);
    EXPECT_EQ(copy.op, "Identity");
    EXPECT_EQ(imported->graph.node(imported->graph.value(copy.inputs[0]).producer).op, taken ? "Relu" : "Abs");
  }
  EXPECT_NE(failure(import_built(conditional())).find("condition 'condition' is not constant"), std::string::npos);
}

TEST(Import, FunctionsAreWrittenOut) {
  ModelBuilder b;
  b.input("x", {1, 6}).output("y");
  auto* set = b.model().add_opset_import();
  set->set_domain("local");
  set->set_version(1);
  auto& call = b.node("Leaky", {"x"}, {"m"}, "call");
  call.set_domain("local");
  set_float(call, "slope", 0.25F);
  auto& again = b.node("Leaky", {"m"}, {"y"}, "again");
  again.set_domain("local");
  auto* f = b.model().add_functions();
  f->set_name("Leaky");
  f->set_domain("local");
  f->add_input("in");
  f->add_output("out");
  f->add_attribute("slope");
  auto* f_set = f->add_opset_import();
  f_set->set_version(13);
  auto* node = f->add_node();
  ModelBuilder::fill(*node, "LeakyRelu", {"in"}, {"out"});
  auto* alpha = node->add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(1);
  alpha->set_ref_attr_name("slope");
  ASSERT_IMPORTED(imported, import_built(b));
  const Node& first = imported->graph.node(value_of(*imported, "m").producer);
  const Node& second = imported->graph.node(value_of(*imported, "y").producer);
  EXPECT_EQ(first.op, "LeakyRelu");
  EXPECT_EQ(first.attributes.float_or("alpha", 0), 0.25F);
  EXPECT_FALSE(second.attributes.has("alpha"));
  // A function that calls itself must end.
  ModelBuilder::fill(*node, "Leaky", {}, {});
  node->set_domain("local");
  EXPECT_NE(failure(import_built(b)).find("calls itself"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::import
