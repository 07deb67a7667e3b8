// The block functions against single values computed with wide integers or exact rounding, for every instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/half.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/elementwise.hpp"
#include "kernels/npu/pool.hpp"
#include "kernels/npu/requantizer.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;

class NpuElementwise : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    before_ = isa();
    force_isa(GetParam());
  }
  void TearDown() override { force_isa(before_); }

  int64_t pick(int64_t low, int64_t high) { return openrknn::testing::pick(rng_, low, high); }
  // Values of all magnitudes up to `bits` bits.
  int32_t any_size(int bits) { return static_cast<int32_t>(openrknn::testing::any_size(rng_, bits)); }
  std::vector<int32_t> ints(int64_t n, int bits) {
    std::vector<int32_t> v(static_cast<size_t>(n));
    for (auto& x : v) x = any_size(bits);
    return v;
  }
  std::vector<int8_t> bytes(int64_t n) {
    std::vector<int8_t> v(static_cast<size_t>(n));
    openrknn::testing::fill(rng_, v);
    return v;
  }
  std::vector<uint16_t> halves(int64_t n) {
    std::vector<uint16_t> v(static_cast<size_t>(n));
    for (auto& x : v) x = any_finite_half(rng_);
    return v;
  }

  openrknn::testing::Rng rng_{7};
  Isa before_ = Isa::kScalar;
};

std::vector<Isa> supported() {
  std::vector<Isa> isas;
  std::copy_if(kEveryIsa.begin(), kEveryIsa.end(), std::back_inserter(isas), isa_supported);
  return isas;
}
INSTANTIATE_TEST_SUITE_P(Every, NpuElementwise, ::testing::ValuesIn(supported()),
                         [](const auto& name) { return std::string(isa_name(name.param)); });

