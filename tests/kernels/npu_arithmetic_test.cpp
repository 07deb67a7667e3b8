// Each formula of the arithmetic against a statement of its own: wide integers and divisions with remainder.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu_exact.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;

// Operands of all sizes: a random number of random bits.
int64_t any_size(std::mt19937_64& rng, int bits) {
  const int n = static_cast<int>(rng() % static_cast<uint64_t>(bits + 1));
  const auto magnitude = static_cast<int64_t>(n == 0 ? 0 : rng() >> (64 - n));
  return rng() % 2 ? -magnitude : magnitude;
}
// Near multiples of half the divisor: ties and their neighbours.
int64_t near_tie(std::mt19937_64& rng, int shift, int bits) {
  if (shift == 0 || shift >= bits) return any_size(rng, bits);
  const int64_t k = any_size(rng, bits - shift) | 1;
  return k * (int64_t{1} << (shift - 1)) + static_cast<int64_t>(rng() % 3) - 1;
}

TEST(NpuArithmetic, RneOfEverySmallNumber) {
  for (int s = 0; s <= 12; ++s) {
    for (int64_t p = -50000; p <= 50000; ++p) ASSERT_EQ(rne(p, s), nearest_even(p, s)) << p << " >> " << s;
  }
}

TEST(NpuArithmetic, RneOfLargeNumbersAndTies) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 2000000; ++round) {
    const int s = static_cast<int>(rng() % 64);
    const int64_t p = round % 2 ? near_tie(rng, s, 62) : any_size(rng, 63);
    ASSERT_EQ(rne(p, s), nearest_even(p, s)) << p << " >> " << s;
  }
  for (int s = 0; s < 64; ++s) {
    for (const int64_t p : {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1})
      ASSERT_EQ(rne(p, s), nearest_even(p, s));
  }
}

TEST(NpuArithmetic, RneWithOffsetIsTheRoundedSum) {
  std::mt19937_64 rng(2);
  for (int round = 0; round < 2000000; ++round) {
    const int s = static_cast<int>(rng() % 64);
    const int64_t p = round % 2 ? near_tie(rng, s, 47) : any_size(rng, 62);
    const int64_t z = any_size(rng, round % 3 ? 8 : 31);
    const Int128 sum = static_cast<Int128>(p) + static_cast<Int128>(z) * (static_cast<Int128>(1) << s);
    ASSERT_EQ(rne_with_offset(p, s, z), nearest_even(sum, s)) << p << " " << s << " " << z;
  }
}

TEST(NpuArithmetic, ChannelStage) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 2000000; ++round) {
    const int s_pos = static_cast<int>(rng() % 64), s_neg = round % 4 == 0 ? static_cast<int>(rng() % 64) : s_pos;
    const auto c = static_cast<int32_t>(round % 8 == 0 ? rng() % 65536 : static_cast<uint64_t>(any_size(rng, 15)));
    const int64_t t = c != 0 && round % 2 ? near_tie(rng, s_pos, 48) / c : any_size(rng, 40);
    const Int128 p = static_cast<Int128>(t) * c;
    ASSERT_EQ(channel_stage(t, c, s_pos, s_neg, false), saturate(nearest_even(p, p >= 0 ? s_pos : s_neg), 32));
    ASSERT_EQ(channel_stage(t, c, s_pos, s_neg, true), saturate(t, 32));
  }
}

TEST(NpuArithmetic, OutputStageInBothOrdersOfTheZeroPoint) {
  std::mt19937_64 rng(4);
  int64_t different = 0;
  for (int round = 0; round < 2000000; ++round) {
    const int s = static_cast<int>(rng() % 48);
    // Powers of two meet ties.
    const auto m = static_cast<int32_t>(round % 3 == 0   ? rng() % 65536 - 32768
                                        : round % 3 == 1 ? uint64_t{1} << rng() % 15
                                                         : 16384 + rng() % 16384);
    const auto zp = static_cast<int32_t>(rng() % 256) - 128;
    // Results inside int8, ties among them: even multipliers meet ties often.
    const int64_t v = m == 0 || round % 4 == 0 ? any_size(rng, 31) : near_tie(rng, s, s + 8) / m;
    const Int128 p = static_cast<Int128>(v) * m;
    const Int128 first = saturate(nearest_even(p + zp * (static_cast<Int128>(1) << s), s), 8);
    const Int128 last = saturate(nearest_even(p, s) + zp, 8);
    ASSERT_EQ(output_stage(v, m, s, zp, true), first) << v << " " << m << " " << s << " " << zp;
    ASSERT_EQ(output_stage(v, m, s, zp, false), last) << v << " " << m << " " << s << " " << zp;
    different += first != last ? 1 : 0;
  }
  EXPECT_GT(different, 1000);  // the sample tells the two orders apart
  // npu.md 3.6: 127.5 - 1 is 126 when the zero point comes first (126.5 to even), 127 when last.
  EXPECT_EQ(output_stage(255, 1, 1, -1, true), 126);
  EXPECT_EQ(output_stage(255, 1, 1, -1, false), 127);
}

