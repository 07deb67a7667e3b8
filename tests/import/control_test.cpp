// If, Loop, Scan and functions: what is written out, and what is refused with which words.
#include <gtest/gtest.h>

#include <algorithm>

#include "model_file.hpp"

namespace openrknn::import {
namespace {

std::string failure(const Result<Imported>& result) { return result.ok() ? "" : result.error().message(); }

pb::GraphProto& add_body(pb::NodeProto& node, const std::string& attribute) {
  auto* a = node.add_attribute();
  a->set_name(attribute);
  a->set_type(5);
  return *a->mutable_g();
}

void add_ports(pb::GraphProto& graph, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  for (const auto& name : inputs) graph.add_input()->set_name(name);
  for (const auto& name : outputs) graph.add_output()->set_name(name);
}

int64_t count(const Graph& graph, std::string_view op) {
  const auto nodes = graph.nodes();
  return std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op == op; });
}

// What an output of a model without inputs is.
std::vector<float> folded(const Imported& imported, const std::string& name) {
  const auto value = imported.graph.find_value(name);
  const Tensor* tensor = value ? imported.graph.constant(*value) : nullptr;
  if (tensor == nullptr) return {};
  const auto values = tensor->as<float>();
  return {values.begin(), values.end()};
}

// s = x; for i < trips: s = s + step, rows gets s. The body's initializer `step` is read by every iteration.
ModelBuilder counting_loop(int64_t trips, bool x_is_input = false) {
  ModelBuilder b;
  if (x_is_input) b.input("x", {2});
  if (!x_is_input) b.floats("x", {2}, {10, 20});
  b.ints("trips", {}, {trips});
  auto& node = b.node("Loop", {"trips", "", "x"}, {"last", "rows"}, "loop");
  auto& body = add_body(node, "body");
  add_ports(body, {"i", "go", "s"}, {"go_on", "next", "row"});
  ModelBuilder::set_floats(*body.add_initializer(), "step", {2}, {1, 2});
  ModelBuilder::fill(*body.add_node(), "Identity", {"go"}, {"go_on"});
  ModelBuilder::fill(*body.add_node(), "Add", {"s", "step"}, {"next"}, "grow");
  ModelBuilder::fill(*body.add_node(), "Identity", {"next"}, {"row"});
  ModelBuilder::set_type(*body.mutable_output(2), "row", {2});
  b.output("last").output("rows");
  return b;
}

TEST(Loop, IsWrittenOut) {
  const auto imported = import_built(counting_loop(3));
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(folded(*imported, "last"), (std::vector<float>{13, 26}));
  EXPECT_EQ(folded(*imported, "rows"), (std::vector<float>{11, 22, 12, 24, 13, 26}));
  const auto open = import_built(counting_loop(3, true));
  ASSERT_TRUE(open.ok()) << failure(open);
  EXPECT_EQ(count(open->graph, "Add"), 3);
  EXPECT_EQ(open->graph.value(*open->graph.find_value("rows")).shape, (Shape{3, 2}));
  const auto values = open->graph.values();
  const auto steps = std::count_if(values.begin(), values.end(), [&](ValueId id) {
    return open->graph.value(id).name.find("step") != std::string::npos;
  });
  EXPECT_EQ(steps, 1);  // constants of the body are not copied
}

TEST(Loop, MayRunNoIteration) {
  const auto imported = import_built(counting_loop(0));
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(folded(*imported, "last"), (std::vector<float>{10, 20}));
  EXPECT_EQ(imported->graph.value(*imported->graph.find_value("rows")).shape, (Shape{0, 2}));
  ModelBuilder unknown = counting_loop(0);
  unknown.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output(2)->clear_type();
  EXPECT_NE(failure(import_built(unknown)).find("no iteration"), std::string::npos);
}

