// fp16 convolutions against exact sums of groups, on every instruction set; both kinds in larger shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/npu/conv.hpp"
#include "kernels/npu/conv_reference.hpp"
#include "kernels/npu_conv_cases.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

const Property kExactDot({"exact_dot_f16"}, 20000);
TEST(NpuConvHalf, HalfGroupSumIsExactAndRoundedOnce) {
  for (Cases cases(kExactDot, "any"); cases.next();) {
    Rng& rng = cases.rng();
    const auto kind = static_cast<int>(cases.number() % 5);
    const size_t n = 1 + rng() % 64;
    uint16_t a[64], b[64];
    for (size_t i = 0; i < n; ++i) a[i] = random_half(rng, kind), b[i] = random_half(rng, kind);
    if (one_in(rng, 2)) {  // cancellation: all but a few small terms vanish
      for (size_t i = 0; i + 1 < n - n / 4; i += 2) a[i + 1] = a[i] ^ 0x8000, b[i + 1] = b[i];
    }
    const float got = exact_dot_f16(a, b, static_cast<int64_t>(n)), want = exact_group({a, n}, {b, n});
    ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << got << " for " << want;
  }
}

TEST(NpuConvHalf, HalfGroupSumRoundsTiesToEven) {
  // 2^24 + 1 lies between 2^24 and 2^24 + 2; 2^24 + 3 between 2^24 + 2 and 2^24 + 4.
  const uint16_t big = 0x6C00;  // 4096
  const uint16_t one = 0x3C00, three = 0x4200;
  const uint16_t a1[] = {big, one}, b1[] = {big, one}, b3[] = {big, three};
  EXPECT_EQ(exact_dot_f16(a1, b1, 2), 16777216.0F);
  EXPECT_EQ(exact_dot_f16(a1, b3, 2), 16777220.0F);
  // The same with a product far below that decides: 2^-48.
  const uint16_t a[] = {big, one, 1}, above[] = {big, one, 1}, below[] = {big, three, 0x8001};
  EXPECT_EQ(exact_dot_f16(a, above, 3), 16777218.0F);
  EXPECT_EQ(exact_dot_f16(a, below, 3), 16777218.0F);
}

TEST(NpuConvHalf, HalfGroupSumOfInfinitiesAndNaNFollowsIeee) {
  const uint16_t inf = 0x7C00, minus_inf = 0xFC00, nan = 0x7E00, one = 0x3C00, zero = 0;
  const uint16_t ones[] = {one, one, one};
  const uint16_t with_inf[] = {one, inf, one}, both[] = {inf, one, minus_inf}, with_nan[] = {one, one, nan},
                 zeros[] = {one, zero, one};
  EXPECT_EQ(exact_dot_f16(ones, with_inf, 3), std::numeric_limits<float>::infinity());
  const uint16_t negative[] = {one, 0xBC00, one};
  EXPECT_EQ(exact_dot_f16(negative, with_inf, 3), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(exact_dot_f16(ones, both, 3)));
  EXPECT_TRUE(std::isnan(exact_dot_f16(ones, with_nan, 3)));
  EXPECT_TRUE(std::isnan(exact_dot_f16(zeros, with_inf, 3)));
}

// fp32 addition with one rounding, by exact numbers; the operands are sums of products, multiples of 2^-48 or of their
// ulp.
float add_f32(float a, float b) {
  volatile double sum = static_cast<double>(a) + static_cast<double>(b);  // exact when the exponents are within 29
  if (sum - a == static_cast<double>(b) && sum - b == static_cast<double>(a)) return static_cast<float>(sum);
  Dyadic exact{static_cast<double>(a)};
  exact.add(Dyadic(b));
  return openrknn::testing::nearest_float(exact);
}

