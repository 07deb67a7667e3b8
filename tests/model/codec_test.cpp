#include "model/codec.hpp"

#include <gtest/gtest.h>

#include "model/builder.hpp"

namespace openrknn::model {
namespace {

using test::Builder;
using test::Random;

TEST(Cube, OfEveryRank) {
  EXPECT_EQ(cube_of(Shape{}), (Cube{1, 1, 1, 1}));
  EXPECT_EQ(cube_of(Shape{7}), (Cube{1, 7, 1, 1}));
  EXPECT_EQ(cube_of(Shape{2, 7}), (Cube{2, 7, 1, 1}));
  EXPECT_EQ(cube_of(Shape{2, 7, 5}), (Cube{2, 7, 1, 5}));
  EXPECT_EQ(cube_of(Shape{2, 7, 5, 3}), (Cube{2, 7, 5, 3}));
  EXPECT_EQ(cube_of(Shape{4, 2, 7, 5, 3}), (Cube{8, 7, 5, 3}));
}

// off(n,c,h,w) = ((n*C1 + c/C2) * SURF + h*W + w) * C2 + c%C2, npu.md 2.1.
TEST(FeatureCube, OffsetsAreTheHardwares) {
  for (const int pixel_align : {1, 4}) {
    TensorDesc t = Builder::desc("x", DType::kInt8, Shape{2, 35, 3, 5}, Layout::kNC1HWC2);
    const int64_t bytes = set_dense_strides(t, pixel_align, 1);
    const int64_t surf = pixel_align == 1 ? 15 : 16;
    EXPECT_EQ(bytes, 2 * 3 * surf * 16);
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t c = 0; c < 35; ++c) {
        for (int64_t h = 0; h < 3; ++h) {
          for (int64_t w = 0; w < 5; ++w)
            EXPECT_EQ(element_offset(t, n, c, h, w), ((n * 3 + c / 16) * surf + h * 5 + w) * 16 + c % 16);
        }
      }
    }
  }
}

TEST(FeatureCube, PackIsUndoneByUnpackAndFillsPaddingLanes) {
  Random random(1);
  for (const Layout layout : {Layout::kNC1HWC2, Layout::kNHWC, Layout::kPlain}) {
    TensorDesc t = Builder::desc("x", DType::kInt8, Shape{2, 3, 4, 5}, layout);
    t.quant = QuantParams::per_tensor(DType::kInt8, 0.5F, -7);
    const auto plain = random.bytes(t.shape.elements());
    std::vector<std::byte> packed(static_cast<size_t>(set_dense_strides(t, 1, 16)));
    pack_tensor(t, plain.data(), packed.data());
    std::vector<int8_t> back(plain.size());
    unpack_tensor(t, packed.data(), back.data());
    EXPECT_EQ(back, plain);
    if (layout == Layout::kNC1HWC2) {
      for (int64_t lane = 3; lane < 16; ++lane)
        EXPECT_EQ(static_cast<int8_t>(packed[static_cast<size_t>(element_offset(t, 1, lane, 2, 3))]), -7);
    }
    if (layout == Layout::kNHWC) {
      EXPECT_EQ(t.row_stride, 16 * 3);
      EXPECT_EQ(static_cast<int8_t>(packed[static_cast<size_t>(t.batch_stride + 2 * t.row_stride + 3 * 3 + 1)]),
                plain[static_cast<size_t>(((1 * 3 + 1) * 4 + 2) * 5 + 3)]);
    }
  }
}

TEST(FeatureCube, HalvesHaveEightLanes) {
  TensorDesc t = Builder::desc("x", DType::kFloat16, Shape{1, 9, 2, 2}, Layout::kNC1HWC2);
  std::vector<std::byte> packed(static_cast<size_t>(set_dense_strides(t, 1, 1)));
  ASSERT_EQ(packed.size(), 2U * 4 * 8 * 2);
  std::vector<uint16_t> plain(36);
  for (size_t i = 0; i < 36; ++i) plain[i] = static_cast<uint16_t>(i + 1);
  pack_tensor(t, plain.data(), packed.data());
  uint16_t got = 0;
  std::memcpy(&got, packed.data() + (4 + 3) * 16, 2);  // plane 1, pixel 3, lane 0: channel 8
  EXPECT_EQ(got, plain[8 * 4 + 3]);
}

Convolution direct(DType dtype, int kg, int ig, int oc, int ic, int kh, int kw) {
  Convolution c;
  c.weight_dtype = dtype;
  c.kernel_group = kg;
  c.channel_group = ig;
  c.out_channels = oc;
  c.in_channels = ic;
  c.kernel = {kh, kw};
  QuantParams q;
  q.granularity = Granularity::kChannel;
  for (int i = 0; i < oc; ++i) {
    q.scales.push_back(1);
    q.zero_points.push_back(i % 11 - 5);
  }
  c.weight_quant = q;
  return c;
}

