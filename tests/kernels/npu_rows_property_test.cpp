// Every function of RowKernels, on every instruction set, against single values from arithmetic.hpp or from the
// definition: any extent, arrays that end where memory does, ties, ends of ranges, numbers that are none.
// Halves: npu_rows_half_property_test.cpp; requantize and requantize_look_up: npu_requantizer_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu_rows_cases.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

std::vector<int32_t> any_ints(Rng& rng, int64_t n, int bits) {
  std::vector<int32_t> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<int32_t>(any_size(rng, bits)));
  return v;
}

// Values whose product with `multiplier` lies around ties of a shift.
int32_t tie_of(Rng& rng, int64_t multiplier, int shift) {
  if (multiplier == 0) return static_cast<int32_t>(any_size(rng, 31));
  return sat32(near_tie(rng, shift, 46) / multiplier);
}

std::vector<int8_t> any_bytes(Rng& rng, int64_t n) {
  std::vector<int8_t> v(static_cast<size_t>(n));
  fill(rng, v);
  return v;
}

int any_shift(Rng& rng, int most) { return static_cast<int>(one_in(rng, 8) ? pick(rng, 0, 63) : pick(rng, 0, most)); }

int32_t any_multiplier(Rng& rng, int bits) {
  return static_cast<int32_t>(one_in(rng, 3) ? int64_t{1} << pick(rng, 0, bits - 1) : any_size(rng, bits));
}

const Property kChannel({"rows.channel"}, kUsual);
TEST(NpuRows, Channel) {
  for_cases(kChannel, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost), step = pick(rng, 0, 1);
    const bool with_sums = one_in(rng, 2);
    const int shift = any_shift(rng, 30), shift_negative = one_in(rng, 4) ? any_shift(rng, 30) : shift;
    auto acc = any_ints(rng, n, one_in(rng, 3) ? 31 : 24), bias = any_ints(rng, n, one_in(rng, 3) ? 31 : 12);
    auto b = any_ints(rng, n, 11), sums = any_ints(rng, step == 0 ? 1 : n, 23), c = any_ints(rng, n, 15);
    std::vector<int32_t> want;
    for (size_t i = 0; i < acc.size(); ++i) {
      c[i] = std::clamp(one_in(rng, 8) ? static_cast<int32_t>(pick(rng, -65535, 65535)) : any_multiplier(rng, 15),
                        -65535, 65535);
      if (!with_sums && one_in(rng, 2)) acc[i] = sat32(int64_t{tie_of(rng, c[i], shift)} - bias[i]);
      int64_t t = int64_t{acc[i]} + bias[i];
      if (with_sums) t += int64_t{b[i]} * sums[step == 0 ? 0 : i];
      want.push_back(channel_stage(t, c[i], shift, shift_negative, false));
    }
    const auto got = memory.take<int32_t>(rng, n);
    return [=, a = memory.copy(rng, acc), bias = memory.copy(rng, bias), b = memory.copy(rng, b),
            s = memory.copy(rng, sums), c = memory.copy(rng, c)](const RowKernels& k) {
      std::fill(got.begin(), got.end(), 77);
      k.channel(n, a.data(), bias.data(), with_sums ? b.data() : nullptr, with_sums ? s.data() : nullptr, step,
                c.data(), std::ldexp(1.0, -shift), std::ldexp(1.0, -shift_negative), got.data());
      return same_values(got, want);
    };
  });
}

const Property kOperand({"rows.operand"}, kUsual);
TEST(NpuRows, Operand) {
  for_cases(kOperand, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const auto x = any_bytes(rng, n);
    const auto offset =
        static_cast<int32_t>(pick(rng, 0, 2) == 0 ? pick(rng, -(1 << 20), 1 << 20) : pick(rng, -255, 255));
    const int shift = any_shift(rng, 30);
    const auto multiplier = any_multiplier(rng, one_in(rng, 2) ? 15 : 31);
    const bool add = one_in(rng, 2);
    const auto before = any_ints(rng, n, 31);
    std::vector<int32_t> want;
    for (size_t i = 0; i < x.size(); ++i) {
      const int32_t e = sat32(operand_stage(x[i], offset, multiplier, shift));
      want.push_back(add ? sat32(int64_t{before[i]} + e) : e);
    }
    const auto v = memory.take<int32_t>(rng, n);
    return [=, x = memory.copy(rng, x)](const RowKernels& k) {
      std::copy(before.begin(), before.end(), v.begin());
      k.operand(n, x.data(), offset, multiplier * std::ldexp(1.0, -shift), add, v.data());
      return same_values(v, want);
    };
  });
}

