#include <gtest/gtest.h>

#include <vector>

#include "base/parallel.hpp"
#include "kernels/npu/winograd.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

ConvShape shape_of(int64_t channels, int64_t in_channels, int64_t out_channels, int64_t out_h, int64_t out_w) {
  ConvShape s{};
  s.channels = channels;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.out_h = out_h;
  s.out_w = out_w;
  s.in_h = out_h + 2;
  s.in_w = out_w + 2;
  s.kernel_h = s.kernel_w = 3;
  s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  return s;
}

// Sums of x * (w + zero) in 64 bits.
std::vector<int32_t> sums_of(const ConvShape& s, const std::vector<int8_t>& x, const std::vector<int8_t>& w,
                             const int32_t* zero) {
  std::vector<int32_t> sums;
  for (int64_t y = 0; y < s.out_h; ++y) {
    for (int64_t column = 0; column < s.out_w; ++column) {
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        int64_t sum = 0;
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int8_t* from = x.data() + ((y + tap / 3) * s.in_w + column + tap % 3) * s.channels;
          const int8_t* weights = w.data() + (oc * 9 + tap) * s.in_channels;
          for (int64_t c = 0; c < s.in_channels; ++c)
            sum += int64_t{from[c]} * (weights[c] + (zero == nullptr ? 0 : zero[oc]));
        }
        sums.push_back(static_cast<int32_t>(sum));
      }
    }
  }
  return sums;
}

std::vector<int32_t> results_of(const ConvShape& s, const std::vector<int8_t>& x, const std::vector<int8_t>& w,
                                const int32_t* zero) {
  const WinogradFilters filters = pack_winograd_s8(s, w.data(), zero);
  std::vector<int32_t> got(static_cast<size_t>(s.out_h * s.out_w * s.out_channels), 1 << 30);
  if (filters.empty()) return {};
  winograd_s8(s, x.data(), filters, [&](const AccumulatorBlock<int32_t>& b) {
    for (int64_t p = 0; p < b.pixels; ++p) {
      for (int64_t c = 0; c < b.channels; ++c)
        got[static_cast<size_t>((b.pixel + p) * s.out_channels + b.channel + c)] = b.values[p * b.channels + c];
    }
  });
  return got;
}

const Property kWinograd({"winograd_s8"}, 60);
TEST(NpuWinograd, EqualsTheSums) {
  const auto every = supported_loops();
  for (Cases cases(kWinograd, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const bool large = one_in(rng, 20);
    const int64_t in_channels = pick(rng, 1, large ? 220 : 40), out_channels = pick(rng, 1, large ? 70 : 36);
    const ConvShape s = shape_of(in_channels + (one_in(rng, 3) ? pick(rng, 0, 5) : 0), in_channels, out_channels,
                                 pick(rng, 1, large ? 9 : 6), pick(rng, 1, large ? 20 : 6));
    std::vector<int8_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    std::vector<int8_t> w(static_cast<size_t>(s.out_channels * 9 * s.in_channels));
    fill(rng, x);
    fill(rng, w);
    std::vector<int32_t> zero;
    for (int64_t oc = 0; oc < s.out_channels; ++oc) zero.push_back(static_cast<int32_t>(pick(rng, -128, 128)));
    const int32_t* zeros = one_in(rng, 2) ? nullptr : zero.data();
    const std::vector<int32_t> want = sums_of(s, x, w, zeros);
    set_thread_count(one_in(rng, 2) ? 1 : 2);
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      const std::vector<int32_t> got = results_of(s, x, w, zeros);
      if (got.empty()) {  // some result might not fit
        cases.skip();
        break;
      }
      ASSERT_TRUE(same_values(got, want)) << loops.name << ": " << s.in_channels << " to " << s.out_channels
                                          << " channels, " << s.out_h << "x" << s.out_w;
    }
  }
  set_thread_count(0);
}

// 9 * 227 * 128 * 128 is the last multiple below 2^25.
TEST(NpuWinograd, ExactUpToTheBoundAndRefusedBeyond) {
  for (const Loops& loops : supported_loops()) {
    const UseLoops use(loops);
    for (const int8_t value : {int8_t{-128}, int8_t{127}}) {
      const ConvShape s = shape_of(227, 227, 17, 5, 6);
      const std::vector<int8_t> x(static_cast<size_t>(s.in_h * s.in_w * s.channels), -128);
      const std::vector<int8_t> w(static_cast<size_t>(s.out_channels * 9 * s.in_channels), value);
      ASSERT_TRUE(same_values(results_of(s, x, w, nullptr), sums_of(s, x, w, nullptr))) << loops.name;
    }
    const ConvShape s = shape_of(228, 228, 2, 5, 6);
    std::vector<int8_t> w(static_cast<size_t>(s.out_channels * 9 * s.in_channels), 1);
    EXPECT_FALSE(pack_winograd_s8(s, w.data(), nullptr).empty());
    std::fill(w.begin() + 9 * 228, w.end(), int8_t{-128});  // one channel is enough
    EXPECT_TRUE(pack_winograd_s8(s, w.data(), nullptr).empty());
  }
}

TEST(NpuWinogradChoice, SaysWhyNot) {
  const auto refused = [](const ConvShape& s, int64_t h, int64_t w) {
    const char* why = winograd_refusal(s, h, w, false);
    return std::string(why == nullptr ? "" : why);
  };
  const ConvShape s = shape_of(64, 64, 64, 0, 0);
  EXPECT_EQ(refused(s, 56, 56), "");
  EXPECT_EQ(refused(s, 14, 14), "");
  EXPECT_NE(winograd_refusal(s, 56, 56, true), nullptr);
  EXPECT_NE(refused(s, 7, 7).find("few tiles"), std::string::npos);
  EXPECT_NE(refused(s, 1, 100).find("third of the tiles"), std::string::npos);
  EXPECT_NE(refused(shape_of(16, 16, 64, 0, 0), 56, 56).find("few channels"), std::string::npos);
  ConvShape changed = s;
  changed.stride_w = 2;
  EXPECT_NE(refused(changed, 56, 56).find("stride"), std::string::npos);
  changed = s;
  changed.dilation_h = 2;
  EXPECT_NE(refused(changed, 56, 56).find("dilated"), std::string::npos);
  changed = s;
  changed.kernel_w = 1;
  EXPECT_NE(refused(changed, 56, 56).find("not 3x3"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::npu