// npu.md 2.3: off = ((((oc/32)*ICG + ic/32)*KH + kh)*KW + kw)*G*32 + (oc%32)*L + ic%32 with whole groups, where the
// last slice has L = 16 when at most 16 of its lanes live; the bytes before it in its group are those of full slices.
int64_t int8_offset(const Convolution& c, int64_t oc, int64_t ic, int64_t kh, int64_t kw) {
  const int64_t g = c.kernel_group, i = c.channel_group, taps = int64_t{c.kernel[0]} * c.kernel[1];
  const int64_t slices = (c.in_channels + i - 1) / i;
  const int64_t live = c.in_channels - (slices - 1) * i;
  const int64_t last = live <= 16 ? 16 : i;
  const int64_t group_bytes = taps * g * ((slices - 1) * i + last);
  const int64_t lanes = ic / i == slices - 1 ? last : i;
  return oc / g * group_bytes + ic / i * taps * g * i + ((kh * c.kernel[1] + kw) * g + oc % g) * lanes + ic % i;
}

TEST(WeightCube, Int8DirectFollowsTheFormula) {
  Random random(2);
  for (const auto& [kg, oc, ic, kh, kw] : std::vector<std::array<int, 5>>{{32, 40, 70, 3, 2},
                                                                          {32, 32, 64, 1, 1},
                                                                          {32, 5, 3, 7, 7},
                                                                          {16, 17, 33, 1, 3},
                                                                          {16, 48, 16, 3, 3},
                                                                          {32, 33, 49, 2, 2}}) {
    const Convolution c = direct(DType::kInt8, kg, 32, oc, ic, kh, kw);
    const auto plain = random.bytes(int64_t{oc} * ic * kh * kw);
    const auto packed = pack_weights(c, std::as_bytes(std::span(plain)));
    ASSERT_EQ(static_cast<int64_t>(packed.size()), packed_weight_bytes(c));
    std::vector<bool> real(packed.size(), false);
    for (int o = 0; o < oc; ++o) {
      for (int i = 0; i < ic; ++i) {
        for (int y = 0; y < kh; ++y) {
          for (int x = 0; x < kw; ++x) {
            const auto at = static_cast<size_t>(int8_offset(c, o, i, y, x));
            ASSERT_LT(at, packed.size());
            EXPECT_EQ(static_cast<int8_t>(packed[at]), plain[static_cast<size_t>(((o * ic + i) * kh + y) * kw + x)]);
            real[at] = true;
          }
        }
      }
    }
    // Every other byte is the zero point of its channel (of the last channel beyond the real ones).
    const int64_t slices = (ic + 31) / 32;
    const int64_t group = static_cast<int64_t>(packed.size()) / ((oc + kg - 1) / kg);
    for (size_t at = 0; at < packed.size(); ++at) {
      if (real[at]) continue;
      const auto inside = static_cast<int64_t>(at) % group;
      const int64_t full = (slices - 1) * kh * kw * kg * 32;
      const int64_t live = ic - (slices - 1) * 32;
      const int64_t lanes = inside >= full && live <= 16 ? 16 : 32;
      const int64_t k = (inside >= full ? inside - full : inside) / lanes % kg;
      const int64_t o = std::min<int64_t>(static_cast<int64_t>(at) / group * kg + k, oc - 1);
      EXPECT_EQ(static_cast<int8_t>(packed[at]), o % 11 - 5);
    }
    EXPECT_EQ(unpack_weights(c, packed),
              std::vector<std::byte>(std::as_bytes(std::span(plain)).begin(), std::as_bytes(std::span(plain)).end()));
    const auto taps_first = unpack_weights_taps_first(c, packed, 0, oc);
    for (int o = 0; o < oc; ++o) {
      for (int i = 0; i < ic; ++i) {
        for (int tap = 0; tap < kh * kw; ++tap) {
          EXPECT_EQ(static_cast<int8_t>(taps_first[static_cast<size_t>((o * kh * kw + tap) * ic + i)]),
                    plain[static_cast<size_t>((o * ic + i) * kh * kw + tap)]);
        }
      }
    }
  }
}

TEST(WeightCube, HalvesHaveWholeSlices) {
  for (const auto& [kg, ig, oc, ic] :
       std::vector<std::array<int, 4>>{{16, 32, 20, 40}, {16, 16, 20, 40}, {16, 32, 16, 3}}) {
    const Convolution c = direct(DType::kFloat16, kg, ig, oc, ic, 3, 3);
    std::vector<uint16_t> plain(static_cast<size_t>(oc * ic * 9));
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<uint16_t>(i + 1);
    const auto packed = pack_weights(c, std::as_bytes(std::span(plain)));
    const int64_t slices = (ic + ig - 1) / ig, groups = (oc + kg - 1) / kg;
    ASSERT_EQ(static_cast<int64_t>(packed.size()), groups * slices * 9 * kg * ig * 2);
    size_t zeros = 0;
    for (size_t i = 0; i < packed.size(); i += 2)
      zeros += packed[i] == std::byte{0} && packed[i + 1] == std::byte{0} ? 1 : 0;
    EXPECT_EQ(zeros, packed.size() / 2 - plain.size());
    for (int64_t o = 0; o < oc; ++o) {
      for (int64_t i = 0; i < ic; ++i) {
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t at = (((o / kg * slices + i / ig) * 9 + tap) * kg + o % kg) * ig + i % ig;
          uint16_t got = 0;
          std::memcpy(&got, packed.data() + 2 * at, 2);
          EXPECT_EQ(got, plain[static_cast<size_t>((o * ic + i) * 9 + tap)]);
        }
      }
    }
  }
}