const Property kChannelStage({"channel_stage_block"}, 100);
TEST_P(NpuElementwise, ChannelStage) {
  for (Cases cases(kChannelStage, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t round = cases.number();
    const int64_t pixels = pick(1, round % 16 ? 8 : 60), channels = pick(1, round % 4 ? 20 : 90);
    const bool wide_b = round % 8 == 7, per_channel = round % 2 == 0, with_sums = round % 5 != 0;
    const auto acc = ints(pixels * channels, round % 3 ? 24 : 31), bias = ints(channels, round % 3 ? 20 : 31);
    const auto b = ints(channels, wide_b ? 15 : 8), sums = ints(per_channel ? pixels * channels : pixels, 24);
    auto c = ints(channels, 15);
    for (auto& m : c) m = round % 6 == 1 ? static_cast<int32_t>(rng_() % 65536) : round % 6 == 2 ? m & ~255 : m;
    ChannelStage stage{bias.data(),     with_sums ? b.data() : nullptr, c.data(), static_cast<int32_t>(pick(0, 30)), 0,
                       round % 11 == 10};
    stage.shift_negative = round % 4 == 0 ? static_cast<int32_t>(pick(0, 63)) : stage.shift;
    std::vector<int32_t> v(acc.size());
    channel_stage_block(pixels, channels, acc.data(), with_sums ? sums.data() : nullptr, per_channel, stage, v.data());
    for (int64_t i = 0; i < pixels * channels; ++i) {
      const auto at = static_cast<size_t>(i), ch = static_cast<size_t>(i % channels);
      Int128 t = static_cast<Int128>(acc[at]) + bias[ch];
      if (with_sums) t += static_cast<Int128>(b[ch]) * sums[per_channel ? at : static_cast<size_t>(i / channels)];
      const Int128 p = t * c[ch];
      const Int128 want = stage.bypass ? t : nearest_even(p, p >= 0 ? stage.shift : stage.shift_negative);
      ASSERT_EQ(v[at], saturate(want, 32)) << "round " << round << " at " << i;
    }
  }
}

const Property kOperandBlocks({"operand_block", "add_operand_block"}, 100);
TEST_P(NpuElementwise, OperandAndResidual) {
  for (Cases cases(kOperandBlocks, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t round = cases.number();
    const int64_t pixels = pick(1, round % 16 ? 6 : 40), channels = pick(1, round % 4 ? 20 : 90),
                  stride = channels + pick(0, 1) * pick(1, 20);
    const auto x = bytes(pixels * stride);
    const OperandStage stage{any_size(round % 8 ? 8 : 30), any_size(round % 3 ? 15 : 31),
                             static_cast<int32_t>(pick(0, 40))};
    std::vector<int32_t> e(static_cast<size_t>(pixels * channels));
    operand_block(pixels, channels, x.data(), stride, stage, e.data());
    const auto before = ints(pixels * channels, 31);
    auto after = before;
    add_operand_block(pixels, channels, x.data(), stride, stage, after.data());
    for (int64_t i = 0; i < pixels * channels; ++i) {
      const Int128 value = x[static_cast<size_t>(i / channels * stride + i % channels)];
      const Int128 want = saturate(nearest_even((value + stage.offset) * stage.multiplier, stage.shift), 32);
      ASSERT_EQ(e[static_cast<size_t>(i)], want) << "round " << round;
      ASSERT_EQ(after[static_cast<size_t>(i)], saturate(before[static_cast<size_t>(i)] + want, 32))
          << "round " << round;
    }
  }
}

const Property kOutputBlock({"output_block"}, 150);
TEST_P(NpuElementwise, OutputStage) {
  for (Cases cases(kOutputBlock, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t round = cases.number();
    const int64_t pixels = pick(1, round % 16 ? 6 : 40), channels = pick(1, round % 4 ? 20 : 90),
                  stride = channels + pick(0, 1) * pick(1, 20);
    OutputStage stage{static_cast<int32_t>(pick(-32768, 32767)), static_cast<int32_t>(pick(0, 40)),
                      static_cast<int32_t>(pick(-128, 127)), round % 2 == 0};
    if (round % 3 == 0)
      stage.multiplier = 1 << pick(0, 14), stage.shift = static_cast<int32_t>(pick(0, 24));  // many ties
    if (round % 16 == 15) stage.shift = static_cast<int32_t>(pick(33, 63));
    const auto v = ints(pixels * channels, std::min(31, stage.shift + 3));
    std::vector<int8_t> y(static_cast<size_t>(pixels * stride), 99);
    output_block(pixels, channels, v.data(), stage, y.data(), stride);
    for (int64_t i = 0; i < pixels * stride; ++i) {
      const int64_t c = i % stride;
      if (c >= channels) {
        ASSERT_EQ(y[static_cast<size_t>(i)], 99) << "a lane beyond the channels was written";
        continue;
      }
      const Int128 p = static_cast<Int128>(v[static_cast<size_t>(i / stride * channels + c)]) * stage.multiplier;
      const Int128 zp = stage.zero_point, one = static_cast<Int128>(1) << stage.shift;
      const Int128 want =
          stage.zero_point_first ? nearest_even(p + zp * one, stage.shift) : nearest_even(p, stage.shift) + zp;
      ASSERT_EQ(y[static_cast<size_t>(i)], saturate(want, 8)) << "round " << round;
    }
  }
}

const Property kInteger({"combine_s32", "clamp_s32", "prelu_s32", "table_s32"}, 40);
TEST_P(NpuElementwise, IntegerCombineClampPReluTable) {
  for (Cases cases(kInteger, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t round = cases.number();
    const int64_t pixels = pick(1, round % 16 ? 4 : 20), channels = pick(1, round % 4 ? 20 : 70), n = pixels * channels;
    const auto a = ints(n, 31), b = ints(n, round % 2 ? 31 : 12);
    std::vector<int32_t> v(a.size());
    for (const Combine op : {Combine::kAdd, Combine::kSub, Combine::kMul, Combine::kMax, Combine::kMin}) {
      combine_s32(op, n, a.data(), b.data(), v.data());
      for (size_t i = 0; i < v.size(); ++i) {
        const Int128 x = a[i], y = b[i];
        const Int128 want = op == Combine::kAdd   ? x + y
                            : op == Combine::kSub ? x - y
                            : op == Combine::kMul ? x * y
                            : op == Combine::kMax ? std::max(x, y)
                                                  : std::min(x, y);
        ASSERT_EQ(v[i], saturate(want, 32));
      }
    }
    const int64_t low = -static_cast<int64_t>(rng_()), high = rng_();
    v = a;
    clamp_s32(n, low, high, v.data());
    for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], std::clamp<int64_t>(a[i], low, high));

    const bool one = round % 2 == 0;
    std::vector<int16_t> slopes(static_cast<size_t>(one ? 1 : channels));
    for (auto& s : slopes) s = static_cast<int16_t>(rng_());
    const auto shift = static_cast<int32_t>(pick(0, 20));
    v = a;
    prelu_s32(pixels, channels, slopes.data(), static_cast<int64_t>(slopes.size()), shift, v.data());
    for (size_t i = 0; i < v.size(); ++i) {
      const Int128 slope = slopes[one ? 0 : i % static_cast<size_t>(channels)];
      ASSERT_EQ(v[i], a[i] < 0 ? saturate(nearest_even(a[i] * slope, shift), 32) : a[i]);
    }

    std::vector<int16_t> table(1026);
    for (auto& t : table) t = static_cast<int16_t>(rng_());
    const auto index_scale = any_size(15), index_shift = static_cast<int32_t>(pick(0, 30));
    v = a;
    table_s32(n, table.data(), index_scale, index_shift, v.data());
    for (size_t i = 0; i < v.size(); ++i) {
      const Int128 raw = nearest_even(static_cast<Int128>(a[i]) * index_scale, index_shift);
      const auto x = static_cast<int64_t>(std::clamp<Int128>(raw, -16384, 16384));
      const int64_t d = x < 0 ? x + 16384 : x;
      const size_t k = (x < 0 ? 0U : 513U) + static_cast<size_t>(d / 32);
      const int64_t left = table[k], right = d % 32 == 0 ? left : table[k + 1];
      ASSERT_EQ(v[i], left + static_cast<int64_t>(floor_div((right - left) * (d % 32), 32)));
    }
  }
}

TEST_P(NpuElementwise, WidenAndNarrowEveryHalf) {
  std::vector<uint16_t> all(65536), back(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(65536);
  widen_block(1, 65536, all.data(), 65536, wide.data());
  EXPECT_EQ(narrow_block(1, 65536, wide.data(), back.data(), 65536), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(half_value(all[i]))) {
      ASSERT_TRUE(std::isnan(wide[i]));
      ASSERT_EQ(back[i], 0x7E00);
    } else {
      ASSERT_EQ(static_cast<double>(wide[i]), half_value(all[i]));
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(NpuElementwise, NarrowRoundsToTheNearestHalfTiesToEven) {
  // All finite halves in order; a float between two neighbours goes to the nearer, a tie to the even code.
  std::vector<float> v;
  std::vector<uint16_t> want;
  for (uint32_t h = 0; h < 0x7BFF; ++h) {
    const auto low = static_cast<float>(half_value(static_cast<uint16_t>(h))),
               high = static_cast<float>(half_value(static_cast<uint16_t>(h + 1)));
    const float middle = low + (high - low) / 2;  // exact
    const auto even = static_cast<uint16_t>(h % 2 == 0 ? h : h + 1);
    for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const float s = sign != 0 ? -1.0F : 1.0F;
      v.insert(v.end(), {s * middle, s * std::nextafter(middle, 0.0F), s * std::nextafter(middle, INFINITY)});
      want.insert(want.end(), {static_cast<uint16_t>(sign | even), static_cast<uint16_t>(sign | h),
                               static_cast<uint16_t>(sign | (h + 1))});
    }
  }
  v.insert(v.end(), {65519.996F, 65520.0F, -65520.0F, 3e38F, INFINITY, -INFINITY, NAN, -NAN});
  want.insert(want.end(), {0x7BFF, 0x7C00, 0xFC00, 0x7C00, 0x7C00, 0xFC00, 0x7E00, 0x7E00});
  std::vector<uint16_t> y(v.size());
  EXPECT_EQ(narrow_block(1, static_cast<int64_t>(v.size()), v.data(), y.data(), static_cast<int64_t>(v.size())), 3);
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(y[i], want[i]) << v[i];
}

TEST_P(NpuElementwise, FloatStages) {
  const int64_t pixels = 50, channels = 37, stride = 48, n = pixels * channels;
  const auto x = halves(pixels * stride), bias_bits = halves(channels);
  std::vector<float> bias(static_cast<size_t>(channels)), a(static_cast<size_t>(n)), b(a.size());
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(half_value(bias_bits[i])) * 1.0009765625F;
  widen_block(pixels, channels, x.data(), stride, a.data());
  for (auto& f : b) f = static_cast<float>(half_value(any_finite_half(rng_))) * 0.3333F;
  auto v = a;
  add_bias_f32(pixels, channels, bias.data(), v.data());
  add_half_block(pixels, channels, x.data(), stride, v.data());
  for (size_t i = 0; i < v.size(); ++i) {
    const float first = a[i] + bias[i % static_cast<size_t>(channels)];
    ASSERT_EQ(v[i], first + a[i]);
  }
  combine_f32(Combine::kDiv, n, a.data(), b.data(), v.data());
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(v[i]), std::bit_cast<uint32_t>(a[i] / b[i]));
  v = a;
  v[0] = NAN;
  clamp_f32(n, 0.0F, 6.0F, v.data());
  EXPECT_TRUE(std::isnan(v[0]));
  for (size_t i = 1; i < v.size(); ++i) ASSERT_EQ(v[i], a[i] < 0 ? 0.0F : a[i] > 6 ? 6.0F : a[i]);
  v = a;
  prelu_f32(pixels, channels, bias.data(), channels, v.data());
  for (size_t i = 0; i < v.size(); ++i)
    ASSERT_EQ(v[i], a[i] < 0 ? a[i] * bias[i % static_cast<size_t>(channels)] : a[i]);
}

TEST_P(NpuElementwise, FloatTable) {
  std::vector<int16_t> table(1026);
  for (auto& t : table) t = static_cast<int16_t>(rng_());
  for (const TableForm form : {TableForm::kValue, TableForm::kGate, TableForm::kPlus}) {
    std::vector<float> values, results;
    for (int round = 0; round < 200000; ++round) {
      const float index_scale = round / 64 % 2 ? 1024.0F : 813.7F, out_scale = 1.0F / 32767;
      const auto lane = static_cast<size_t>(round % 64);  // of a call over 1 to 64 values
      if (lane == 0) {
        values.clear();
        for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(half_value(any_finite_half(rng_))));
        values[static_cast<size_t>(pick(0, 63))] = static_cast<float>(pick(-70, 70)) / 4;  // both ends of the table
        results = values;
        const int64_t first = pick(0, 64);
        table_f32(first, table.data(), index_scale, out_scale, form, results.data());
        table_f32(64 - first, table.data(), index_scale, out_scale, form, results.data() + first);
      }
      const float x = values[lane], v = results[lane];
      const double scaled = static_cast<double>(static_cast<float>(x * index_scale));
      double whole = std::floor(scaled);
      const double rest = scaled - whole;
      if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0)) whole += 1;
      const auto index = static_cast<int64_t>(std::clamp(whole, -16384.0, 16384.0));
      const int64_t d = index < 0 ? index + 16384 : index;
      const size_t k = (index < 0 ? 0U : 513U) + static_cast<size_t>(d / 32);
      const int64_t left = table[k], right = d % 32 == 0 ? left : table[k + 1];
      const float t =
          static_cast<float>(left + static_cast<int64_t>(floor_div((right - left) * (d % 32), 32))) * out_scale;
      const float want = form == TableForm::kValue ? t : form == TableForm::kGate ? x * t : (x > 0 ? x : 0) + t;
      ASSERT_EQ(std::bit_cast<uint32_t>(v), std::bit_cast<uint32_t>(want)) << x;
    }
  }
}

