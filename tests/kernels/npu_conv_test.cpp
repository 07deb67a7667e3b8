#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/npu/conv.hpp"
#include "kernels/npu/conv_reference.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using openrknn::testing::any_extent;
using openrknn::testing::any_finite_half;
using openrknn::testing::Cases;
using openrknn::testing::Dyadic;
using openrknn::testing::exact_group;
using openrknn::testing::fill;
using openrknn::testing::half_value;
using openrknn::testing::one_in;
using openrknn::testing::pick;
using openrknn::testing::Property;
using openrknn::testing::Rng;
using openrknn::testing::same_values;
using testing::Loops;
using testing::names_of;
using testing::supported_loops;
using testing::UseLoops;

// Any, with about so many products at most.
ConvShape random_shape(Rng& rng, bool depthwise, int64_t most_products) {
  ConvShape s{};
  const bool three = one_in(rng, 3);
  s.kernel_h = three ? 3 : pick(rng, 1, 4), s.kernel_w = three ? 3 : pick(rng, 1, 4);
  s.stride_h = pick(rng, 1, 3), s.stride_w = pick(rng, 1, 3);
  s.dilation_h = pick(rng, 1, 2), s.dilation_w = pick(rng, 1, 2);
  s.in_channels = std::max<int64_t>(1, any_extent(rng, 100));
  s.out_channels = depthwise ? 1 : std::max<int64_t>(1, any_extent(rng, 70));
  s.out_h = pick(rng, 1, 4), s.out_w = pick(rng, 1, 20);
  for (int64_t* extent : {&s.out_channels, &s.out_h, &s.out_w, &s.in_channels}) {
    const int64_t products = s.kernel_h * s.kernel_w * s.in_channels * s.out_channels * s.out_h * s.out_w;
    if (products > most_products)
      *extent = std::max<int64_t>(1, std::min(*extent, *extent * most_products / products + pick(rng, 0, 1)));
  }
  s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1 + pick(rng, 0, 2);
  s.in_w = (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1 + pick(rng, 0, 2);
  s.channels = s.in_channels + (one_in(rng, 2) ? pick(rng, 0, 17) : 0);
  if (one_in(rng, 5)) s.channels = s.in_channels = pick(rng, 1, 4);  // first layers: pixels lie together
  if (depthwise) s.out_channels = s.in_channels;
  return s;
}

template <typename T>
T at(const ConvShape& s, const std::vector<T>& x, int64_t oh, int64_t ow, int64_t kh, int64_t kw, int64_t c) {
  const int64_t y = oh * s.stride_h + kh * s.dilation_h, column = ow * s.stride_w + kw * s.dilation_w;
  return x[static_cast<size_t>((y * s.in_w + column) * s.channels + c)];
}

std::vector<int8_t> random_bytes(Rng& rng, int64_t n) {
  std::vector<int8_t> v(static_cast<size_t>(n));
  fill(rng, v);
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

constexpr auto kRunConv = [](auto&&... a) { conv_s8(std::forward<decltype(a)>(a)...); };
constexpr auto kRunDepthwise = [](auto&&... a) { depthwise_s8(std::forward<decltype(a)>(a)...); };

std::vector<int32_t> random_zeros(Rng& rng, int64_t n) {
  std::vector<int32_t> zero(static_cast<size_t>(n));
  const int64_t reach = one_in(rng, 2) ? 60 : 128;
  const bool rails = one_in(rng, 4);  // one-sided filters: weights up to 255
  for (int32_t& z : zero) z = static_cast<int32_t>(rails ? (one_in(rng, 2) ? -128 : 128) : pick(rng, -reach, reach));
  return zero;
}

// Sums of x * w, of x over the window, and of x * (w + zero).
struct Sums {
  std::vector<int32_t> products, windows, with_zeros;
  Sums(const ConvShape& s, const std::vector<int8_t>& x, const std::vector<int8_t>& w,
       const std::vector<int32_t>& zero) {
    for (int64_t p = 0; p < s.out_h * s.out_w; ++p) {
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        int64_t sum = 0, all = 0;
        const int8_t* weights = w.data() + oc * s.kernel_h * s.kernel_w * s.in_channels;
        for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
          for (int64_t ic = 0; ic < s.in_channels; ++ic) {
            const int64_t value = at(s, x, p / s.out_w, p % s.out_w, tap / s.kernel_w, tap % s.kernel_w, ic);
            sum += value * *weights++;
            all += value;
          }
        }
        products.push_back(static_cast<int32_t>(sum));
        with_zeros.push_back(static_cast<int32_t>(sum + zero[static_cast<size_t>(oc)] * all));
        if (oc == 0) windows.push_back(static_cast<int32_t>(all));
      }
    }
  }
};

