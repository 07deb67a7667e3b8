#include "npu/tiling.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/checked.hpp"
#include "model/codec.hpp"

namespace openrknn::npu {
namespace {

struct Case {
  model::Convolution conv;
  model::TensorDesc input, output;
};

model::TensorDesc cube_tensor(int64_t c, int64_t h, int64_t w, DType dtype, int c2) {
  model::TensorDesc t;
  t.name = "t";
  t.dtype = dtype;
  t.shape = Shape{1, c, h, w};
  t.cube = {1, c, h, w};
  t.c2 = c2;
  model::set_dense_strides(t, 1, 1);
  return t;
}

Case random_case(std::mt19937& random, const target::Target& target, bool half) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const std::string dtype = half ? "float16" : "int8";
  const target::Lanes& lanes = target.lanes.at(dtype);
  const DType d = half ? DType::kFloat16 : DType::kInt8;
  Case c;
  const bool depthwise = pick(0, 3) == 0;
  const int ic = pick(0, 1) ? pick(1, 64) : pick(65, 1200);
  const int oc = depthwise ? ic : (pick(0, 1) ? pick(1, 64) : pick(65, 1500));
  const int kh = pick(1, 7);
  const int kw = pick(1, 7);
  const int h = pick(kh, 120);
  const int w = pick(kw, 300);
  c.conv.mode = depthwise ? model::ConvMode::kDepthwise : model::ConvMode::kDirect;
  c.conv.kernel = {kh, kw};
  c.conv.stride = {pick(1, 3), pick(1, 3)};
  c.conv.pad = {pick(0, kh - 1), pick(0, kw - 1), pick(0, kh - 1), pick(0, kw - 1)};
  c.conv.in_channels = ic;
  c.conv.out_channels = oc;
  c.conv.weight_dtype = d;
  c.conv.channel_group = depthwise ? lanes.depthwise_group : lanes.channel_group;
  const int64_t oh = (h + c.conv.pad[0] + c.conv.pad[2] - kh) / c.conv.stride[0] + 1;
  const int64_t ow = (w + c.conv.pad[1] + c.conv.pad[3] - kw) / c.conv.stride[1] + 1;
  c.input = cube_tensor(ic, h, w, d, lanes.c2);
  c.output = cube_tensor(oc, oh, ow, d, lanes.c2);
  c.conv.kernel_group = depthwise ? 1 : kernel_group_that_fits(target, lanes, c.conv, c.input);
  return c;
}

void expect_covers(const std::vector<model::Tile>& tiles, const model::Cube& out) {
  int64_t area = 0;
  for (const model::Tile& t : tiles) {
    ASSERT_GE(t.oc, 0);
    ASSERT_LE(t.oc + t.ocs, out.c);
    ASSERT_LE(t.oh + t.ohs, out.h);
    ASSERT_LE(t.ow + t.ows, out.w);
    area += int64_t{t.ocs} * t.ohs * t.ows;
  }
  ASSERT_EQ(area, out.n * out.c * out.h * out.w);
  for (size_t i = 0; i < tiles.size(); ++i) {
    for (size_t j = i + 1; j < tiles.size() && j < i + 50; ++j) {
      const model::Tile& a = tiles[i];
      const model::Tile& b = tiles[j];
      const bool apart = a.n != b.n || a.oc + a.ocs <= b.oc || b.oc + b.ocs <= a.oc || a.oh + a.ohs <= b.oh ||
                         b.oh + b.ohs <= a.oh || a.ow + a.ows <= b.ow || b.ow + b.ows <= a.ow;
      ASSERT_TRUE(apart);
    }
  }
}

TEST(Tiling, CoversTheOutputAndFitsTheBufferOnAllTargets) {
  for (const target::Target& target : target::all()) {
    std::mt19937 random(7);
    for (int round = 0; round < 150; ++round) {
      const bool half = target.supports("fp16") && (round % 2 == 0 || !target.supports("w8a8"));
      if (!half && !target.supports("w8a8")) continue;
      const Case c = random_case(random, target, half);
      ASSERT_GT(c.conv.kernel_group, 0) << target.name;
      const auto tiles = tile_convolution(target, {}, c.conv, c.input, c.output);
      ASSERT_TRUE(tiles.ok()) << target.name << ": " << tiles.error().message();
      expect_covers(*tiles, c.output.cube);
      for (const model::Tile& t : *tiles) {
        ASSERT_LE(t.data_banks + t.weight_banks, target.cbuf.banks);
        ASSERT_EQ(t.oc % (c.conv.mode == model::ConvMode::kDepthwise ? c.conv.channel_group : c.conv.kernel_group), 0);
        // Every tap of every output lies in the window or in the tile's padding.
        const int64_t top = int64_t{t.oh} * c.conv.stride[0] - c.conv.pad[0];
        const int64_t bottom = int64_t{t.oh + t.ohs - 1} * c.conv.stride[0] - c.conv.pad[0] + c.conv.kernel[0] - 1;
        if (t.ihs > 0) {
          ASSERT_EQ(t.ih, std::max<int64_t>(0, top));
          ASSERT_EQ(t.ih + t.ihs - 1, std::min<int64_t>(c.input.cube.h - 1, bottom));
        }
        ASSERT_LE(t.ih + t.ihs, c.input.cube.h);
        ASSERT_LE(t.iw + t.iws, c.input.cube.w);
      }
    }
  }
}

TEST(Tiling, NoTaskIsLargerThanTheRegistersFields) {
  const target::Target& target = **target::find("rk3588");
  const int64_t extent = target.limit("task.extent.max").value;
  const auto check = [&](const std::vector<model::Tile>& tiles, const model::Cube& out) {
    expect_covers(tiles, out);
    for (const model::Tile& t : tiles) {
      ASSERT_LE(t.ocs, extent);
      ASSERT_LE(t.ohs, extent);
      ASSERT_LE(t.ows, extent);
      ASSERT_LE(t.ihs, target.limit("task.rows.max").value);
      ASSERT_LE(t.iws, target.limit("task.width.max").value);
    }
  };
  for (const auto& [ic, oc, h, w] : {std::array<int64_t, 4>{16, 20000, 1, 1}, {1, 16, 3000, 2}, {16, 16, 2, 9000}}) {
    Case c;
    c.conv.kernel = {1, 1};
    c.conv.in_channels = static_cast<int32_t>(ic);
    c.conv.out_channels = static_cast<int32_t>(oc);
    c.conv.weight_dtype = DType::kInt8;
    c.conv.channel_group = c.conv.kernel_group = 32;
    c.input = cube_tensor(ic, h, w, DType::kInt8, 16);
    c.output = cube_tensor(oc, h, w, DType::kInt8, 16);
    const auto tiles = tile_convolution(target, {}, c.conv, c.input, c.output);
    ASSERT_TRUE(tiles.ok());
    check(*tiles, c.output.cube);
    check(tile_pool(target, {}, model::Pool{}, c.output, c.output), c.output.cube);
    const auto plain = tile_elementwise(target, {}, c.output);
    expect_covers(plain, c.output.cube);
    for (const model::Tile& t : plain) ASSERT_LE(std::max({t.ocs, t.ohs, t.ows}), extent);
  }
}

TEST(Tiling, HonoursTheLimitsOfTheOptions) {
  const target::Target& target = **target::find("rk3588");
  std::mt19937 random(3);
  CompileOptions options;
  options.max_tile_rows = 3;
  options.max_tile_columns = 5;
  options.max_tile_channels = 32;
  for (int round = 0; round < 50; ++round) {
    const Case c = random_case(random, target, false);
    const auto tiles = tile_convolution(target, options, c.conv, c.input, c.output);
    ASSERT_TRUE(tiles.ok());
    expect_covers(*tiles, c.output.cube);
    for (const model::Tile& t : *tiles) {
      ASSERT_LE(t.ohs, 3);
      ASSERT_LE(t.ows, 5);
    }
  }
}

TEST(Tiling, LargeKernelsTakeSmallerGroups) {
  const target::Target& target = **target::find("rk3588");
  const target::Lanes& lanes = target.lanes.at("int8");
  const auto group = [&](int channels) {
    model::Convolution conv;
    conv.in_channels = channels;
    conv.out_channels = 64;
    return kernel_group_that_fits(target, lanes, conv, cube_tensor(channels, 1, 1, DType::kInt8, 16));
  };
  EXPECT_EQ(group(1024), 32);
  EXPECT_EQ(group(25088), 8);
  EXPECT_EQ(group(400000), 0);
}

}  // namespace
}  // namespace openrknn::npu