const Property kHalfOutputBlock({"half_output_block"}, 300);
TEST_P(NpuElementwise, HalfOutput) {
  for (Cases cases(kHalfOutputBlock, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t pixels = pick(1, 5), channels = pick(1, 70), stride = channels + pick(0, 3);
    std::vector<float> v(static_cast<size_t>(pixels * channels)), bias(static_cast<size_t>(channels));
    for (auto& f : v) f = static_cast<float>(half_value(any_finite_half(rng_))) * 1.37F;
    for (auto& f : bias) f = static_cast<float>(pick(-900, 900)) / 128;
    v[static_cast<size_t>(pick(0, static_cast<int>(v.size()) - 1))] = pick(0, 1) ? NAN : INFINITY;
    const bool biased = pick(0, 1) != 0, clamps = pick(0, 1) != 0;
    const float low = clamps ? 0.0F : -INFINITY, high = clamps ? 6.0F : INFINITY;
    auto wanted = v;
    if (biased) add_bias_f32(pixels, channels, bias.data(), wanted.data());
    clamp_f32(pixels * channels, low, high, wanted.data());
    std::vector<uint16_t> a(static_cast<size_t>(pixels * stride), 7), b = a;
    narrow_block(pixels, channels, wanted.data(), a.data(), stride);
    half_output_block(pixels, channels, v.data(), biased ? bias.data() : nullptr, low, high, b.data(), stride);
    ASSERT_EQ(a, b);
  }
}

TEST_P(NpuElementwise, FloatTableOfWhatIsNoNumber) {
  std::vector<int16_t> table(1026, 100);
  table[0] = -7;
  table[1025] = 9;
  std::vector<float> v(40, 0.25F);
  v[3] = v[37] = NAN;
  v[5] = v[38] = INFINITY;
  v[6] = v[39] = -INFINITY;
  auto zero = v;
  table_f32(40, table.data(), 1024.0F, 1.0F, TableForm::kValue, v.data());
  for (const size_t i : {3, 37}) EXPECT_TRUE(std::isnan(v[i]));
  for (const size_t i : {5, 38}) EXPECT_EQ(v[i], 9.0F);
  for (const size_t i : {6, 39}) EXPECT_EQ(v[i], -7.0F);
  table_f32(40, table.data(), 0.0F, 1.0F, TableForm::kValue, zero.data());  // infinity times 0: index 0
  for (const size_t i : {0, 5, 6, 38, 39}) EXPECT_EQ(zero[i], 100.0F);
}

const Property kPools({"max_pool_s8", "average_pool_s8", "max_pool_f16", "average_pool_f16"}, 50);
TEST_P(NpuElementwise, Pools) {
  for (Cases cases(kPools, std::string(isa_name(GetParam()))); cases.next();) {
    rng_ = cases.rng();
    const int64_t round = cases.number();
    PoolShape s{};
    s.kernel_h = pick(1, round % 4 ? 3 : 7), s.kernel_w = pick(1, round % 4 ? 3 : 7), s.stride_h = pick(1, 4),
    s.stride_w = pick(1, 4);
    s.out_h = pick(1, 3), s.out_w = pick(1, 3), s.channels = pick(1, round % 16 == 0 ? 600 : round % 4 ? 12 : 70);
    s.in_stride = s.channels + pick(0, 5), s.out_stride = s.channels + pick(0, 5);
    s.in_w = (s.out_w - 1) * s.stride_w + s.kernel_w + pick(0, 2);
    const int64_t in_h = (s.out_h - 1) * s.stride_h + s.kernel_h;
    const auto x8 = bytes(in_h * s.in_w * s.in_stride);
    auto x16 = halves(in_h * s.in_w * s.in_stride);
    for (auto& h : x16)
      h = round % 3 ? static_cast<uint16_t>((h & 0x83FF) | (static_cast<uint32_t>(pick(11, 17)) << 10)) : h;
    const auto size = static_cast<size_t>(s.out_h * s.out_w * s.out_stride);
    std::vector<int8_t> max8(size), average8(size);
    std::vector<uint16_t> max16(size), average16(size);
    max_pool_s8(s, x8.data(), max8.data());
    average_pool_s8(s, x8.data(), average8.data());
    max_pool_f16(s, x16.data(), max16.data());
    average_pool_f16(s, x16.data(), average16.data());
    const float recip_w = half_to_float(float_to_half(1.0F / static_cast<float>(s.kernel_w)));
    const float recip_h = half_to_float(float_to_half(1.0F / static_cast<float>(s.kernel_h)));
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      for (int64_t c = 0; c < s.channels; ++c) {
        int best = -1000;
        int64_t sum = 0;
        double best16 = -INFINITY;
        float sum16 = 0;
        for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
            const int64_t row = p / s.out_w * s.stride_h + kh, column = p % s.out_w * s.stride_w + kw;
            const auto at = static_cast<size_t>((row * s.in_w + column) * s.in_stride + c);
            best = std::max<int>(best, x8[at]);
            sum += x8[at];
            best16 = std::max(best16, half_value(x16[at]));
            sum16 += static_cast<float>(half_value(x16[at]));
          }
        }
        const auto at = static_cast<size_t>(p * s.out_stride + c);
        ASSERT_EQ(max8[at], best);
        ASSERT_EQ(half_value(max16[at]), best16);
        ASSERT_EQ(average16[at], float_to_half(sum16 * recip_w * recip_h));
        // The int8 average: within half of the true one; the exact rule is tested in npu_arithmetic_test.
        const double mean = static_cast<double>(sum) / static_cast<double>(s.kernel_h * s.kernel_w);
        ASSERT_LE(std::abs(average8[at] - mean), 0.5);
      }
    }
  }
}

}  // namespace
}  // namespace openrknn::npu
