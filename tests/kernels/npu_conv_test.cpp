#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/npu/conv.hpp"
#include "kernels/npu/conv_reference.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/npu_loops.hpp"

namespace openrknn::npu {
namespace {

using openrknn::testing::any_finite_half;
using openrknn::testing::Dyadic;
using openrknn::testing::exact_group;
using openrknn::testing::half_value;

using NpuConvLoops = testing::NpuLoops;
using testing::pick;
INSTANTIATE_TEST_SUITE_P(Every, NpuConvLoops, testing::all_loops(), testing::loops_name);

ConvShape random_shape(std::mt19937& rng, bool depthwise) {
  ConvShape s{};
  s.kernel_h = pick(rng, 1, 4), s.kernel_w = pick(rng, 1, 4);
  s.stride_h = pick(rng, 1, 3), s.stride_w = pick(rng, 1, 3);
  s.dilation_h = pick(rng, 1, 2), s.dilation_w = pick(rng, 1, 2);
  s.out_h = pick(rng, 1, 6), s.out_w = pick(rng, 1, 20);
  s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1 + pick(rng, 0, 2);
  s.in_w = (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1 + pick(rng, 0, 2);
  s.in_channels = pick(rng, 1, 100);
  s.channels = s.in_channels + pick(rng, 0, 17);
  if (rng() % 5 == 0) s.channels = s.in_channels = pick(rng, 1, 4);  // first layers: pixels lie together
  s.out_channels = depthwise ? s.in_channels : pick(rng, 1, 70);
  return s;
}

template <typename T>
T at(const ConvShape& s, const std::vector<T>& x, int64_t oh, int64_t ow, int64_t kh, int64_t kw, int64_t c) {
  const int64_t y = oh * s.stride_h + kh * s.dilation_h, column = ow * s.stride_w + kw * s.dilation_w;
  return x[static_cast<size_t>((y * s.in_w + column) * s.channels + c)];
}

std::vector<int8_t> random_bytes(std::mt19937& rng, int64_t n) {
  std::vector<int8_t> v(static_cast<size_t>(n));
  const bool rails = rng() % 4 == 0;  // the extremes: largest products
  for (int8_t& x : v) x = rails ? static_cast<int8_t>(rng() % 2 ? -128 : 127) : static_cast<int8_t>(rng());
  return v;
}

// What the sink of a packed convolution gets, as one array; weights count as w + zero of their output channel.
template <typename Pack, typename Run>
std::vector<int32_t> folded(const ConvShape& s, const std::vector<int8_t>& x, const std::vector<int8_t>& w,
                            const std::vector<int32_t>& zero, Pack&& pack, Run&& run) {
  std::vector<int32_t> y(static_cast<size_t>(s.out_h * s.out_w * s.out_channels), -1);
  const IntegerFilters filters = pack(s, w.data(), zero.data());
  EXPECT_TRUE(filters.current());
  const AccumulatorSink<int32_t> sink = [&](const AccumulatorBlock<int32_t>& b) {
    for (int64_t p = 0; p < b.pixels; ++p)
      std::copy_n(b.values + p * b.channels, b.channels, y.data() + (b.pixel + p) * s.out_channels + b.channel);
  };
  run(s, x.data(), filters, false, sink);
  return y;
}

std::vector<int32_t> random_zeros(std::mt19937& rng, int64_t n) {
  std::vector<int32_t> zero(static_cast<size_t>(n));
  const int64_t reach = rng() % 2 == 0 ? 60 : 128;
  const bool rails = rng() % 4 == 0;  // one-sided filters: weights up to 255
  for (int32_t& z : zero) z = static_cast<int32_t>(rails ? (rng() % 2 ? -128 : 128) : pick(rng, -reach, reach));
  return zero;
}

TEST_P(NpuConvLoops, Int8EqualsTheSumOfProducts) {
  std::mt19937 rng(1);
  for (int round = 0; round < 200; ++round) {
    ConvShape s = random_shape(rng, false);
    s.slack = pick(rng, 0, 1) * 64;
    const auto x = random_bytes(rng, s.in_h * s.in_w * s.channels + s.slack);
    const auto w = random_bytes(rng, s.out_channels * s.kernel_h * s.kernel_w * s.in_channels);
    const auto zero = random_zeros(rng, s.out_channels);
    const auto with_zeros =
        folded(s, x, w, zero, pack_conv_s8, [](auto&&... a) { conv_s8(std::forward<decltype(a)>(a)...); });
    std::vector<int32_t> y(static_cast<size_t>(s.out_h * s.out_w * s.out_channels), -1),
        window(static_cast<size_t>(s.out_h * s.out_w), -1);
    conv_s8(s, x.data(), w.data(), y.data(), window.data());
    auto without = y;
    conv_s8(s, x.data(), w.data(), without.data(), nullptr);
    ASSERT_EQ(y, without);
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      int64_t all = 0;
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        int64_t sum = 0;
        all = 0;
        for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
            for (int64_t ic = 0; ic < s.in_channels; ++ic) {
              const int64_t value = at(s, x, p / s.out_w, p % s.out_w, kh, kw, ic);
              sum += value * w[static_cast<size_t>(((oc * s.kernel_h + kh) * s.kernel_w + kw) * s.in_channels + ic)];
              all += value;
            }
          }
        }
        ASSERT_EQ(y[static_cast<size_t>(p * s.out_channels + oc)], sum)
            << "round " << round << " pixel " << p << " oc " << oc;
        ASSERT_EQ(with_zeros[static_cast<size_t>(p * s.out_channels + oc)], sum + zero[static_cast<size_t>(oc)] * all)
            << "round " << round << " pixel " << p << " oc " << oc;
      }
      ASSERT_EQ(window[static_cast<size_t>(p)], all) << "round " << round << " pixel " << p;
    }
  }
}

