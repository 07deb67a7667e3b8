#include "ir/text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace openrknn {
namespace {

constexpr const char* kSample = R"(graph "sample" {
  input %x: float32[1,3,8,8]
  const %w: float32[4,3,1,1] = {0.5, -1.0, 1e-05, 3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
  const %shape: int64[2] = {1, -1}
  const %"odd name:0": bool[2] = {1, 0}
  %y: float32[1,4,8,8] quant(int8, tensor, [0.5], [-3]) aka ["old y", "older"] = Conv(%x, %w, _) {alpha=0.5, auto_pad="VALID", group=1, kernel_shape=[1, 1], none=[], scales=[1.0, 2.5], value=int32[2]{7, 8}} "conv1" from ["a", "b"]
  %p: float32[1,2,8,8], _ = Split(%y) {axis=1}
  %open: float32[?] = Reshape(%p, %shape)
  output %open
}
)";

Graph parsed(std::string_view text) {
  auto graph = parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().message();
    return {};
  }
  return *std::move(graph);
}

TEST(Text, ParsePrintIsTheIdentity) { EXPECT_EQ(print_graph(parsed(kSample)), kSample); }

TEST(Text, EveryPartIsRead) {
  const Graph g = parsed(kSample);
  EXPECT_EQ(g.name, "sample");
  const Value& y = g.value(*g.find_value("y"));
  EXPECT_EQ(*y.shape, (Shape{1, 4, 8, 8}));
  EXPECT_EQ(*y.quant, QuantParams::per_tensor(DType::kInt8, 0.5F, -3));
  EXPECT_EQ(*g.find_value("older"), *g.find_value("y"));
  const Node& conv = g.node(y.producer);
  EXPECT_EQ(conv.name, "conv1");
  EXPECT_FALSE(conv.inputs[2].valid());
  EXPECT_EQ(conv.source.nodes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(conv.attributes.ints_or("kernel_shape", {}), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(conv.attributes.floats_or("scales", {}), (std::vector<float>{1, 2.5F}));
  EXPECT_EQ(conv.attributes.string_or("auto_pad", ""), "VALID");
  ASSERT_NE(conv.attributes.get<float>("alpha"), nullptr);
  ASSERT_NE(conv.attributes.get<std::vector<int64_t>>("none"), nullptr);
  EXPECT_EQ(to_ints(conv.attributes.get<Tensor>("value")->view()), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(g.constant(*g.find_value("odd name:0"))->dtype(), DType::kBool);
  EXPECT_FALSE(g.value(*g.find_value("open")).shape.has_value());
}

TEST(Text, ShortFormsForTests) {
  const Graph g = parsed(R"(
    // a comment
    graph "t" {
      input %x: float32[2]   // another
      const %a: int8[100] = seeded(7, -100, 100)
      const %b: int64[3] = fill(9007199254740993)
      %y = Relu(%x)
      output %y
    })");
  EXPECT_EQ(g.value(*g.find_value("y")).dtype, DType::kUndefined);
  EXPECT_EQ(to_ints(g.constant(*g.find_value("b"))->view()), (std::vector<int64_t>(3, 9007199254740993)));
  const auto a = to_ints(g.constant(*g.find_value("a"))->view());
  EXPECT_LT(*std::min_element(a.begin(), a.end()), -50);
  EXPECT_GT(*std::max_element(a.begin(), a.end()), 50);
  const Graph again = parsed("graph \"t\" { const %a: int8[100] = seeded(7, -100, 100) }");
  EXPECT_EQ(to_ints(again.constant(*again.find_value("a"))->view()), a);
}

TEST(Text, NumbersSurviveExactly) {
  std::mt19937 random(3);
  std::vector<float> values{0.0F,
                            -0.0F,
                            1.0F,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max()};
  while (values.size() < 2000) {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(v)) values.push_back(v);
  }
  Graph g;
  g.add_constant("f", Tensor::from(Shape{static_cast<int64_t>(values.size())}, values));
  g.add_constant("h", cast(g.constant(*g.find_value("f"))->view(), DType::kFloat16));
  g.add_constant("d", cast(g.constant(*g.find_value("f"))->view(), DType::kFloat64));
  g.add_constant("u", Tensor::from<uint64_t>(Shape{2}, std::vector<uint64_t>{UINT64_MAX, 0}));
  g.add_constant("i", Tensor::ints({INT64_MIN, INT64_MAX}));
  g.add_constant("nan", Tensor::scalar(std::numeric_limits<float>::quiet_NaN()));
  const Graph back = parsed(print_graph(g, {.max_constant_elements = 5000}));
  for (const char* name : {"f", "h", "d", "u", "i"}) {
    const Tensor& a = *g.constant(*g.find_value(name));
    const Tensor& b = *back.constant(*back.find_value(name));
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << name;
  }
  EXPECT_TRUE(std::isnan(back.constant(*back.find_value("nan"))->as<float>()[0]));
}

TEST(Text, StrangeNamesAreQuoted) {
  Graph g;
  g.name = "quote \" and \\ and \n and \x01";
  const ValueId x = g.add_input("a b:0%\"", DType::kFloat32, Shape{});
  const ValueId y = g.add_value("/Model/conv-1.x#2", DType::kFloat32, Shape{});
  g.add_node("Relu", "node \"n\"", {x}, {y});
  g.add_output(y);
  const std::string text = print_graph(g);
  const Graph back = parsed(text);
  EXPECT_EQ(back.name, g.name);
  EXPECT_EQ(print_graph(back), text);
  EXPECT_NE(text.find("%/Model/conv-1.x#2"), std::string::npos);
}

TEST(Text, LargeConstantsAreElidedAndRefusedByName) {
  Graph g;
  g.add_constant("big", Tensor(DType::kInt8, Shape{100}));
  const std::string text = print_graph(g);
  EXPECT_NE(text.find("<100 values, "), std::string::npos);
  const auto back = parse_graph(text);
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.error().why.find("left out"), std::string::npos);
}

struct Wrong {
  const char* text;
  const char* where;
  const char* why;
};

TEST(Text, ErrorsGiveLineAndColumn) {
  const std::vector<Wrong> cases{
      {"grap \"t\" {}", "line 1 column 1", "'graph' expected, 'grap' found"},
      {"graph \"t\" {\n  input %x float32[1]\n}", "line 2 column 12", "needs a type"},
      {"graph \"t\" {\n  input %x: floot32[1]\n}", "line 2 column 13", "an element type expected, 'floot32' found"},
      {"graph \"t\" {\n  input %x: float32[-1]\n}", "line 2", "negative"},
      {"graph \"t\" {\n  input %x: float32[1]\n  %y = Relu(%z)\n}", "line 3 column 13", "'z' found"},
      {"graph \"t\" {\n  input %x: float32[1]\n  %x = Relu(%x)\n}", "line 4", "defined twice"},
      {"graph \"t\" {\n  const %x: int8[2] = {1}\n}", "line 2 column 25", "1 values for [2]"},
      {"graph \"t\" {\n  const %x: int8[1] = {300}\n}", "line 2", "'300' is no int8"},
      {"graph \"t\" {\n  const %x: int8[1] = {1.5}\n}", "line 2", "'1.5' is no int8"},
      {"graph \"t\" {\n  const %x: float32[1] = {1.5e}\n}", "line 2 column 27", "a number expected"},
      {"graph \"t\" {\n  output %y\n}", "line 2 column 10", "'y' found"},
      {"graph \"t\" {\n  input %x: float32[1]\n  %y = Relu(%x) {a=1, a=2}\n}", "line 3", "given twice"},
      {"graph \"t", "line 1 column 7", "does not end"},
      {"graph \"t\" {\n  !", "line 2 column 3", "begins nothing"},
      {"graph \"t\" {", "line 1 column 12", "the end found"},
      {"graph \"t\" {} x", "line 1 column 14", "nothing more expected"},
      {"graph \"t\" {\n  const %x: float32[1000000000,1000000000,1000000000] = fill(1)\n}", "line 2", "overflows"},
  };
  for (const Wrong& c : cases) {
    const auto graph = parse_graph(c.text, "file");
    if (graph.ok()) {
      ADD_FAILURE() << "parsed: " << c.text;
      continue;
    }
    EXPECT_NE(graph.error().where.find(std::string("file ") + c.where), std::string::npos) << c.text << "\n"
                                                                                           << graph.error().message();
    EXPECT_NE(graph.error().why.find(c.why), std::string::npos) << c.text << "\n" << graph.error().message();
  }
}

TEST(Text, DamagedTextNeverCrashes) {
  std::mt19937 random(9);
  const std::string sample = kSample;
  for (int round = 0; round < 3000; ++round) {
    std::string text = sample;
    for (int k = 0; k < 3; ++k) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 8);
      else
        text.insert(at, 1, sample[random() % sample.size()]);
    }
    const auto graph = parse_graph(text);
    if (graph.ok()) {
      EXPECT_TRUE(graph->verify().ok());
    }
  }
}

}  // namespace
}  // namespace openrknn