const Property kConvHalf({"conv_f16", "conv.half"}, 100);
TEST(NpuConvHalf, HalfEqualsGroupsInTheOrderSliceRowColumn) {
  const auto every = supported_loops();
  for (Cases cases(kConvHalf, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const ConvShape s = random_shape(rng, false, one_in(rng, 20) ? 20000 : 1500);
    const auto kind = static_cast<int>(cases.number() % 5);
    std::vector<uint16_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<uint16_t> w(static_cast<size_t>(s.out_channels * s.kernel_h * s.kernel_w * s.in_channels));
    for (auto& v : x) v = random_half(rng, kind);
    for (auto& v : w) v = random_half(rng, kind);
    const int64_t slice = one_in(rng, 2) ? 32 : 16, group = one_in(rng, 2) ? slice : slice / 2;
    std::vector<float> want;
    std::vector<uint16_t> a, b;
    for (int64_t i = 0; i < s.out_h * s.out_w * s.out_channels; ++i) {
      const int64_t p = i / s.out_channels, oc = i % s.out_channels;
      float sum = 0;
      for (int64_t first = 0; first < s.in_channels; first += slice) {
        for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
          for (int64_t part = first; part < std::min(first + slice, s.in_channels); part += group) {
            a.clear(), b.clear();
            for (int64_t ic = part; ic < std::min({part + group, first + slice, s.in_channels}); ++ic) {
              a.push_back(at(s, x, p / s.out_w, p % s.out_w, tap / s.kernel_w, tap % s.kernel_w, ic));
              b.push_back(w[static_cast<size_t>((oc * s.kernel_h * s.kernel_w + tap) * s.in_channels + ic)]);
            }
            sum = add_f32(sum, exact_group(a, b));
          }
        }
      }
      want.push_back(sum);
    }
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<float> y(want.size(), -1);
      conv_f16(s, slice, group, x.data(), w.data(), y.data());
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

// Infinities and NaN: the reference's bytes.
const Property kConvSpecial({"conv_f16 of infinities"}, 100);
TEST(NpuConvHalf, HalfOfInfinitiesEqualsTheReference) {
  const auto every = supported_loops();
  for (Cases cases(kConvSpecial, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const ConvShape s = random_shape(rng, false, 5000);
    std::vector<uint16_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<uint16_t> w(static_cast<size_t>(s.out_channels * s.kernel_h * s.kernel_w * s.in_channels));
    const int kind = one_in(rng, 2) ? 5 : 1;
    for (auto& v : x) v = random_half(rng, 5);
    for (auto& v : w) v = random_half(rng, kind);
    std::vector<float> want(static_cast<size_t>(s.out_h * s.out_w * s.out_channels));
    reference::conv_f16(s, 32, 32, x.data(), w.data(), want.data());
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<float> y(want.size(), -1);
      conv_f16(s, 32, 32, x.data(), w.data(), y.data());
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

const Property kDepthwiseHalf({"depthwise_f16"}, 150);
TEST(NpuConvHalf, DepthwiseHalfAddsOneProductAStep) {
  const auto every = supported_loops();
  for (Cases cases(kDepthwiseHalf, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const ConvShape s = random_shape(rng, true, 3000);
    const auto kind = static_cast<int>(cases.number() % 5);
    std::vector<uint16_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<uint16_t> w(static_cast<size_t>(s.kernel_h * s.kernel_w * s.in_channels));
    for (auto& v : x) v = random_half(rng, kind);
    for (auto& v : w) v = random_half(rng, kind);
    std::vector<float> want;
    for (int64_t i = 0; i < s.out_h * s.out_w * s.in_channels; ++i) {
      const int64_t p = i / s.in_channels, c = i % s.in_channels;
      float sum = 0;
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        const double product = half_value(at(s, x, p / s.out_w, p % s.out_w, tap / s.kernel_w, tap % s.kernel_w, c)) *
                               half_value(w[static_cast<size_t>(tap * s.in_channels + c)]);
        sum = add_f32(sum, static_cast<float>(product));
      }
      want.push_back(sum);
    }
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<float> y(want.size(), -1);
      depthwise_f16(s, x.data(), w.data(), y.data());
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

// A half of the given mantissa (1024 .. 2047) and exponent field.
uint16_t half_of(int mantissa, int64_t exponent) { return static_cast<uint16_t>((exponent << 10) | (mantissa - 1024)); }

// In units of the smallest product's last bit: 2^k + 2^(k - 24) + 1, and 2^k + 3 * 2^(k - 24) - 1. The last 1 decides
// an fp32 tie; a double loses it from k = 54 on. The condition for plain doubles must refuse before that.
TEST(NpuConvHalf, HalfTiesDecidedByTheLastBit) {
  const auto every = supported_loops();
  const int64_t unit = 2;  // exponent field of the smallest values
  for (int64_t k = 44; k <= 20 + 2 * (30 - unit); ++k) {
    for (const bool above : {true, false}) {
      const int64_t big = k - 20, tie = above ? k - 44 : k - 43;  // exponents to split between x and w
      const int mantissa = above ? 1024 : 1536;
      std::vector<uint16_t> x = {half_of(1024, unit + big / 2), half_of(mantissa, unit + tie / 2), half_of(1025, unit),
                                 half_of(1024, unit)};
      std::vector<uint16_t> w = {half_of(1024, unit + big - big / 2), half_of(1024, unit + tie - tie / 2),
                                 half_of(1025, unit), half_of(1026, unit)};
      w[above ? 3 : 2] ^= 0x8000;  // 1025 * 1025 - 1024 * 1026 = 1
      ConvShape s{};
      s.kernel_h = s.kernel_w = s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
      s.in_h = s.in_w = s.out_h = s.out_w = s.out_channels = 1, s.in_channels = s.channels = 4;
      const float unit_value = std::ldexp(1.0F, 2 * (static_cast<int>(unit) - 25));
      const float want = std::ldexp(1.0F + 0x1p-23F, static_cast<int>(k)) * unit_value;
      ASSERT_EQ(want, exact_group(x, w)) << "k " << k;
      for (const Loops& loops : every) {
        const UseLoops use(loops);
        float y = 0;
        conv_f16(s, 32, 32, x.data(), w.data(), &y);
        ASSERT_EQ(y, want) << loops.name << " k " << k << (above ? " above" : " below");
      }
    }
  }
}

// The same at random: places, signs, other mantissas, products that cancel, some pixels and channels.
const Property kHalfTies({"conv.half of ties"}, 200);
TEST(NpuConvHalf, HalfNearTiesEqualsTheExactSum) {
  const auto every = supported_loops();
  for (Cases cases(kHalfTies, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    ConvShape s{};
    s.kernel_h = s.kernel_w = s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    s.in_h = s.out_h = 1, s.in_w = s.out_w = pick(rng, 1, 7),
    s.out_channels = std::max<int64_t>(1, any_extent(rng, 36));
    s.in_channels = s.channels = pick(rng, 4, 32);
    const int64_t unit = pick(rng, 1, 3), k = pick(rng, 44, 20 + 2 * (30 - unit));
    std::vector<uint16_t> x(static_cast<size_t>(s.in_w * s.channels)),
        w(static_cast<size_t>(s.out_channels * s.channels));
    std::vector<int64_t> x_exponent, w_exponent;  // of each channel
    for (int64_t c = 0; c < s.channels; ++c) {
      const auto size = rng() % 4;
      const int64_t both = size == 0 ? k - 20 : size == 1 ? pick(rng, k - 44, k - 43) : 0;
      x_exponent.push_back(unit + both / 2);
      w_exponent.push_back(unit + both - both / 2);
    }
    constexpr int kMantissas[] = {1024, 1024, 1025, 1026, 1536, 2047};
    const auto value = [&](int64_t exponent) {
      if (one_in(rng, 4)) return uint16_t{0};
      return static_cast<uint16_t>(half_of(kMantissas[rng() % 6], exponent) | (one_in(rng, 2) ? 0x8000 : 0));
    };
    for (size_t i = 0; i < x.size(); ++i) x[i] = value(x_exponent[i % x_exponent.size()]);
    for (size_t i = 0; i < w.size(); ++i) w[i] = value(w_exponent[i % w_exponent.size()]);
    const auto channels = static_cast<size_t>(s.channels);
    std::vector<float> want;
    for (size_t p = 0; p < x.size(); p += channels) {
      for (size_t f = 0; f < w.size(); f += channels)
        want.push_back(exact_group(std::span(x).subspan(p, channels), std::span(w).subspan(f, channels)));
    }
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<float> y(want.size(), -1);
      conv_f16(s, 32, 32, x.data(), w.data(), y.data());
      ASSERT_TRUE(same_values(y, want)) << loops.name << " k " << k;
    }
  }
}

// Larger shapes and threads: against the scalar reference, which the tests above hold to exact numbers.
const Property kLarger({"conv_s8 of many", "conv_f16 of many"}, 12, 300);
TEST(NpuConvHalf, LargerShapesEqualTheReferenceForAnyThreads) {
  const auto every = supported_loops();
  for (Cases cases(kLarger, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    ConvShape s = random_shape(rng, false, 50000);
    s.out_h = pick(rng, 1, 12), s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    s.in_channels = pick(rng, 1, 150), s.channels = (s.in_channels + 15) / 16 * 16, s.out_channels = pick(rng, 1, 150);
    const auto x8 = random_bytes(rng, s.in_h * s.in_w * s.channels);
    const auto w8 = random_bytes(rng, s.out_channels * s.kernel_h * s.kernel_w * s.in_channels);
    const auto kind = static_cast<int>(cases.number() % 6);  // 5: infinities and NaN
    std::vector<uint16_t> x16(x8.size()), w16(w8.size());
    for (auto& v : x16) v = random_half(rng, kind);
    for (auto& v : w16) v = random_half(rng, kind == 5 ? 1 : kind);
    const auto pixels = static_cast<size_t>(s.out_h * s.out_w), size = pixels * static_cast<size_t>(s.out_channels);
    std::vector<int32_t> y8(size), z8(size), window(pixels), window_reference(pixels);
    std::vector<float> y16(size), z16(size);
    reference::conv_s8(s, x8.data(), w8.data(), z8.data(), window_reference.data());
    reference::conv_f16(s, 32, 32, x16.data(), w16.data(), z16.data());
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      for (const int threads : {1, 2}) {
        set_thread_count(threads);
        conv_s8(s, x8.data(), w8.data(), y8.data(), window.data());
        conv_f16(s, 32, 32, x16.data(), w16.data(), y16.data());
        set_thread_count(0);
        ASSERT_TRUE(same_values(y8, z8)) << loops.name << ", threads " << threads;
        ASSERT_TRUE(same_values(window, window_reference)) << loops.name << ", threads " << threads;
        ASSERT_TRUE(same_values(y16, z16)) << loops.name << ", threads " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace openrknn::npu
