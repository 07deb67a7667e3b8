// The functions of RowKernels that work on halves and floats; see npu_rows_property_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/npu_rows_cases.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

float half_table_of(const std::vector<int16_t>& table, float x, float index_scale, float out_scale, int form) {
  if (std::isnan(x)) return x;
  const float scaled = x * index_scale;
  const double index =
      std::isnan(scaled) ? 0.0 : std::clamp<double>(std::nearbyint(double{scaled}), -kTableLimit, kTableLimit);
  const float value = static_cast<float>(table_value(table.data(), static_cast<int64_t>(index))) * out_scale;
  return form == 0 ? value : form == 1 ? x * value : (x > 0 ? x : 0.0F) + value;
}

const Property kHalfTable({"rows.half_table"}, kUsual);
TEST(NpuRows, HalfTable) {
  for_cases(kHalfTable, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    std::vector<int16_t> table;
    const bool rails = one_in(rng, 4);
    for (int i = 0; i < 1026; ++i)
      table.push_back(static_cast<int16_t>(rails ? (one_in(rng, 2) ? -32768 : 32767) : static_cast<int>(rng())));
    const float index_scale = one_in(rng, 8)   ? 0.0F
                              : one_in(rng, 2) ? 1024.0F
                                               : std::ldexp(813.7F, static_cast<int>(pick(rng, -12, 12)));
    const float out_scale = one_in(rng, 2) ? 1.0F / 32767 : std::ldexp(1.37F, static_cast<int>(pick(rng, -30, 4)));
    const auto form = static_cast<int>(pick(rng, 0, 2));
    std::vector<float> v, want;
    for (int64_t i = 0; i < n; ++i) {
      const float in_table =
          static_cast<float>(pick(rng, -70000, 70000)) * 0.5F / (index_scale == 0 ? 1.0F : index_scale);
      v.push_back(one_in(rng, 2) ? in_table : any_float(rng));
      want.push_back(half_table_of(table, v.back(), index_scale, out_scale, form));
    }
    const auto got = memory.take<float>(rng, n);
    return [=, table = memory.copy(rng, table)](const RowKernels& k) {
      std::copy(v.begin(), v.end(), got.begin());
      k.half_table(n, table.data(), index_scale, out_scale, form, got.data());
      return same_values(got, want);
    };
  });
}

// NaN stays a NaN of the same sign and payload, and becomes a quiet one.
const Property kWiden({"rows.widen"}, kUsual);
TEST(NpuRows, Widen) {
  for_cases(kWiden, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    std::vector<uint16_t> x;
    std::vector<float> want;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(any_half(rng));
      const uint32_t nan = (x.back() & 0x8000U) << 16 | 0x7FC00000U | (x.back() & 0x3FFU) << 13;
      const double value = half_value(x.back());
      want.push_back(std::isnan(value) ? std::bit_cast<float>(nan) : static_cast<float>(value));
    }
    const auto got = memory.take<float>(rng, n);
    return [=, x = memory.copy(rng, x)](const RowKernels& k) {
      k.widen(n, x.data(), got.data());
      return same_values(got, want);
    };
  });
}

// The nearest half by search: of the two around it, the nearer, or that with the even code.
uint16_t nearest_half(float v) {
  if (std::isnan(v)) return 0x7E00;
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const double magnitude = std::abs(double{v});
  uint16_t low = 0, high = 0x7C00;  // half_value(low) <= magnitude
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (half_value(middle) <= magnitude ? low : high) = middle;
  }
  if (std::isinf(magnitude)) return sign | 0x7C00;
  const double above = high == 0x7C00 ? 65536.0 : half_value(high);
  const double left = magnitude - half_value(low), right = above - magnitude;
  return static_cast<uint16_t>(sign | (left < right || (left == right && low % 2 == 0) ? low : high));
}

const Property kNarrow({"rows.narrow"}, kUsual);
TEST(NpuRows, Narrow) {
  for_cases(kNarrow, [](Rng& rng, Memory& memory) {
    const int64_t n = any_extent(rng, kMost);
    std::vector<float> v;
    std::vector<uint16_t> want;
    int64_t overflows = 0;
    for (int64_t i = 0; i < n; ++i) {
      v.push_back(any_float(rng));
      want.push_back(nearest_half(v.back()));
      overflows += std::isfinite(v.back()) && (want.back() & 0x7FFF) == 0x7C00 ? 1 : 0;
    }
    const auto got = memory.take<uint16_t>(rng, n);
    return [=, v = memory.copy(rng, v)](const RowKernels& k) {
      const int64_t counted = k.narrow(n, v.data(), got.data());
      if (counted != overflows) return ::testing::AssertionFailure() << counted << " overflows for " << overflows;
      return same_values(got, want);
    };
  });
}

const Property kHalfOutput({"rows.half_output"}, kUsual);
TEST(NpuRows, HalfOutput) {
  for_cases(kHalfOutput, [](Rng& rng, Memory& memory) {
    const int64_t pixels = pick(rng, 0, 3), channels = any_extent(rng, 70), stride = channels + pick(rng, 0, 3);
    const bool biased = one_in(rng, 2), clamps = one_in(rng, 2);
    float low = clamps ? any_float(rng) : -INFINITY, high = clamps ? any_float(rng) : INFINITY;
    if (std::isnan(low)) low = -0.0F;
    if (std::isnan(high)) high = 6.0F;
    if (low > high) std::swap(low, high);
    std::vector<float> v, bias;
    for (int64_t i = 0; i < pixels * channels; ++i) v.push_back(any_float(rng));
    for (int64_t i = 0; i < channels; ++i) bias.push_back(any_float(rng));
    const std::vector<uint16_t> before(static_cast<size_t>(pixels * stride), 0x1234);
    auto want = before;
    for (int64_t i = 0; i < pixels * channels; ++i) {
      const int64_t p = i / channels, c = i % channels;
      float x = biased ? v[static_cast<size_t>(i)] + bias[static_cast<size_t>(c)] : v[static_cast<size_t>(i)];
      x = x < low ? low : x;
      want[static_cast<size_t>(p * stride + c)] = nearest_half(x > high ? high : x);
    }
    const auto got = memory.take<uint16_t>(rng, pixels * stride);
    return [=, v = memory.copy(rng, v), bias = memory.copy(rng, bias)](const RowKernels& k) {
      std::copy(before.begin(), before.end(), got.begin());
      k.half_output({pixels, channels, v.data(), biased ? bias.data() : nullptr, low, high, got.data(), stride});
      return same_values(got, want);
    };
  });
}

const Property kMaxHalves({"rows.max_f16"}, kUsual);
TEST(NpuRows, MaxHalves) {
  for_cases(kMaxHalves, [](Rng& rng, Memory& memory) {
    const Windows w(rng);
    std::vector<uint16_t> x;
    const bool zeros = one_in(rng, 4), often_nan = one_in(rng, 4);
    for (int64_t i = 0; i < w.values; ++i) {
      x.push_back(any_half(rng));
      if (zeros && one_in(rng, 2)) x.back() &= 0x8000;
      if (often_nan && one_in(rng, 2)) x.back() |= 0x7C01;
    }
    // The least one stays where nothing is a number.
    const auto larger = [](uint16_t a, uint16_t b) { return half_value(a) > half_value(b); };
    return check_of_max<uint16_t>(rng, memory, w, x, 0xFC00, larger, &RowKernels::max_f16);
  });
}

}  // namespace
}  // namespace openrknn::npu