TEST_P(NpuConvLoops, DepthwiseInt8EqualsTheSumOfProducts) {
  std::mt19937 rng(2);
  for (int round = 0; round < 300; ++round) {
    const ConvShape s = random_shape(rng, true);
    const auto x = random_bytes(rng, s.in_h * s.in_w * s.channels);
    const auto w = random_bytes(rng, s.kernel_h * s.kernel_w * s.in_channels);
    const auto zero = random_zeros(rng, s.in_channels);
    const auto with_zeros =
        folded(s, x, w, zero, pack_depthwise_s8, [](auto&&... a) { depthwise_s8(std::forward<decltype(a)>(a)...); });
    std::vector<int32_t> y(static_cast<size_t>(s.out_h * s.out_w * s.in_channels), -1), window = y;
    depthwise_s8(s, x.data(), w.data(), y.data(), window.data());
    auto without = y;
    depthwise_s8(s, x.data(), w.data(), without.data(), nullptr);
    ASSERT_EQ(y, without);
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        int64_t sum = 0, all = 0;
        for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
            const int64_t value = at(s, x, p / s.out_w, p % s.out_w, kh, kw, c);
            sum += value * w[static_cast<size_t>((kh * s.kernel_w + kw) * s.in_channels + c)];
            all += value;
          }
        }
        ASSERT_EQ(y[static_cast<size_t>(p * s.in_channels + c)], sum) << "round " << round;
        ASSERT_EQ(window[static_cast<size_t>(p * s.in_channels + c)], all) << "round " << round;
        ASSERT_EQ(with_zeros[static_cast<size_t>(p * s.in_channels + c)], sum + zero[static_cast<size_t>(c)] * all)
            << "round " << round;
      }
    }
  }
}

// Sets of halves that make the group sum easy (network-like), or hard (all exponents, cancellations, ties).
uint16_t random_half(std::mt19937& rng, int kind) {
  switch (kind) {
    case 0:
      return any_finite_half(rng);
    case 1:
      return static_cast<uint16_t>((rng() & 0x83FF) | ((10 + rng() % 6) << 10));  // about 2^-5 .. 2^1
    case 2:
      return static_cast<uint16_t>((rng() & 0x8000) |
                                   (rng() % 3 == 0 ? 0x7BFF : rng() % 0x401));  // extremes, subnormals
    case 3:
      return rng() % 2 ? uint16_t{0} : static_cast<uint16_t>((rng() & 0x83FF) | (15 << 10));
    case 4: {  // ties of fp32 sums, decided by products that doubles cannot hold beside them
      constexpr uint16_t kValues[] = {0x7800, 0xF800, 0x7400, 0x4800, 0xC800, 0x4400, 0x0001, 0x8001, 0};
      return kValues[rng() % 9];
    }
    default:
      return rng() % 100 == 0 ? static_cast<uint16_t>(0x7C00 | (rng() & 0x8001)) : any_finite_half(rng);  // inf, NaN
  }
}

