#include "eval/evaluator.hpp"

#include <gtest/gtest.h>

#include "ops/registry.hpp"

namespace openrknn::eval {
namespace {

using F = std::vector<float>;

Tensor tensor(const Shape& shape, const F& values) { return Tensor::from(shape, values); }

F floats_of(const Tensor& t) {
  const auto all = t.as<float>();
  return {all.begin(), all.end()};
}

// x -> Relu -> Neg-free diamond: y = relu(x), z = conv(y), out = z + y, with a view between.
struct Diamond {
  Graph graph;
  ValueId x, y, view, z, out;

  Diamond() {
    graph.source_file = "diamond.onnx";
    x = graph.add_input("x", DType::kFloat32, Shape{1, 2, 3});
    y = (*ops::add_node(graph, "Relu", "y", {x}))[0];
    const ValueId shape = graph.add_constant("shape", Tensor::ints({1, 2, 3}));
    view = (*ops::add_node(graph, "Reshape", "view", {y, shape}))[0];
    const ValueId w = graph.add_constant("w", tensor(Shape{2, 2, 1}, {1, 1, 0, 2}));
    z = (*ops::add_node(graph, "Conv", "z", {view, w, ValueId{}, y}))[0];
    out = (*ops::add_node(graph, "Relu", "out", {z}))[0];
    graph.add_output(out);
  }
};

TEST(Evaluator, RunsInOrderAndShowsEveryValueOnce) {
  Diamond d;
  const auto evaluator = Evaluator::make(d.graph);
  ASSERT_TRUE(evaluator.ok()) << evaluator.error().message();
  std::vector<std::string> seen;
  const auto result =
      evaluator->run({{"x", tensor(Shape{1, 2, 3}, {1, -2, 3, 4, 5, -6})}}, [&](ValueId id, const TensorView& view) {
        seen.push_back(d.graph.value(id).name);
        EXPECT_EQ(view.shape.to_string(), d.graph.value(id).shape->to_string());
      });
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(floats_of(result->at("out")), (F{6, 5, 6, 12, 15, 0}));
  EXPECT_EQ(seen, (std::vector<std::string>{"x", "y", "view", "z", "out"}));
}

TEST(Evaluator, NeitherInputsNorEarlierResultsAreOverwritten) {
  Diamond d;
  const auto evaluator = Evaluator::make(d.graph);
  ASSERT_TRUE(evaluator.ok());
  const Tensor x = tensor(Shape{1, 2, 3}, {1, -2, 3, 4, 5, -6});
  const auto first = evaluator->run({{"x", x}});
  const auto second = evaluator->run({{"x", tensor(Shape{1, 2, 3}, {0, 0, 0, 0, 0, 1})}});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(floats_of(x), (F{1, -2, 3, 4, 5, -6}));
  EXPECT_EQ(floats_of(first->at("out")), (F{6, 5, 6, 12, 15, 0}));
  EXPECT_EQ(floats_of(second->at("out")), (F{0, 0, 1, 0, 0, 3}));
  // Memory of results that nobody holds serves again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(floats_of(evaluator->run({{"x", x}})->at("out")), (F{6, 5, 6, 12, 15, 0}));
  EXPECT_EQ(floats_of(first->at("out")), (F{6, 5, 6, 12, 15, 0}));
  EXPECT_EQ(floats_of(second->at("out")), (F{0, 0, 1, 0, 0, 3}));
}

TEST(Evaluator, AnInputAndAnIntermediateMayBeOutputs) {
  Diamond d;
  d.graph.add_output(d.x);
  d.graph.add_output(d.view);
  const auto evaluator = Evaluator::make(d.graph);
  ASSERT_TRUE(evaluator.ok());
  const auto result = evaluator->run({{"x", tensor(Shape{1, 2, 3}, {1, -2, 3, 4, 5, -6})}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(floats_of(result->at("x")), (F{1, -2, 3, 4, 5, -6}));
  EXPECT_EQ(floats_of(result->at("view")), (F{1, 0, 3, 4, 5, 0}));
}

TEST(Evaluator, LongChainsReuseTensorsAndStayRight) {
  Graph graph;
  ValueId v = graph.add_input("x", DType::kFloat32, Shape{1, 1, 64});
  const ValueId w = graph.add_constant("w", tensor(Shape{1, 1, 1}, {1.0F}));
  const ValueId b = graph.add_constant("b", tensor(Shape{1}, {1.0F}));
  ValueId middle;
  for (int i = 0; i < 50; ++i) {
    v = (*ops::add_node(graph, "Conv", "c" + std::to_string(i), {v, w, b}))[0];
    if (i == 20) middle = v;
  }
  graph.add_output(v);
  graph.add_output(middle);
  const auto evaluator = Evaluator::make(graph);
  ASSERT_TRUE(evaluator.ok());
  const auto result = evaluator->run({{"x", Tensor(DType::kFloat32, Shape{1, 1, 64})}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(floats_of(result->at("c49")), F(64, 50.0F));
  EXPECT_EQ(floats_of(result->at("c20")), F(64, 21.0F));
}

TEST(Evaluator, ShapesThatDependOnDataAreInferredInTheRun) {
  Graph graph;
  const ValueId x = graph.add_input("x", DType::kFloat32, Shape{2, 3});
  const ValueId shape = graph.add_input("shape", DType::kInt64, Shape{1});
  const ValueId y = (*ops::add_node(graph, "Reshape", "y", {x, shape}))[0];
  ASSERT_FALSE(graph.value(y).shape.has_value());
  graph.add_output(y);
  const auto evaluator = Evaluator::make(graph);
  ASSERT_TRUE(evaluator.ok());
  const auto result = evaluator->run({{"x", tensor(Shape{2, 3}, {1, 2, 3, 4, 5, 6})}, {"shape", Tensor::ints({6})}});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->at("y").shape().to_string(), "[6]");
}

TEST(Evaluator, ErrorsNameInputsNodesAndFile) {
  Diamond d;
  const auto evaluator = Evaluator::make(d.graph);
  ASSERT_TRUE(evaluator.ok());
  const auto message = [&](const Tensors& inputs) {
    const auto result = evaluator->run(inputs);
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_NE(message({}).find("input 'x': no data given"), std::string::npos) << message({});
  const Tensor good(DType::kFloat32, Shape{1, 2, 3});
  EXPECT_NE(message({{"x", good}, {"xx", good}}).find("no such input"), std::string::npos);
  EXPECT_NE(message({{"x", Tensor(DType::kFloat32, Shape{1, 2, 4})}})
                .find("given float32 [1, 2, 4], expected float32 [1, 2, 3]"),
            std::string::npos);
  EXPECT_NE(message({{"x", Tensor(DType::kInt32, Shape{1, 2, 3})}}).find("given int32"), std::string::npos);

  Graph unknown;
  unknown.source_file = "a.onnx";
  const ValueId x = unknown.add_input("x", DType::kFloat32, Shape{1});
  const ValueId y = unknown.add_value("y", DType::kFloat32, Shape{1});
  unknown.add_node("NoSuchOperator", "node7", {x}, {y});
  const auto made = Evaluator::make(unknown);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message().find("a.onnx: no float kernel for 'node7' (NoSuchOperator)"), std::string::npos)
      << made.error().message();

  Graph wrong;  // float64 data reach a float32 kernel
  wrong.source_file = "b.onnx";
  const ValueId p = wrong.add_input("p", DType::kFloat64, Shape{1, 1, 2});
  const ValueId w = wrong.add_constant("w", Tensor(DType::kFloat64, Shape{1, 1, 1}));
  const ValueId q = wrong.add_value("q", DType::kFloat64, Shape{1, 1, 2});
  wrong.add_node("Conv", "conv1", {p, w}, {q});
  const auto evaluator2 = Evaluator::make(wrong);
  ASSERT_TRUE(evaluator2.ok());
  const auto failed = evaluator2->run({{"p", Tensor(DType::kFloat64, Shape{1, 1, 2})}});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("b.onnx: node 'conv1' (Conv)"), std::string::npos)
      << failed.error().message();
}

TEST(Evaluator, SeededInputsRepeatAndDiffer) {
  Graph graph;
  graph.add_input("a", DType::kFloat32, Shape{1000});
  graph.add_input("b", DType::kFloat32, Shape{1000});
  graph.add_input("i", DType::kInt64, Shape{1000});
  graph.add_input("h", DType::kFloat16, Shape{4});
  const Tensors one = seeded_inputs(graph, 1);
  const Tensors again = seeded_inputs(graph, 1);
  const Tensors two = seeded_inputs(graph, 2);
  EXPECT_EQ(floats_of(one.at("a")), floats_of(again.at("a")));
  EXPECT_NE(floats_of(one.at("a")), floats_of(two.at("a")));
  EXPECT_NE(floats_of(one.at("a")), floats_of(one.at("b")));
  double sum = 0.0;
  for (const float v : one.at("a").as<float>()) {
    EXPECT_TRUE(v >= 0.0F && v < 1.0F);
    sum += v;
  }
  EXPECT_NEAR(sum / 1000.0, 0.5, 0.05);
  for (const int64_t v : one.at("i").as<int64_t>()) EXPECT_TRUE(v >= 0 && v < 10);
  EXPECT_EQ(one.at("h").dtype(), DType::kFloat16);
}

}  // namespace
}  // namespace openrknn::eval
