#include "model/container.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "model/builder.hpp"

namespace openrknn::model {
namespace {

using test::Builder;
using test::Random;

// Every kind of field at least once.
Program sample() {
  Builder b;
  Random random(7);
  const int x = b.int8("input \xC3\xA4", Shape{1, 5, 6, 7}, 0.1F, 3);
  const int y = b.int8("y", Shape{1, 9, 6, 7}, 1.0F / 3, -4);
  const int z = b.int8("z", Shape{1, 9, 6, 7}, 0.7F, 0);
  const int plain = b.plain("plain", DType::kFloat32, Shape{1, 9, 6, 7});
  b.input("in", x);
  b.program().inputs[0].mean = {1, 2, 3, 4, 5.5F};
  b.program().inputs[0].std_dev = {1, 2, 3, 4, 0.1F};
  Convolution c;
  c.kernel = {3, 3};
  c.pad = {1, 1, 1, 1};
  c.pad_value = 3;
  c.in_channels = 5;
  c.out_channels = 9;
  QuantParams q;
  q.granularity = Granularity::kChannel;
  for (int i = 0; i < 9; ++i) {
    q.scales.push_back(random.real(1e-4F, 1e-2F));
    q.zero_points.push_back(i);
  }
  c.weight_quant = q;
  const auto w = random.bytes(9 * 5 * 9);
  c.weights = b.blob(pack_weights(c, std::as_bytes(std::span(w))));
  ChannelParams params{std::vector<int32_t>(9, 17), std::vector<int32_t>(9, -3), std::vector<int32_t>(9, 20000)};
  c.params = b.blob(pack_params(b.program().profile, params));
  Task& conv = b.task(TaskKind::kConv, "Conv", {x}, {y});
  conv.conv = c;
  conv.requant = Requant{false, 14, 14, 17000, 15, -4};
  conv.activation.kind = ActivationKind::kClamp;
  conv.activation.function = "Clip";
  conv.activation.fmax = std::numeric_limits<float>::infinity();
  conv.activation.max = 1000;
  conv.source = {"node1", "node2"};
  b.tile(conv, 32, 2, 100);
  Task& add = b.task(TaskKind::kElementwise, "Add", {y, y}, {z});
  add.requant = Requant{false, 0, 0, 1, 1, 0};
  add.operands = {Operand{4, 1, 0}, Operand{4, 1, 0}};
  Task& convert = b.task(TaskKind::kConvert, "exDataConvert", {z}, {plain});
  convert.attributes.set("axis", 3);
  convert.attributes.set("alpha", 0.1F);
  convert.attributes.set("mode", "nearest");
  convert.attributes.set("pads", std::vector<int64_t>{1, -2});
  convert.attributes.set("scales", std::vector<float>{0.1F, -INFINITY});
  convert.attributes.set("names", std::vector<std::string>{"a", "\xFF\x01"});
  convert.attributes.set("value", Tensor::from<float>(Shape{2}, std::vector<float>{1.5F, -0.0F}));
  b.output("out", plain);
  b.program().graph_text = "graph {\n}\n";
  b.program().provenance = R"({"tool": "test"})";
  return b.finish();
}

std::span<const std::byte> view(const std::vector<std::byte>& bytes) { return bytes; }

TEST(Container, RoundTripKeepsEverything) {
  const Program p = sample();
  ASSERT_TRUE(validate(p).ok()) << validate(p).error().message();
  const auto bytes = serialize(p);
  EXPECT_EQ(serialize(p), bytes);
  auto back = parse_program(bytes, "memory");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(serialize(*back), bytes);
  const auto& t = back->tasks[2].attributes;
  EXPECT_EQ(t.float_or("alpha", 0), 0.1F);
  EXPECT_EQ(t.floats_or("scales", {})[1], -INFINITY);
  EXPECT_EQ((*t.get<std::vector<std::string>>("names"))[1], "\xFF\x01");
  EXPECT_TRUE(std::signbit(t.get<Tensor>("value")->as<float>()[1]));
  EXPECT_EQ(back->tasks[0].conv->weight_quant, p.tasks[0].conv->weight_quant);
  EXPECT_EQ(back->tasks[0].activation.fmax, std::numeric_limits<float>::infinity());
  EXPECT_EQ(back->tensors[0].name, "input \xC3\xA4");
  EXPECT_EQ(back->tensors[1].quant, p.tensors[1].quant);
  EXPECT_EQ(back->inputs[0].std_dev, p.inputs[0].std_dev);
  EXPECT_EQ(back->graph_text, p.graph_text);
  ASSERT_EQ(back->tasks[0].tiles.size(), 3U);
  EXPECT_EQ(back->tasks[0].tiles[1].ihs, 4);
  EXPECT_TRUE(std::equal(back->weights->bytes().begin(), back->weights->bytes().end(), p.weights->bytes().begin(),
                         p.weights->bytes().end()));
}

TEST(Container, FilesAreMappedAndWeightsAligned) {
  const Program p = sample();
  const std::string path = testing::TempDir() + "container_test.rknn";
  ASSERT_TRUE(write_program(p, path).ok());
  const auto back = read_program(path);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back->weights->bytes().data()) % 64, 0U);
  EXPECT_EQ(serialize(*back), serialize(p));
  EXPECT_EQ(std::filesystem::file_size(path), serialize(p).size());
  std::filesystem::remove(path);
  EXPECT_EQ(read_program(path).error().code, ErrorCode::kNotFound);
}

TEST(Container, EveryTruncationIsAnError) {
  const auto bytes = serialize(sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto r = parse_program(view(bytes).first(n), "cut.rknn");
    ASSERT_FALSE(r.ok()) << n;
    EXPECT_EQ(r.error().where.rfind("cut.rknn", 0), 0U);
    EXPECT_FALSE(r.error().why.empty());
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_program(longer, "long.rknn").ok());
}

TEST(Container, CorruptionIsAnErrorOrChangesNothing) {
  const auto bytes = serialize(sample());
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    auto damaged = bytes;
    const int64_t changes = random.between(1, 4);
    for (int64_t k = 0; k < changes; ++k)
      damaged[static_cast<size_t>(random.between(0, static_cast<int64_t>(bytes.size()) - 1))] ^=
          static_cast<std::byte>(random.between(1, 255));
    const auto r = parse_program(damaged, "damaged.rknn");
    if (r.ok()) {
      EXPECT_EQ(serialize(*r), bytes);
    }
  }
}

TEST(Container, VendorFilesAreRecognisedAndRefused) {
  const std::string vendor("RKNN\0\0\0\0\6\0\0\0", 12);
  const auto bytes = std::as_bytes(std::span(vendor));
  EXPECT_TRUE(looks_like_rknn(bytes));
  const auto r = parse_program(bytes, "vendor.rknn");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(r.error().message().find("vendor"), std::string::npos);
  EXPECT_TRUE(looks_like_rknn(view(serialize(sample()))));
  EXPECT_FALSE(looks_like_rknn(std::as_bytes(std::span(std::string_view("ONNX....")))));
}

TEST(Container, OverheadIsSmall) {
  const Program p = sample();
  EXPECT_LT(serialize(p).size(), p.weights->bytes().size() * 11 / 10 + 65536);
}

}  // namespace
}  // namespace openrknn::model