TEST(NpuConv, HalfGroupSumIsExactAndRoundedOnce) {
  std::mt19937 rng(3);
  for (int round = 0; round < 1000000; ++round) {
    const int kind = round % 5;
    const size_t n = 1 + rng() % 64;
    uint16_t a[64], b[64];
    for (size_t i = 0; i < n; ++i) a[i] = random_half(rng, kind), b[i] = random_half(rng, kind);
    if (rng() % 2 == 0) {  // cancellation: all but a few small terms vanish
      for (size_t i = 0; i + 1 < n - n / 4; i += 2) a[i + 1] = a[i] ^ 0x8000, b[i + 1] = b[i];
    }
    const float got = exact_dot_f16(a, b, static_cast<int64_t>(n)), want = exact_group({a, n}, {b, n});
    ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
        << "round " << round << ": " << got << " for " << want;
  }
}

TEST(NpuConv, HalfGroupSumRoundsTiesToEven) {
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

TEST(NpuConv, HalfGroupSumOfInfinitiesAndNaNFollowsIeee) {
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

TEST_P(NpuConvLoops, HalfEqualsGroupsInTheOrderSliceRowColumn) {
  std::mt19937 rng(4);
  for (int round = 0; round < 120; ++round) {
    ConvShape s = random_shape(rng, false);
    s.out_h = std::min<int64_t>(s.out_h, 3), s.out_w = std::min<int64_t>(s.out_w, 7), s.out_channels = pick(rng, 1, 40);
    const int kind = round % 5;
    std::vector<uint16_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<uint16_t> w(static_cast<size_t>(s.out_channels * s.kernel_h * s.kernel_w * s.in_channels));
    for (auto& v : x) v = random_half(rng, kind);
    for (auto& v : w) v = random_half(rng, kind);
    const int64_t slice = pick(rng, 0, 1) ? 32 : 16, group = pick(rng, 0, 1) ? slice : slice / 2;
    std::vector<float> y(static_cast<size_t>(s.out_h * s.out_w * s.out_channels), -1);
    conv_f16(s, slice, group, x.data(), w.data(), y.data());
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        float sum = 0;
        for (int64_t first = 0; first < s.in_channels; first += slice) {
          for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
            for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
              for (int64_t part = first; part < std::min(first + slice, s.in_channels); part += group) {
                std::vector<uint16_t> a, b;
                for (int64_t ic = part; ic < std::min({part + group, first + slice, s.in_channels}); ++ic) {
                  a.push_back(at(s, x, p / s.out_w, p % s.out_w, kh, kw, ic));
                  b.push_back(w[static_cast<size_t>(((oc * s.kernel_h + kh) * s.kernel_w + kw) * s.in_channels + ic)]);
                }
                sum = add_f32(sum, exact_group(a, b));
              }
            }
          }
        }
        const float got = y[static_cast<size_t>(p * s.out_channels + oc)];
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(sum))
            << "round " << round << " pixel " << p << " oc " << oc;
      }
    }
  }
}

TEST_P(NpuConvLoops, DepthwiseHalfAddsOneProductAStep) {
  std::mt19937 rng(5);
  for (int round = 0; round < 200; ++round) {
    const ConvShape s = random_shape(rng, true);
    std::vector<uint16_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<uint16_t> w(static_cast<size_t>(s.kernel_h * s.kernel_w * s.in_channels));
    for (auto& v : x) v = random_half(rng, round % 5);
    for (auto& v : w) v = random_half(rng, round % 5);
    std::vector<float> y(static_cast<size_t>(s.out_h * s.out_w * s.in_channels), -1);
    depthwise_f16(s, x.data(), w.data(), y.data());
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        float sum = 0;
        for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
            const double product = half_value(at(s, x, p / s.out_w, p % s.out_w, kh, kw, c)) *
                                   half_value(w[static_cast<size_t>((kh * s.kernel_w + kw) * s.in_channels + c)]);
            sum = add_f32(sum, static_cast<float>(product));
          }
        }
        const float got = y[static_cast<size_t>(p * s.in_channels + c)];
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(sum)) << "round " << round;
      }
    }
  }
}

