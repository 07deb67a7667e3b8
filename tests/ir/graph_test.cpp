#include "ir/graph.hpp"

#include <gtest/gtest.h>

namespace openrknn {
namespace {

// x -> Relu -> a -> Add(a, a) -> y (output); names as comments would have them.
struct Small {
  Graph g;
  ValueId x = g.add_input("x", DType::kFloat32, Shape{2});
  ValueId a = g.add_value("a", DType::kFloat32, Shape{2});
  ValueId y = g.add_value("y", DType::kFloat32, Shape{2});
  NodeId relu = g.add_node("Relu", "", {x}, {a});
  NodeId add = g.add_node("Add", "sum", {a, a}, {y});
  Small() { g.add_output(y); }
};

TEST(Graph, NodesAndValuesKnowEachOther) {
  Small s;
  ASSERT_TRUE(s.g.verify().ok());
  EXPECT_EQ(s.g.node(s.relu).name, "a");
  EXPECT_EQ(s.g.value(s.a).producer, s.relu);
  EXPECT_EQ(s.g.value(s.a).users.size(), 2U);
  EXPECT_FALSE(s.g.only_use(s.a).has_value());
  EXPECT_EQ(s.g.only_use(s.x)->node, s.relu);
  EXPECT_FALSE(s.g.only_use(s.y).has_value());
  EXPECT_EQ(s.g.node_count(), 2U);
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g;
  const ValueId first = g.add_input("x", DType::kFloat32, Shape{1});
  const ValueId second = g.add_value("x", DType::kFloat32, Shape{1});
  const ValueId third = g.add_constant("x", Tensor::scalar(1.0F));
  EXPECT_EQ(g.value(first).name, "x");
  EXPECT_EQ(g.value(second).name, "x#1");
  EXPECT_EQ(g.value(third).name, "x#2");
  EXPECT_EQ(*g.find_value("x#2"), third);
  EXPECT_FALSE(g.find_value("z").has_value());
}

TEST(Graph, ReplaceUsesMovesReadersAndOutputs) {
  Small s;
  s.g.replace_uses(s.a, s.x);
  EXPECT_TRUE(s.g.value(s.a).users.empty());
  EXPECT_EQ(s.g.value(s.x).users.size(), 3U);
  s.g.replace_uses(s.y, s.a);
  EXPECT_EQ(s.g.outputs()[0], s.a);
  ASSERT_TRUE(s.g.verify().ok());
  s.g.remove_node(s.add);
  EXPECT_FALSE(s.g.value(s.y).alive);
  EXPECT_TRUE(s.g.verify().ok());
  EXPECT_FALSE(s.g.find_value("y").has_value());
}

TEST(Graph, RemovedNodesKeepOutputsThatAreRead) {
  Small s;
  s.g.remove_node(s.relu);
  EXPECT_TRUE(s.g.value(s.a).alive);
  EXPECT_NE(s.g.verify().error().why.find("0 origins"), std::string::npos);
  s.g.make_constant(s.a, Tensor::from<float>(Shape{2}, std::vector<float>{1, 2}));
  EXPECT_TRUE(s.g.verify().ok());
}

TEST(Graph, MakeConstantDetachesProducerAndInput) {
  Small s;
  s.g.make_constant(s.a, Tensor::from<float>(Shape{2}, std::vector<float>{1, 2}));
  EXPECT_FALSE(s.g.node(s.relu).outputs[0].valid());
  EXPECT_TRUE(s.g.verify().ok());
  s.g.make_constant(s.x, Tensor::from<float>(Shape{2}, std::vector<float>{1, 2}));
  EXPECT_TRUE(s.g.inputs().empty());
  EXPECT_TRUE(s.g.verify().ok());
}

TEST(Graph, InputsCanBeSetAppendedAndLeftOut) {
  Small s;
  const ValueId c = s.g.add_constant("c", Tensor::from<float>(Shape{2}, std::vector<float>{1, 2}));
  s.g.set_input(s.add, 1, c);
  s.g.append_input(s.add, c);
  EXPECT_EQ(s.g.value(c).users, (std::vector<Use>{{s.add, 1}, {s.add, 2}}));
  s.g.set_input(s.add, 1, ValueId{});
  EXPECT_EQ(s.g.value(c).users, (std::vector<Use>{{s.add, 2}}));
  EXPECT_TRUE(s.g.verify().ok());
}

TEST(Graph, TakeNameKeepsTheOtherAsAnAlias) {
  Small s;
  s.g.value(s.y).aliases = {"older"};
  s.g.take_name(s.a, s.y);
  EXPECT_EQ(s.g.value(s.a).name, "y");
  EXPECT_EQ(s.g.value(s.a).aliases, (std::vector<std::string>{"a", "older"}));
  EXPECT_EQ(*s.g.find_value("a"), s.a);
  EXPECT_EQ(*s.g.find_value("older"), s.a);
  EXPECT_EQ(*s.g.find_value("y"), s.a);
  EXPECT_TRUE(s.g.verify().ok());
  s.g.take_name(s.a, s.a);
  EXPECT_EQ(s.g.value(s.a).name, "y");
  EXPECT_EQ(s.g.value(s.a).aliases.size(), 2U);
}

TEST(Graph, TopologicalOrderIsDeterministic) {
  Graph g;
  const ValueId x = g.add_input("x", DType::kFloat32, Shape{1});
  const ValueId a = g.add_value("a", DType::kFloat32, Shape{1});
  const ValueId b = g.add_value("b", DType::kFloat32, Shape{1});
  const ValueId c = g.add_value("c", DType::kFloat32, Shape{1});
  const NodeId last = g.add_node("Add", "", {a, b}, {c});
  const NodeId second = g.add_node("Neg", "", {x}, {b});
  const NodeId third = g.add_node("Abs", "", {x}, {a});
  g.add_output(c);
  EXPECT_EQ(*g.topological_order(), (std::vector<NodeId>{second, third, last}));
}

TEST(Graph, CyclesNameANodeInside) {
  Graph g;
  const ValueId a = g.add_value("a", DType::kFloat32, Shape{1});
  const ValueId b = g.add_value("b", DType::kFloat32, Shape{1});
  const ValueId c = g.add_value("c", DType::kFloat32, Shape{1});
  g.add_node("Neg", "after", {b}, {c});
  g.add_node("Neg", "one", {b}, {a});
  g.add_node("Neg", "two", {a}, {b});
  g.add_output(c);
  const auto order = g.topological_order();
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.error().why.find("after"), std::string::npos) << order.error().why;
  EXPECT_FALSE(g.verify().ok());
}

TEST(Graph, VerifyFindsWhatDisagrees) {
  {
    Small s;
    s.g.add_node("Neg", "again", {s.x}, {s.y});
    EXPECT_NE(s.g.verify().error().why.find("another producer"), std::string::npos);
  }
  {
    Small s;
    s.g.value(s.a).users.pop_back();
    EXPECT_NE(s.g.verify().error().why.find("does not know its reader"), std::string::npos);
  }
  {
    Small s;
    s.g.value(s.a).users.push_back(s.g.value(s.a).users[0]);
    EXPECT_NE(s.g.verify().error().why.find("twice"), std::string::npos);
  }
  {
    Small s;
    s.g.value(s.a).name = "x";
    EXPECT_FALSE(s.g.verify().ok());
  }
  {
    Small s;
    s.g.value(s.a).quant = QuantParams::per_tensor(DType::kInt8, -1.0F, 0);
    EXPECT_NE(s.g.verify().error().where.find("a"), std::string::npos);
  }
  {
    Small s;
    s.g.remove_value(s.g.add_value("lone", DType::kFloat32, Shape{1}));
    s.g.add_output(ValueId{});
    EXPECT_NE(s.g.verify().error().why.find("output is gone"), std::string::npos);
  }
}

}  // namespace
}  // namespace openrknn