const Property kTableIndex({"rows.table_index"}, kUsual);
TEST(NpuRows, TableIndex) {
  for_cases(kTableIndex, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const int shift = any_shift(rng, 30);
    const auto scale = any_multiplier(rng, 15);
    auto v = any_ints(rng, n, one_in(rng, 2) ? 31 : 16);
    std::vector<int32_t> want;
    for (int32_t& x : v) {
      if (one_in(rng, 2)) x = tie_of(rng, scale, shift);
      want.push_back(
          static_cast<int32_t>(std::clamp<int64_t>(rne(int64_t{x} * scale, shift), -kTableLimit, kTableLimit)) +
          kTableLimit);
    }
    const auto got = memory.take<int32_t>(rng, n);
    return [=, v = memory.copy(rng, v)](const RowKernels& k) {
      k.table_index(n, v.data(), scale * std::ldexp(1.0, -shift), kTableLimit, got.data());
      return same_values(got, want);
    };
  });
}

const Property kPrelu({"rows.prelu"}, kUsual);
TEST(NpuRows, PRelu) {
  for_cases(kPrelu, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost), step = pick(rng, 0, 1);
    const int shift = any_shift(rng, 20);
    std::vector<int16_t> slopes;
    for (int64_t i = 0; i < (step == 0 ? 1 : n); ++i)
      slopes.push_back(static_cast<int16_t>(one_in(rng, 2) ? any_multiplier(rng, 15) : static_cast<int>(rng())));
    auto v = any_ints(rng, n, 31);
    std::vector<int32_t> want;
    for (size_t i = 0; i < v.size(); ++i) {
      const int64_t slope = slopes[step == 0 ? 0 : i];
      if (one_in(rng, 2)) v[i] = tie_of(rng, slope, shift);
      want.push_back(v[i] < 0 ? sat32(rne(v[i] * slope, shift)) : v[i]);
    }
    const auto got = memory.take<int32_t>(rng, n);
    return [=, slopes = memory.copy(rng, slopes)](const RowKernels& k) {
      std::copy(v.begin(), v.end(), got.begin());
      k.prelu(n, slopes.data(), step, std::ldexp(1.0, -shift), got.data());
      return same_values(got, want);
    };
  });
}

const Property kClamp({"rows.clamp"}, kUsual);
TEST(NpuRows, Clamp) {
  for_cases(kClamp, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const auto low = static_cast<int32_t>(any_size(rng, 31)), high = static_cast<int32_t>(any_size(rng, 31));
    const auto v = any_ints(rng, n, 31);
    std::vector<int32_t> want;
    for (const int32_t x : v) want.push_back(std::min(std::max(x, low), high));
    const auto got = memory.take<int32_t>(rng, n);
    return [=](const RowKernels& k) {
      std::copy(v.begin(), v.end(), got.begin());
      k.clamp(n, low, high, got.data());
      return same_values(got, want);
    };
  });
}

const Property kOutput({"rows.output"}, kUsual);
TEST(NpuRows, Output) {
  for_cases(kOutput, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const bool first = one_in(rng, 2);
    const int shift = first ? std::min(any_shift(rng, 30), 32) : any_shift(rng, 40);
    const auto multiplier = any_multiplier(rng, 16);
    const auto zero = static_cast<int32_t>(one_in(rng, 8) ? pick(rng, -65535, 65535) : pick(rng, -129, 128));
    std::vector<int32_t> v = any_ints(rng, n, std::min(31, shift + 3));
    std::vector<int8_t> want;
    for (int32_t& x : v) {
      // A result of 9 bits or so, on ties.
      if (multiplier != 0 && one_in(rng, 2)) x = sat32(near_tie(rng, shift, std::min(46, shift + 9)) / multiplier);
      want.push_back(output_stage(x, multiplier, shift, zero, first));
    }
    const auto got = memory.take<int8_t>(rng, n);
    return [=, v = memory.copy(rng, v)](const RowKernels& k) {
      k.output(n, v.data(), multiplier * std::ldexp(1.0, -shift), first ? zero : 0, first ? 0 : zero, got.data());
      return same_values(got, want);
    };
  });
}