// A half of the given mantissa (1024 .. 2047) and exponent field.
uint16_t half_of(int mantissa, int64_t exponent) { return static_cast<uint16_t>((exponent << 10) | (mantissa - 1024)); }

// In units of the smallest product's last bit: 2^k + 2^(k - 24) + 1, and 2^k + 3 * 2^(k - 24) - 1. The last 1 decides
// an fp32 tie; a double loses it from k = 54 on. The condition for plain doubles must refuse before that.
TEST_P(NpuConvLoops, HalfTiesDecidedByTheLastBit) {
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
      float y = 0;
      conv_f16(s, 32, 32, x.data(), w.data(), &y);
      const float unit_value = std::ldexp(1.0F, 2 * (static_cast<int>(unit) - 25));
      const float want = std::ldexp(1.0F + 0x1p-23F, static_cast<int>(k)) * unit_value;
      ASSERT_EQ(y, want) << "k " << k << (above ? " above" : " below");
      ASSERT_EQ(y, exact_group(x, w)) << "k " << k;
    }
  }
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Larger shapes, special values and threads: against the scalar reference, which the tests above hold to exact numbers.
TEST_P(NpuConvLoops, LargerShapesEqualTheReferenceForAnyThreads) {
  std::mt19937 rng(6);
  for (int round = 0; round < 24; ++round) {
    ConvShape s = random_shape(rng, false);
    s.out_h = pick(rng, 1, 12), s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    s.in_channels = pick(rng, 1, 150), s.channels = (s.in_channels + 15) / 16 * 16, s.out_channels = pick(rng, 1, 150);
    const auto x8 = random_bytes(rng, s.in_h * s.in_w * s.channels);
    const auto w8 = random_bytes(rng, s.out_channels * s.kernel_h * s.kernel_w * s.in_channels);
    const int kind = round % 6;  // 5: infinities and NaN
    std::vector<uint16_t> x16(x8.size()), w16(w8.size());
    for (auto& v : x16) v = random_half(rng, kind);
    for (auto& v : w16) v = random_half(rng, kind == 5 ? 1 : kind);
    const auto pixels = static_cast<size_t>(s.out_h * s.out_w), size = pixels * static_cast<size_t>(s.out_channels);
    std::vector<int32_t> y8(size), z8(size), window(pixels), window_reference(pixels);
    std::vector<float> y16(size), z16(size);
    reference::conv_s8(s, x8.data(), w8.data(), z8.data(), window_reference.data());
    reference::conv_f16(s, 32, 32, x16.data(), w16.data(), z16.data());
    for (const int threads : {1, 2}) {
      set_thread_count(threads);
      conv_s8(s, x8.data(), w8.data(), y8.data(), window.data());
      conv_f16(s, 32, 32, x16.data(), w16.data(), y16.data());
      EXPECT_TRUE(same_bytes(y8, z8)) << "round " << round << ", threads " << threads;
      EXPECT_TRUE(same_bytes(window, window_reference)) << "round " << round << ", threads " << threads;
      EXPECT_TRUE(same_bytes(y16, z16)) << "round " << round << ", threads " << threads;
    }
    set_thread_count(0);
  }
}

TEST_P(NpuConvLoops, SumsUpToTheLimitOfTheAccumulator) {
  // 2^17 - 1 products of (-128) * (-128): 2^31 - 2^14.
  ConvShape s{};
  s.kernel_h = s.kernel_w = s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  s.in_h = s.out_h = 1, s.in_w = s.out_w = 7, s.in_channels = s.channels = (1 << 17) - 1, s.out_channels = 3;
  const std::vector<int8_t> x(static_cast<size_t>(7 * s.channels), -128), w(static_cast<size_t>(3 * s.channels), -128);
  std::vector<int32_t> y(21), window(7);
  conv_s8(s, x.data(), w.data(), y.data(), window.data());
  EXPECT_EQ(y, std::vector<int32_t>(21, INT32_MAX - (1 << 14) + 1));
  EXPECT_EQ(window, std::vector<int32_t>(7, -128 * ((1 << 17) - 1)));
}

}  // namespace
}  // namespace openrknn::npu