TEST(NpuArithmetic, OperandStage) {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 1000000; ++round) {
    const int s = static_cast<int>(rng() % 64);
    const int64_t x = static_cast<int8_t>(rng());
    const auto offset = static_cast<int32_t>(any_size(rng, round % 4 ? 8 : 31)),
               m = static_cast<int32_t>(any_size(rng, 31));
    ASSERT_EQ(operand_stage(x, offset, m, s), nearest_even(static_cast<Int128>(x + offset) * m, s));
  }
}

// npu.md 3.11: half away from zero; exact halves step back when a reciprocal is inexact, else when the quotient is odd.
int expected_average(int sum, int kh, int kw) {
  const int n = kh * kw;
  const Int128 doubled = 2 * static_cast<Int128>(sum), d = 2 * n;
  const Int128 below = floor_div(doubled, d), rest = doubled - below * d;  // sum / n = below + rest / (2 n)
  if (rest * 2 != d) return static_cast<int>(rest * 2 > d ? below + 1 : below);
  const auto toward_zero = static_cast<int>(sum >= 0 ? below : below + 1);
  const auto away = static_cast<int>(sum >= 0 ? below + 1 : below);
  const auto power_of_two = [](int k) { return (k & (k - 1)) == 0; };  // exactly these divide 65536 for k <= 16
  if (!power_of_two(kh) || !power_of_two(kw)) return toward_zero;
  return away % 2 == 0 ? away : toward_zero;
}

TEST(NpuArithmetic, AverageOfEverySumAndKernel) {
  for (int kh = 1; kh <= 16; ++kh) {
    for (int kw = 1; kw <= 16; ++kw) {
      for (int sum = -128 * kh * kw; sum <= 127 * kh * kw; ++sum) {
        ASSERT_EQ(average_stage(sum, kh, kw), expected_average(sum, kh, kw)) << sum << " / " << kh << "x" << kw;
      }
    }
  }
  EXPECT_EQ(average_stage(2, 2, 2), 0);    // 0.5
  EXPECT_EQ(average_stage(6, 2, 2), 2);    // 1.5
  EXPECT_EQ(average_stage(-6, 2, 2), -2);  // -1.5
  EXPECT_EQ(average_stage(9, 2, 3), 1);    // 1.5 with an inexact reciprocal
}

TEST(NpuArithmetic, TableOfEveryIndex) {
  std::mt19937_64 rng(6);
  for (int round = 0; round < 20; ++round) {
    std::vector<int16_t> table(2 * 513);
    for (auto& t : table) t = static_cast<int16_t>(round < 10 ? rng() : rng() % 3 ? 32767 : -32768);
    for (int64_t x = -20000; x <= 20000; ++x) {
      // The point x lies on the piecewise linear curve through (-16384 + 32 i, negative[i]) or (32 i, positive[i]).
      const int64_t limited = std::clamp<int64_t>(x, -16384, 16384);
      const size_t half = limited < 0 ? 0 : 513;
      const Int128 knot = floor_div(limited < 0 ? limited + 16384 : limited, 32);
      const int64_t f = (limited < 0 ? limited + 16384 : limited) - static_cast<int64_t>(knot) * 32;
      const size_t i = half + static_cast<size_t>(knot);
      const int64_t left = table[i], right = f == 0 ? left : table[i + 1];
      ASSERT_EQ(table_value(table.data(), x), left + static_cast<int64_t>(floor_div((right - left) * f, 32))) << x;
    }
  }
}

}  // namespace
}  // namespace openrknn::npu