// while (s < limit) s = s + s
ModelBuilder doubling_loop(bool s_is_input) {
  ModelBuilder b;
  if (s_is_input) b.input("s0", {});
  if (!s_is_input) b.floats("s0", {}, {3});
  b.floats("limit", {}, {20});
  b.node("Less", {"s0", "limit"}, {"first"});
  auto& node = b.node("Loop", {"", "first", "s0"}, {"last"}, "doubling");
  auto& body = add_body(node, "body");
  add_ports(body, {"i", "go", "s"}, {"go_on", "next"});
  ModelBuilder::fill(*body.add_node(), "Add", {"s", "s"}, {"next"});
  ModelBuilder::fill(*body.add_node(), "Less", {"next", "limit"}, {"go_on"});  // limit is of the graph around
  b.output("last");
  return b;
}

TEST(Loop, EndsByItsCondition) {
  const auto imported = import_built(doubling_loop(false));
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(folded(*imported, "last"), (std::vector<float>{24}));
}

TEST(Loop, RefusesWhatDependsOnData) {
  const std::string text = failure(import_built(doubling_loop(true)));
  for (const auto* part : {"'doubling' (Loop)", "its condition is not constant", "s0", "--input-value", "--output"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  ModelBuilder trips;
  trips.input("n", {}, 7).input("x", {2});
  auto& node = trips.node("Loop", {"n", "", "x"}, {"y"}, "open");
  auto& body = add_body(node, "body");
  add_ports(body, {"i", "go", "s"}, {"go", "next"});
  ModelBuilder::fill(*body.add_node(), "Wobble", {"s"}, {"next"}, "odd");
  trips.output("y");
  const std::string both = failure(import_built(trips));
  for (const auto* part : {"2 nodes", "'open' (Loop)", "trip count 'n' is not constant", "'odd' (Wobble)"})
    EXPECT_NE(both.find(part), std::string::npos) << part << " in " << both;
}

TEST(Loop, EndsAtTheLimit) {
  ImportOptions options;
  options.max_unrolled_nodes = 50;
  const std::string text = failure(import_built(counting_loop(1'000'000'000'000), options));
  for (const auto* part : {"1 node ", "51 nodes or more", "at most 50", "--max-unrolled"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  // An endless loop that does nothing.
  ModelBuilder empty;
  empty.input("x", {2}).output("y");
  auto& node = empty.node("Loop", {"", "", "x"}, {"y"});
  add_ports(add_body(node, "body"), {"i", "go", "s"}, {"go", "s"});
  EXPECT_NE(failure(import_built(empty)).find("--max-unrolled"), std::string::npos);
}

TEST(Loop, NamesAFaultOfItsBodyOnce) {
  ModelBuilder b = counting_loop(5, true);
  b.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(1)->set_op_type("Wobble");
  const std::string text = failure(import_built(b));
  EXPECT_NE(text.find("1 node cannot be imported"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'loop/grow' (Wobble)"), std::string::npos) << text;
}

TEST(Loop, NestedInABranchOfALoop) {
  // for i < 2: if (i == 1) for j < 3: s = s + i + j
  ModelBuilder b;
  b.floats("x", {}, {0}).ints("two", {}, {2}).ints("three", {}, {3}).ints("one", {}, {1});
  auto& outer = add_body(b.node("Loop", {"two", "", "x"}, {"y"}, "outer"), "body");
  add_ports(outer, {"i", "go", "s"}, {"go", "next"});
  ModelBuilder::fill(*outer.add_node(), "Equal", {"i", "one"}, {"is_last"});
  auto* choice = outer.add_node();
  ModelBuilder::fill(*choice, "If", {"is_last"}, {"next"});
  auto& then = add_body(*choice, "then_branch");
  add_ports(then, {}, {"t"});
  auto* inner_loop = then.add_node();
  ModelBuilder::fill(*inner_loop, "Loop", {"three", "", "s"}, {"t"});
  auto& inner = add_body(*inner_loop, "body");
  add_ports(inner, {"j", "go2", "r"}, {"go2", "sum"});
  ModelBuilder::fill(*inner.add_node(), "Add", {"i", "j"}, {"ij"});
  auto* cast = inner.add_node();
  ModelBuilder::fill(*cast, "Cast", {"ij"}, {"ij_float"});
  set_int(*cast, "to", 1);
  ModelBuilder::fill(*inner.add_node(), "Add", {"r", "ij_float"}, {"sum"});
  add_ports(add_body(*choice, "else_branch"), {}, {"s"});
  b.output("y");
  const auto imported = import_built(b);
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(folded(*imported, "y"), (std::vector<float>{6}));  // (1+0) + (1+1) + (1+2)
}

// Running sums of x along `axis`, from the last to the first when `reverse`.
ModelBuilder summing_scan(int64_t axis, bool reverse, int64_t out_axis) {
  ModelBuilder b;
  b.floats("x", {2, 3}, {1, 2, 3, 40, 50, 60}).floats("s0", {axis == 0 ? 3 : 2}, {0, 0, 0});
  if (axis != 0) b.graph().mutable_initializer(1)->mutable_float_data()->Truncate(2);
  auto& node = b.node("Scan", {"s0", "x"}, {"last", "rows"}, "scan");
  set_int(node, "num_scan_inputs", 1);
  set_ints(node, "scan_input_axes", {axis});
  set_ints(node, "scan_input_directions", {reverse ? 1 : 0});
  set_ints(node, "scan_output_axes", {out_axis});
  set_ints(node, "scan_output_directions", {reverse ? 1 : 0});
  auto& body = add_body(node, "body");
  add_ports(body, {"s", "e"}, {"next", "row"});
  ModelBuilder::fill(*body.add_node(), "Add", {"s", "e"}, {"next"});
  ModelBuilder::fill(*body.add_node(), "Identity", {"next"}, {"row"});
  b.output("last").output("rows");
  return b;
}

TEST(Scan, AxesAndDirections) {
  const auto run = [](const ModelBuilder& b, const std::string& name) {
    const auto imported = import_built(b);
    EXPECT_TRUE(imported.ok()) << failure(imported);
    return imported.ok() ? folded(*imported, name) : std::vector<float>{};
  };
  EXPECT_EQ(run(summing_scan(0, false, 0), "rows"), (std::vector<float>{1, 2, 3, 41, 52, 63}));
  EXPECT_EQ(run(summing_scan(0, true, 0), "rows"), (std::vector<float>{41, 52, 63, 40, 50, 60}));
  EXPECT_EQ(run(summing_scan(1, false, -1), "rows"), (std::vector<float>{1, 3, 6, 40, 90, 150}));
  EXPECT_EQ(run(summing_scan(-1, false, 0), "rows"), (std::vector<float>{1, 40, 3, 90, 6, 150}));
  EXPECT_EQ(run(summing_scan(1, false, 0), "last"), (std::vector<float>{6, 150}));
}

TEST(Scan, RefusesWhatDoesNotFit) {
  ModelBuilder count = summing_scan(0, false, 0);
  count.graph().mutable_node(0)->mutable_attribute(0)->set_i(7);
  EXPECT_NE(failure(import_built(count)).find("num_scan_inputs"), std::string::npos);
  ModelBuilder axes = summing_scan(0, false, 0);
  axes.graph().mutable_node(0)->mutable_attribute(1)->add_ints(1);
  EXPECT_NE(failure(import_built(axes)).find("scan_input_axes"), std::string::npos);
  ModelBuilder far = summing_scan(5, false, 0);
  EXPECT_NE(failure(import_built(far)), "");
  ModelBuilder long_one;
  long_one.input("x", {1 << 20, 1}).output("y");
  auto& node = long_one.node("Scan", {"x"}, {"y"});
  set_int(node, "num_scan_inputs", 1);
  add_ports(add_body(node, "body"), {"e"}, {"e"});
  EXPECT_NE(failure(import_built(long_one)).find("--max-unrolled"), std::string::npos);
}

TEST(If, SaysWhatDecidesIt) {
  ModelBuilder b;
  b.input("x", {3}).input("rate", {}, 7).output("y");
  b.ints("wide", {}, {16000});
  b.node("Equal", {"rate", "wide"}, {"is_wide"});
  auto& node = b.node("If", {"is_wide"}, {"y"}, "choice");
  for (const auto* branch : {"then_branch", "else_branch"}) {
    auto& graph = add_body(node, branch);
    ModelBuilder::fill(*graph.add_node(), branch[0] == 't' ? "Relu" : "Wobble", {"x"}, {"inner"}, "inside");
    add_ports(graph, {}, {"inner"});
  }
  const std::string text = failure(import_built(b));
  for (const auto* part : {"condition 'is_wide' is not constant", "data of rate", "--input-value", "'inside' (Wobble)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  ImportOptions options;
  options.input_values.emplace("rate", Tensor::scalar<int64_t>(16000));
  EXPECT_EQ(failure(import_built(b, options)), "");
}

pb::FunctionProto& add_function(ModelBuilder& b, const std::string& name) {
  auto* f = b.model().add_functions();
  f->set_name(name);
  f->set_domain("local");
  f->add_input("in");
  f->add_output("out");
  f->add_opset_import()->set_version(13);
  return *f;
}

TEST(Function, DefaultsOfAttributesAndNestedCalls) {
  ModelBuilder b;
  b.floats("x", {2}, {-1, 2});
  b.node("Outer", {"x"}, {"y"}, "plain").set_domain("local");
  auto& given = b.node("Outer", {"x"}, {"z"}, "given");
  given.set_domain("local");
  set_float(given, "slope", 0.25F);
  b.output("y").output("z");
  auto& outer = add_function(b, "Outer");
  auto* fallback = outer.add_attribute_proto();
  fallback->set_name("slope");
  fallback->set_type(1);
  fallback->set_f(0.5F);
  auto* call = outer.add_node();
  ModelBuilder::fill(*call, "Inner", {"in"}, {"out"});
  call->set_domain("local");
  auto& inner = add_function(b, "Inner");
  inner.add_attribute("alpha");
  auto* leaky = inner.add_node();
  ModelBuilder::fill(*leaky, "LeakyRelu", {"in"}, {"out"});
  for (auto [node, own, from] : {std::tuple(call, "alpha", "slope"), std::tuple(leaky, "alpha", "alpha")}) {
    auto* a = node->add_attribute();
    a->set_name(own);
    a->set_type(1);
    a->set_ref_attr_name(from);
  }
  const auto imported = import_built(b);
  ASSERT_TRUE(imported.ok()) << failure(imported);
  EXPECT_EQ(folded(*imported, "y"), (std::vector<float>{-0.5F, 2}));
  EXPECT_EQ(folded(*imported, "z"), (std::vector<float>{-0.25F, 2}));
}

TEST(Function, RecursionIsNamed) {
  ModelBuilder b;
  b.input("x", {2}).output("y");
  b.node("A", {"x"}, {"y"}).set_domain("local");
  for (const auto& [name, callee] : {std::pair("A", "B"), std::pair("B", "A")}) {
    auto& f = add_function(b, name);
    for (const auto* output : {"out", "twice"}) {
      auto* call = f.add_node();
      ModelBuilder::fill(*call, callee, {"in"}, {output});
      call->set_domain("local");
    }
  }
  const std::string text = failure(import_built(b));
  EXPECT_NE(text.find("calls itself: A > B > A"), std::string::npos) << text;
}

TEST(Function, GrowthWithoutBoundEnds) {
  // Every function calls the next one twice: 2^31 nodes from a few lines.
  ModelBuilder b;
  b.input("x", {2}).output("y");
  b.node("F0", {"x"}, {"y"}).set_domain("local");
  for (int i = 0; i < 31; ++i) {
    auto& f = add_function(b, "F" + std::to_string(i));
    auto* first = f.add_node();
    auto* second = f.add_node();
    ModelBuilder::fill(*first, i == 30 ? "Relu" : "F" + std::to_string(i + 1), {"in"}, {"middle"});
    ModelBuilder::fill(*second, i == 30 ? "Relu" : "F" + std::to_string(i + 1), {"middle"}, {"out"});
    if (i < 30) first->set_domain("local");
    if (i < 30) second->set_domain("local");
  }
  const std::string text = failure(import_built(b));
  EXPECT_NE(text.find("more than"), std::string::npos) << text;
  EXPECT_LT(text.size(), 2000U);
}

}  // namespace
}  // namespace openrknn::import