TEST(WeightCube, DepthwiseGroupsLanes) {
  Random random(3);
  Convolution c = direct(DType::kInt8, 1, 64, 70, 70, 3, 2);
  c.mode = ConvMode::kDepthwise;
  const auto plain = random.bytes(70 * 6);
  const auto packed = pack_weights(c, std::as_bytes(std::span(plain)));
  ASSERT_EQ(packed.size(), 2U * 6 * 64);
  for (size_t ch = 0; ch < 128; ++ch) {
    for (size_t tap = 0; tap < 6; ++tap) {
      const auto got = static_cast<int8_t>(packed[(ch / 64 * 6 + tap) * 64 + ch % 64]);
      EXPECT_EQ(got, ch < 70 ? plain[ch * 6 + tap] : 69 % 11 - 5);
    }
  }
  const auto back = unpack_weights(c, packed);
  EXPECT_EQ(std::memcmp(back.data(), plain.data(), plain.size()), 0);
  EXPECT_EQ(weight_range(c, 64, 6), (std::pair<int64_t, int64_t>{384, 384}));
  const auto taps_first = unpack_weights_taps_first(c, packed, 60, 8);
  for (size_t ch = 0; ch < 8; ++ch) {
    for (size_t tap = 0; tap < 6; ++tap)
      EXPECT_EQ(static_cast<int8_t>(taps_first[tap * 8 + ch]), plain[(60 + ch) * 6 + tap]);
  }
}

TEST(WeightCube, RangesHoldTheChannelsOfATile) {
  Random random(4);
  const Convolution c = direct(DType::kInt8, 32, 32, 100, 40, 3, 3);
  const auto plain = random.bytes(100 * 40 * 9);
  const auto packed = pack_weights(c, std::as_bytes(std::span(plain)));
  const auto [offset, size] = weight_range(c, 32, 40);
  EXPECT_EQ(offset, static_cast<int64_t>(packed.size()) / 4);
  EXPECT_EQ(size, static_cast<int64_t>(packed.size()) / 2);
  const auto part = unpack_weights_taps_first(
      c, std::span(packed).subspan(static_cast<size_t>(offset), static_cast<size_t>(size)), 32, 40, 32);
  const auto whole = unpack_weights_taps_first(c, packed, 0, 100);
  EXPECT_EQ(std::memcmp(part.data(), whole.data() + 32 * 360, 40 * 360), 0);
}

// npu.md 2.4: off_A(c) = 64*(c/8) + 4*(c%8), off_B = 64*(c/8) + 32 + 2*(c%8), off_C = +48; Q14: groups of 4 in 32
// bytes.
TEST(ParameterStream, FollowsTheFormula) {
  Random random(5);
  ChannelParams params;
  for (int i = 0; i < 13; ++i) {
    params.bias.push_back(static_cast<int32_t>(random.between(INT32_MIN, INT32_MAX)));
    params.minus_weight_zero.push_back(static_cast<int32_t>(random.between(-128, 128)));
    params.multiplier.push_back(static_cast<int32_t>(random.between(0, 32767)));
  }
  for (const auto kind : {ChannelMultiplier::kInt16, ChannelMultiplier::kQ14}) {
    NumericsProfile profile;
    profile.channel_multiplier = kind;
    const size_t group = kind == ChannelMultiplier::kInt16 ? 8 : 4;
    if (kind == ChannelMultiplier::kQ14) params.multiplier[3] = 65535;
    const auto packed = pack_params(profile, params);
    ASSERT_EQ(packed.size(), (13 + group - 1) / group * group * 8);
    for (size_t c = 0; c < 13; ++c) {
      int32_t a = 0;
      int16_t b = 0;
      uint16_t m = 0;
      const size_t base = c / group * group * 8;
      std::memcpy(&a, packed.data() + base + 4 * (c % group), 4);
      std::memcpy(&b, packed.data() + base + 4 * group + 2 * (c % group), 2);
      std::memcpy(&m, packed.data() + base + 6 * group + 2 * (c % group), 2);
      EXPECT_EQ(a, params.bias[c]);
      EXPECT_EQ(b, params.minus_weight_zero[c]);
      EXPECT_EQ(int32_t{m}, params.multiplier[c]);
    }
    const auto back = unpack_params(profile, packed, 13);
    EXPECT_EQ(back.bias, params.bias);
    EXPECT_EQ(back.minus_weight_zero, params.minus_weight_zero);
    EXPECT_EQ(back.multiplier, params.multiplier);
    EXPECT_EQ(packed.back(), std::byte{0});
  }
}

}  // namespace
}  // namespace openrknn::model