const Property kQuantize({"rows.quantize_s8"}, kUsual);
TEST(NpuRows, Quantize) {
  for_cases(kQuantize, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const auto zero = static_cast<int32_t>(one_in(rng, 2) ? pick(rng, -128, 127) : one_in(rng, 2) ? -128 : 127);
    const float scale = one_in(rng, 2)   ? std::ldexp(1.0F, static_cast<int>(pick(rng, -20, 6)))
                        : one_in(rng, 8) ? std::bit_cast<float>(static_cast<uint32_t>(pick(rng, 1, 0x7F7FFFFF)))
                                         : static_cast<float>(pick(rng, 1, 1 << 20)) * 0x1p-18F;
    std::vector<float> x;
    std::vector<int8_t> want;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(one_in(rng, 2) ? static_cast<float>(pick(rng, -600, 600)) * 0.5F * scale : any_float(rng));
      const double ratio = double{x.back() / scale};
      want.push_back(sat8(
          std::isnan(ratio) ? zero : static_cast<int64_t>(std::nearbyint(std::clamp(ratio, -1000.0, 1000.0))) + zero));
    }
    const auto got = memory.take<int8_t>(rng, n);
    return [=, x = memory.copy(rng, x)](const RowKernels& k) {
      k.quantize_s8(n, x.data(), scale, zero, got.data());
      return same_values(got, want);
    };
  });
}

const Property kBytes({"rows.dequantize_s8", "rows.widen_s8", "rows.multiply_s8", "rows.sum_s8"}, kUsual);
TEST(NpuRows, Bytes) {
  for_cases(kBytes, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const auto a = any_bytes(rng, n), b = any_bytes(rng, n);
    const auto before = any_ints(rng, n, 30);
    const auto zero = static_cast<int32_t>(pick(rng, -128, 127)), zero_b = static_cast<int32_t>(pick(rng, -255, 255));
    const float scale = std::abs(any_float(rng));
    std::vector<float> value;
    std::vector<int32_t> wide, product, sum;
    for (size_t i = 0; i < a.size(); ++i) {
      value.push_back(static_cast<float>(a[i] - zero) * scale);
      wide.push_back(a[i]);
      product.push_back((a[i] + zero) * (b[i] + zero_b));
      sum.push_back(before[i] + a[i]);
    }
    const auto ints = memory.take<int32_t>(rng, n);
    const auto floats = memory.take<float>(rng, n);
    return [=, a = memory.copy(rng, a), b = memory.copy(rng, b)](const RowKernels& k) {
      k.dequantize_s8(n, a.data(), scale, zero, floats.data());
      if (const auto result = same_values(floats, value, true); !result) return result;
      k.widen_s8(n, a.data(), ints.data());
      if (const auto result = same_values(ints, wide); !result) return result;
      k.multiply_s8(n, a.data(), zero, b.data(), zero_b, ints.data());
      if (const auto result = same_values(ints, product); !result) return result;
      std::copy(before.begin(), before.end(), ints.begin());
      k.sum_s8(n, a.data(), ints.data());
      return same_values(ints, sum);
    };
  });
}

const Property kLookUpBytes({"rows.look_up_s8"}, kUsual);
TEST(NpuRows, LookUpBytes) {
  for_cases(kLookUpBytes, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    const auto x = any_bytes(rng, n), table = any_bytes(rng, 256);
    std::vector<int8_t> want;
    for (const int8_t at : x) want.push_back(table[static_cast<uint8_t>(at)]);
    const auto got = memory.take<int8_t>(rng, n);
    return [=, x = memory.copy(rng, x), table = memory.copy(rng, table)](const RowKernels& k) {
      k.look_up_s8(n, x.data(), table.data(), got.data());
      if (const auto result = same_values(got, want); !result) return result;
      std::copy(x.begin(), x.end(), got.begin());
      k.look_up_s8(n, got.data(), table.data(), got.data());
      return same_values(got, want);
    };
  });
}

const Property kMaxBytes({"rows.max_s8"}, kUsual);
TEST(NpuRows, MaxBytes) {
  for_cases(kMaxBytes, [](Rng& rng, Memory& memory) {
    const Windows w(rng);
    const auto x = any_bytes(rng, w.values);
    return check_of_max<int8_t>(
        rng, memory, w, x, -128, [](int8_t a, int8_t b) { return a > b; }, &RowKernels::max_s8);
  });
}

}  // namespace
}  // namespace openrknn::npu