const Property kConvBytes({"conv_s8"}, 100);
TEST(NpuConvLoops, Int8EqualsTheSumOfProducts) {
  const auto every = supported_loops();
  for (Cases cases(kConvBytes, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    ConvShape s = random_shape(rng, false, one_in(rng, 50) ? 300000 : 6000);
    s.slack = pick(rng, 0, 1) * 64;
    const auto x = random_bytes(rng, s.in_h * s.in_w * s.channels + s.slack);
    const auto w = random_bytes(rng, s.out_channels * s.kernel_h * s.kernel_w * s.in_channels);
    const auto zero = random_zeros(rng, s.out_channels);
    const Sums want(s, x, w, zero);
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      ASSERT_TRUE(same_values(folded(s, x, w, zero, pack_conv_s8, kRunConv), want.with_zeros)) << loops.name;
      std::vector<int32_t> y(want.products.size(), -1), window(want.windows.size(), -1);
      conv_s8(s, x.data(), w.data(), y.data(), window.data());
      ASSERT_TRUE(same_values(y, want.products)) << loops.name;
      ASSERT_TRUE(same_values(window, want.windows)) << loops.name;
      std::fill(y.begin(), y.end(), -1);
      conv_s8(s, x.data(), w.data(), y.data(), nullptr);
      ASSERT_TRUE(same_values(y, want.products)) << loops.name << " without sums";
    }
  }
}

// Weights [kh][kw][channels].
struct DepthwiseSums {
  std::vector<int32_t> products, windows, with_zeros;
  DepthwiseSums(const ConvShape& s, const std::vector<int8_t>& x, const std::vector<int8_t>& w,
                const std::vector<int32_t>& zero) {
    for (int64_t i = 0; i < s.out_h * s.out_w * s.in_channels; ++i) {
      const int64_t p = i / s.in_channels, c = i % s.in_channels;
      int64_t sum = 0, all = 0;
      for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        const int64_t value = at(s, x, p / s.out_w, p % s.out_w, tap / s.kernel_w, tap % s.kernel_w, c);
        sum += value * w[static_cast<size_t>(tap * s.in_channels + c)];
        all += value;
      }
      products.push_back(static_cast<int32_t>(sum));
      windows.push_back(static_cast<int32_t>(all));
      with_zeros.push_back(static_cast<int32_t>(sum + zero[static_cast<size_t>(c)] * all));
    }
  }
};

const Property kDepthwiseBytes({"depthwise_s8"}, 150);
TEST(NpuConvLoops, DepthwiseInt8EqualsTheSumOfProducts) {
  const auto every = supported_loops();
  for (Cases cases(kDepthwiseBytes, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const ConvShape s = random_shape(rng, true, 6000);
    const auto x = random_bytes(rng, s.in_h * s.in_w * s.channels);
    const auto w = random_bytes(rng, s.kernel_h * s.kernel_w * s.in_channels);
    const auto zero = random_zeros(rng, s.in_channels);
    const DepthwiseSums want(s, x, w, zero);
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      ASSERT_TRUE(same_values(folded(s, x, w, zero, pack_depthwise_s8, kRunDepthwise), want.with_zeros)) << loops.name;
      std::vector<int32_t> y(want.products.size(), -1), window = y;
      depthwise_s8(s, x.data(), w.data(), y.data(), window.data());
      ASSERT_TRUE(same_values(y, want.products)) << loops.name;
      ASSERT_TRUE(same_values(window, want.windows)) << loops.name;
      std::fill(y.begin(), y.end(), -1);
      depthwise_s8(s, x.data(), w.data(), y.data(), nullptr);
      ASSERT_TRUE(same_values(y, want.products)) << loops.name << " without sums";
    }
  }
}

// The loops that few tables have, with a count of their calls.
struct Counted {
  static inline const ConvKernels* loops = nullptr;
  static inline int64_t calls = 0;
  static inline bool shared_columns = false;  // those that count
  static void depthwise_bytes(const DepthwiseRow& row, const int8_t* x, const uint8_t* w, int32_t* y) {
    calls += (row.shared_columns != 0) == shared_columns ? 1 : 0;
    loops->depthwise_bytes(row, x, w, y);
  }
};

