// int8 convolutions against sums of products, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu_conv_cases.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

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
      auto zero = random_zeros(rng, s.in_channels);
      if (one_in(rng, 3)) std::fill(zero.begin(), zero.end(), 0);  // weights of one byte
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