// Cases that call them, with windows that share columns or without.
void check_interleaved(const Property& property, bool shared_columns) {
  Counted::shared_columns = shared_columns;
  for (const Loops& loops : supported_loops()) {
    ConvKernels kernels;
    {
      const UseLoops use(loops);
      Counted::loops = &conv_kernels();
      kernels = conv_kernels();
    }
    if (kernels.depthwise_bytes == nullptr) continue;
    kernels.depthwise_bytes = Counted::depthwise_bytes;
    const UseLoops use({loops.name, loops.isa, &kernels});
    for (Cases cases(property, loops.name); cases.next();) {
      Rng& rng = cases.rng();
      ConvShape s = random_shape(rng, true, 6000);
      if (shared_columns) {
        s.kernel_h = s.kernel_w = 3, s.dilation_w = 1, s.stride_w = pick(rng, 1, 2);
        s.in_h = (s.out_h - 1) * s.stride_h + 2 * s.dilation_h + 1;
        s.in_w = (s.out_w - 1) * s.stride_w + 3 + pick(rng, 0, 2);
      }
      const auto x = random_bytes(rng, s.in_h * s.in_w * s.channels);
      const auto w = random_bytes(rng, s.kernel_h * s.kernel_w * s.in_channels);
      const auto zero = random_zeros(rng, s.in_channels);
      const DepthwiseSums want(s, x, w, zero);
      const int64_t before = Counted::calls;
      ASSERT_TRUE(same_values(folded(s, x, w, zero, pack_depthwise_s8, kRunDepthwise), want.with_zeros)) << loops.name;
      if (Counted::calls == before) cases.skip();
    }
  }
}

const Property kInterleaved({"conv.depthwise_bytes"}, 200), kColumns({"conv.depthwise_bytes of columns"}, 200);
TEST(NpuConvLoops, InterleavedBytesEqualTheSumOfProducts) { check_interleaved(kInterleaved, false); }
TEST(NpuConvLoops, InterleavedColumnsEqualTheSumOfProducts) { check_interleaved(kColumns, true); }

// Sets of halves that make the group sum easy (network-like), or hard (all exponents, cancellations, ties).
uint16_t random_half(Rng& rng, int kind) {
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

const Property kExactDot({"exact_dot_f16"}, 20000);
TEST(NpuConv, HalfGroupSumIsExactAndRoundedOnce) {
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

const Property kConvHalf({"conv_f16", "conv.half"}, 100);
TEST(NpuConvLoops, HalfEqualsGroupsInTheOrderSliceRowColumn) {
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
TEST(NpuConvLoops, HalfOfInfinitiesEqualsTheReference) {
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
TEST(NpuConvLoops, DepthwiseHalfAddsOneProductAStep) {
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
TEST(NpuConvLoops, HalfTiesDecidedByTheLastBit) {
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

// Larger shapes and threads: against the scalar reference, which the tests above hold to exact numbers.
const Property kLarger({"conv_s8 of many", "conv_f16 of many"}, 12, 300);
TEST(NpuConvLoops, LargerShapesEqualTheReferenceForAnyThreads) {
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

TEST(NpuConvLoops, SumsUpToTheLimitOfTheAccumulator) {
  // 2^17 - 1 products of (-128) * (-128): 2^31 - 2^14.
  ConvShape s{};
  s.kernel_h = s.kernel_w = s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  s.in_h = s.out_h = 1, s.in_w = s.out_w = 7, s.in_channels = s.channels = (1 << 17) - 1, s.out_channels = 3;
  const std::vector<int8_t> x(static_cast<size_t>(7 * s.channels), -128), w(static_cast<size_t>(3 * s.channels), -128);
  for (const Loops& loops : supported_loops()) {
    const UseLoops use(loops);
    std::vector<int32_t> y(21), window(7);
    conv_s8(s, x.data(), w.data(), y.data(), window.data());
    EXPECT_EQ(y, std::vector<int32_t>(21, INT32_MAX - (1 << 14) + 1)) << loops.name;
    EXPECT_EQ(window, std::vector<int32_t>(7, -128 * ((1 << 17) - 1))) << loops.name;
  }
}

}  // namespace
}  // namespace openrknn::npu
