// The functions of ConvKernels, on every instruction set, against their statements in conv_blocks.hpp one value at a
// time. half: npu_conv_half_test.cpp; depthwise_halves: npu_half_finish_test.cpp; depthwise_bytes, whose operands
// conv_integer.cpp packs: npu_conv_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "base/checked.hpp"
#include "kernels/kernel_tables.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;

constexpr int64_t kUsual = 200;

template <typename Body>
void for_cases(const Property& property, const Body& body) {
  const auto tables = openrknn::testing::conv_tables();
  Memory memory;
  for (Cases cases(property, names_of(tables)); cases.next();) {
    for (const TableOf<ConvKernels>& each : tables) {
      memory.reset();
      Rng rng = cases.rng();  // blocks depend on the table: each has operands of its own
      const ::testing::AssertionResult result = body(rng, memory, *each.table);
      if (!result) FAIL() << each.isa << ": " << result.message();
    }
  }
}

template <typename T>
size_t at(T i) {
  return static_cast<size_t>(i);
}

std::vector<int8_t> any_bytes(Rng& rng, int64_t n) {
  std::vector<int8_t> v(at(n));
  fill(rng, v);
  return v;
}

std::vector<int64_t> any_offsets(Rng& rng, int64_t n, int64_t most, int64_t unit) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < n; ++i) offsets.push_back(pick(rng, 0, most) * unit);
  return offsets;
}

// Results modulo 2^32.
int32_t wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(x))); }

// What the 4 bytes of a group are: 4 int8 and weights that may be unsigned, or 2 int16.
int64_t group_product(const ConvKernels& k, const int8_t* x, const int8_t* w) {
  int64_t sum = 0;
  if (k.integer_bytes) {
    for (int i = 0; i < 4; ++i) sum += int64_t{x[i]} * (k.weight_offset != 0 ? static_cast<uint8_t>(w[i]) : w[i]);
    return sum;
  }
  std::array<int16_t, 2> a{}, b{};
  std::memcpy(a.data(), x, 4);
  std::memcpy(b.data(), w, 4);
  return int64_t{a[0]} * b[0] + int64_t{a[1]} * b[1];
}

const Property kInteger({"conv.integer"}, kUsual);
TEST(NpuLoopFunctions, Integer) {
  for_cases(kInteger, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    IntegerBlock b{};
    const int64_t lanes = k.integer_lanes;
    b.pixels = pick(rng, 0, 26), b.taps = pick(rng, 0, 4), b.groups = pick(rng, 0, 5);
    b.out_channels = std::max<int64_t>(1, any_extent(rng, lanes * (k.integer_panels + 1)));
    b.out_stride = b.out_channels + pick(rng, 0, 3);
    const int64_t panels = ceil_div(b.out_channels, lanes), panel = b.taps * b.groups * lanes * 4;
    const auto windows = any_offsets(rng, b.pixels, 60, 1), taps = any_offsets(rng, b.taps, 60, 1);
    const auto x = any_bytes(rng, 120 + b.groups * 4), w = any_bytes(rng, panels * panel);
    const bool subtracts = one_in(rng, 2);
    b.pairs = subtracts && one_in(rng, 2);
    std::vector<int32_t> sums, factors;
    for (int64_t p = 0; p < b.pixels; ++p)
      sums.push_back(
          static_cast<int32_t>(b.pairs ? static_cast<int64_t>(static_cast<int32_t>(rng())) : any_size(rng, 24)));
    for (int64_t c = 0; c < panels * lanes; ++c)
      factors.push_back(
          static_cast<int32_t>(b.pairs ? static_cast<int64_t>(static_cast<int32_t>(rng())) : any_size(rng, 9)));
    const std::vector<int32_t> before(at(b.pixels * b.out_stride), 0x55555555);
    auto want = before;
    for (int64_t p = 0; p < b.pixels; ++p) {
      for (int64_t c = 0; c < b.out_channels; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < b.taps * b.groups; ++i)
          sum += group_product(k, x.data() + windows[at(p)] + taps[at(i / b.groups)] + i % b.groups * 4,
                               w.data() + c / lanes * panel + (i * lanes + c % lanes) * 4);
        if (b.pairs) {
          std::array<int16_t, 2> s{}, f{};
          std::memcpy(s.data(), &sums[at(p)], 4);
          std::memcpy(f.data(), &factors[at(c)], 4);
          sum += int64_t{s[0]} * f[0] + int64_t{s[1]} * f[1];
        } else if (subtracts) {
          sum -= int64_t{sums[at(p)]} * factors[at(c)];
        }
        want[at(p * b.out_stride + c)] = wrapped(sum);
      }
    }
    const auto got = memory.copy(rng, before);
    b.input = reinterpret_cast<const uint8_t*>(memory.copy(rng, x).data());
    b.pixel_offset = windows.data();
    b.tap_offset = taps.data();
    b.weights = reinterpret_cast<const uint8_t*>(memory.copy(rng, w).data());
    b.output = got.data();
    b.sums = subtracts ? memory.copy(rng, sums).data() : nullptr;
    b.factors = subtracts ? memory.copy(rng, factors).data() : nullptr;
    k.integer(b);
    return same_values(got, want);
  });
}

const Property kSumPixels({"conv.sum_pixels"}, kUsual);
TEST(NpuLoopFunctions, SumPixels) {
  for_cases(kSumPixels, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const int64_t pixels = any_extent(rng, 50);
    const int64_t any = one_in(rng, 3) ? pick(rng, 1, 4) : any_extent(rng, 140);
    const int64_t channels = one_in(rng, 4) ? 16 * pick(rng, 1, 4) : any;  // whole vectors
    const int64_t step = one_in(rng, 2) ? channels : channels + pick(rng, 0, 20);
    const auto x = any_bytes(rng, pixels == 0 ? 0 : (pixels - 1) * step + channels);
    std::vector<int32_t> want(at(pixels));
    for (int64_t i = 0; i < pixels * channels; ++i) want[at(i / channels)] += x[at(i / channels * step + i % channels)];
    const auto got = memory.take<int32_t>(rng, pixels);
    k.sum_pixels(pixels, step, channels, memory.copy(rng, x).data(), got.data());
    return same_values(got, want);
  });
}

const Property kSumLine({"conv.sum_line"}, kUsual);
TEST(NpuLoopFunctions, SumLine) {
  for_cases(kSumLine, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const int64_t n = any_extent(rng, 70), taps = pick(rng, 0, 7), dilation = pick(rng, 0, 20),
                  stride = pick(rng, 1, 4);
    std::vector<int32_t> x(at(n == 0 || taps == 0 ? 0 : (n - 1) * stride + (taps - 1) * dilation + 1)), before(at(n));
    for (auto& v : x) v = static_cast<int32_t>(any_size(rng, 24));
    for (auto& v : before) v = static_cast<int32_t>(any_size(rng, 24));
    auto want = before;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) want[at(i)] += x[at(i * stride + tap * dilation)];
    }
    const auto got = memory.copy(rng, before);
    k.sum_line(n, taps, dilation, stride, memory.copy(rng, x).data(), got.data());
    return same_values(got, want);
  });
}

struct Depthwise {
  DepthwiseRow row{};
  std::vector<int64_t> taps;
  int64_t values, weights;
  explicit Depthwise(Rng& rng, int64_t most_channels) {
    row.channels = std::max<int64_t>(1, any_extent(rng, most_channels));
    row.pixels = pick(rng, 0, 11), row.taps = pick(rng, 0, 10), row.pixel_step = pick(rng, 1, 90);
    row.weight_step = row.channels + pick(rng, 0, 5);
    taps = any_offsets(rng, row.taps, 200, 1);
    row.tap_offset = taps.data();
    values = 200 + std::max<int64_t>(0, row.pixels - 1) * row.pixel_step + row.channels;
    weights = row.taps == 0 ? 0 : (row.taps - 1) * row.weight_step + row.channels;
  }
  Depthwise(const Depthwise&) = delete;
  Depthwise& operator=(const Depthwise&) = delete;
  ~Depthwise() = default;
};

const Property kDepthwise({"conv.depthwise_s8"}, kUsual);
TEST(NpuLoopFunctions, DepthwiseBytesTimesIntegers) {
  for_cases(kDepthwise, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const Depthwise d(rng, 90);
    const auto x = any_bytes(rng, d.values);
    std::vector<int32_t> w;
    const int bits = one_in(rng, 3) ? 15 : 8;
    for (int64_t i = 0; i < d.weights; ++i) w.push_back(static_cast<int32_t>(any_size(rng, bits)));
    std::vector<int32_t> want, sums;
    for (int64_t i = 0; i < d.row.pixels * d.row.channels; ++i) {
      const int64_t from = i / d.row.channels * d.row.pixel_step, c = i % d.row.channels;
      int32_t sum = 0, all = 0;
      for (int64_t tap = 0; tap < d.row.taps; ++tap) {
        const int32_t value = x[at(from + d.taps[at(tap)] + c)];
        sum += value * w[at(tap * d.row.weight_step + c)];
        all += value;
      }
      want.push_back(sum);
      sums.push_back(all);
    }
    const auto n = static_cast<int64_t>(want.size());
    const auto got = memory.take<int32_t>(rng, n), window = memory.take<int32_t>(rng, n);
    const auto in = memory.copy(rng, x);
    const auto weights = memory.copy(rng, w);
    k.depthwise_s8(d.row, in.data(), weights.data(), got.data(), nullptr);
    if (const auto result = same_values(got, want); !result) return result;
    std::fill(got.begin(), got.end(), -1);
    k.depthwise_s8(d.row, in.data(), weights.data(), got.data(), window.data());
    if (const auto result = same_values(got, want); !result) return result;
    return same_values(window, sums);
  });
}

const Property kDepthwiseHalf({"conv.depthwise_f16"}, kUsual);
TEST(NpuLoopFunctions, DepthwiseHalf) {
  for_cases(kDepthwiseHalf, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const Depthwise d(rng, 64);
    const bool any = one_in(rng, 3);
    const auto halves = [&](int64_t n) {
      std::vector<float> v;
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t h = any ? any_half(rng) : any_finite_half(rng);
        v.push_back(static_cast<float>(half_value(h)));
      }
      v.resize(v.size() + kDepthwiseSlack);
      return v;
    };
    const auto x = halves(d.values), w = halves(d.weights);
    std::vector<float> want;
    for (int64_t i = 0; i < d.row.pixels * d.row.channels; ++i) {
      const int64_t from = i / d.row.channels * d.row.pixel_step, c = i % d.row.channels;
      float sum = 0;
      for (int64_t tap = 0; tap < d.row.taps; ++tap) {
        const float product = x[at(from + d.taps[at(tap)] + c)] * w[at(tap * d.row.weight_step + c)];
        sum += product;
      }
      want.push_back(std::isnan(sum) ? std::bit_cast<float>(0x7FC00000U) : sum);
    }
    const auto got = memory.take<float>(rng, static_cast<int64_t>(want.size()) + kDepthwiseSlack);
    k.depthwise_f16(d.row, memory.copy(rng, x).data(), memory.copy(rng, w).data(), got.data());
    return same_values(got.first(want.size()), want);
  });
}

// All are multiples of 2^(top - span) below 2^top, and no smaller span says so.
HalfStats stats_of(const std::vector<uint16_t>& x, int64_t first, int64_t n) {
  int highest = 0, lowest = 32;
  for (int64_t i = first; i < first + n; ++i) {
    const int magnitude = x[at(i)] & 0x7FFF;
    if (magnitude >= 0x7C00) return {kSpecialSpan, 0};
    if (magnitude == 0) continue;
    highest = std::max(highest, std::max(magnitude >> 10, 1));
    lowest = std::min(lowest, std::max(magnitude >> 10, 1));
  }
  if (highest == 0) return {0, -64};
  return {static_cast<uint8_t>(highest - 14 - (lowest - 25)), static_cast<int8_t>(highest - 14)};
}

const Property kHalfSlab({"conv.half_slab", "conv.half_stats"}, kUsual);
TEST(NpuLoopFunctions, HalfSlab) {
  for_cases(kHalfSlab, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const int64_t pixels = pick(rng, 0, 5), step = std::max<int64_t>(1, any_extent(rng, 100));
    const int64_t channels = one_in(rng, 2) ? step : pick(rng, 1, one_in(rng, 2) ? std::min<int64_t>(8, step) : step);
    std::vector<HalfGroup> groups;
    for (int64_t i = pick(rng, 0, 4); i > 0; --i) {
      const int64_t first = pick(rng, 0, step - 1);
      groups.push_back({first, pick(rng, 1, std::min<int64_t>(64, step - first))});
    }
    std::vector<uint16_t> x;
    const auto kind = rng() % 4;
    for (int64_t i = 0; i < pixels * step; ++i) {
      const uint16_t any = any_half(rng), finite = (any & 0x7C00) == 0x7C00 ? any & 0xBFFF : any;
      x.push_back(kind == 0        ? any
                  : kind == 1      ? finite
                  : kind == 2      ? finite & 0x83FF
                  : one_in(rng, 9) ? finite
                                   : 0x8000);
    }
    std::vector<double> want;
    for (int64_t i = 0; i < pixels * channels; ++i)
      want.push_back(half_value(x[at(i / channels * step + i % channels)]));
    std::vector<uint8_t> spans;
    std::vector<int8_t> tops;
    for (int64_t p = 0; p < pixels; ++p) {
      for (const HalfGroup& group : groups) {
        const HalfStats stats = stats_of(x, p * step + group.first, group.n);
        spans.push_back(stats.span);
        tops.push_back(stats.top);
      }
    }
    const auto values = memory.take<double>(rng, pixels * channels);
    const auto stats = memory.take<HalfStats>(rng, static_cast<int64_t>(spans.size()));
    k.half_slab(pixels, step, channels, groups.data(), static_cast<int64_t>(groups.size()), memory.copy(rng, x).data(),
                values.data(), stats.data());
    std::vector<uint8_t> got_spans;
    std::vector<int8_t> got_tops;
    for (const HalfStats& s : stats) got_spans.push_back(s.span), got_tops.push_back(s.top);
    const HalfStats whole = k.half_stats(pixels * step, memory.copy(rng, x).data());
    const HalfStats all = stats_of(x, 0, pixels * step);
    got_spans.push_back(whole.span), spans.push_back(all.span);
    got_tops.push_back(whole.top), tops.push_back(all.top);
    if (const auto result = same_values(got_spans, spans); !result) return result;
    if (const auto result = same_values(got_tops, tops); !result) return result;
    return same_values(values, want, true);
  });
}

// ---- Winograd ----

constexpr std::array<std::array<int, 6>, 6> kInputTransform = {{{4, 0, -5, 0, 1, 0},
                                                                {0, -4, -4, 1, 1, 0},
                                                                {0, 4, -4, -1, 1, 0},
                                                                {0, -2, -1, 2, 1, 0},
                                                                {0, 2, -1, -2, 1, 0},
                                                                {0, 4, 0, -5, 0, 1}}};
// Of the points weighted by 24 / (4, -6, -6, 24, 24, 1).
constexpr std::array<std::array<int, 6>, 4> kOutputTransform = {
    {{6, -4, -4, 1, 1, 0}, {0, -4, 4, 2, -2, 0}, {0, -4, -4, 4, 4, 0}, {0, -4, 4, 8, -8, 24}}};

const Property kWinogradInput({"winograd.input"}, kUsual);
TEST(NpuLoopFunctions, WinogradInput) {
  for_cases(kWinogradInput, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const int64_t channels = std::max<int64_t>(1, any_extent(rng, 80));
    const auto rows = any_offsets(rng, 6, 300, 1), columns = any_offsets(rng, 6, 100, 1);
    const auto x = any_bytes(rng, *std::max_element(rows.begin(), rows.end()) +
                                      *std::max_element(columns.begin(), columns.end()) + channels);
    const int64_t whole = align_up(channels, kWinogradPad), plane = whole + pick(rng, 0, 9);
    const auto to = memory.take<int16_t>(rng, (kWinogradPoints - 1) * plane + whole);
    k.winograd.input(memory.copy(rng, x).data(), rows.data(), columns.data(), channels, to.data(), plane);
    std::vector<int16_t> got, want;
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < 36; ++i)
          sum += int64_t{kInputTransform[at(point / 6)][at(i / 6)]} * kInputTransform[at(point % 6)][at(i % 6)] *
                 x[at(rows[at(i / 6)] + columns[at(i % 6)] + c)];
        want.push_back(static_cast<int16_t>(sum));
        got.push_back(to[at(point * plane + c)]);
      }
    }
    return same_values(got, want);
  });
}

const Property kWinogradProducts({"winograd.products"}, kUsual);
TEST(NpuLoopFunctions, WinogradProducts) {
  for_cases(kWinogradProducts, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    WinogradBlock b{};
    const int64_t lanes = k.winograd.lanes;
    b.tiles = pick(rng, 1, 16), b.groups = pick(rng, 0, one_in(rng, 4) ? 6 : 2), b.panels = pick(rng, 1, 2);
    b.tile_step = 2 * b.groups + pick(rng, 0, 3);
    b.plane = b.tiles * b.tile_step + pick(rng, 0, 3);
    b.panel_bytes = kWinogradPoints * b.groups * lanes * 4;
    b.sum_plane = b.tiles * b.panels * lanes + pick(rng, 0, 3);
    std::vector<int16_t> x(at((kWinogradPoints - 1) * b.plane + (b.tiles - 1) * b.tile_step + 2 * b.groups));
    std::vector<int16_t> w(at(b.panels * b.panel_bytes / 2));
    for (auto& v : x) v = static_cast<int16_t>(rng());
    for (auto& v : w) v = static_cast<int16_t>(rng());
    const std::vector<int32_t> before(at(kWinogradPoints * b.sum_plane), 0x55555555);
    auto want = before;
    for (int64_t i = 0; i < kWinogradPoints * b.tiles * b.panels * lanes; ++i) {
      const int64_t lane = i % lanes, panel = i / lanes % b.panels, tile = i / lanes / b.panels % b.tiles;
      const int64_t point = i / lanes / b.panels / b.tiles;
      int64_t sum = 0;
      for (int64_t c = 0; c < 2 * b.groups; ++c)
        sum += int64_t{x[at(point * b.plane + tile * b.tile_step + c)]} *
               w[at(panel * b.panel_bytes / 2 + ((point * b.groups + c / 2) * lanes + lane) * 2 + c % 2)];
      want[at(point * b.sum_plane + (tile * b.panels + panel) * lanes + lane)] = wrapped(sum);
    }
    const auto got = memory.copy(rng, before);
    b.input = memory.copy(rng, x).data();
    b.weights = reinterpret_cast<const uint8_t*>(memory.copy(rng, w).data());
    b.sums = got.data();
    k.winograd.products(b);
    return same_values(got, want);
  });
}

const Property kWinogradOutput({"winograd.output"}, kUsual);
TEST(NpuLoopFunctions, WinogradOutput) {
  for_cases(kWinogradOutput, [](Rng& rng, Memory& memory, const ConvKernels& k) {
    const int64_t channels = std::max<int64_t>(1, any_extent(rng, 32)),
                  whole = align_up(channels, int64_t{k.winograd.lanes});
    const int64_t plane = whole + pick(rng, 0, 3), pixel_step = channels + pick(rng, 0, 3);
    const int64_t row_step = 4 * pixel_step + pick(rng, 0, 3);
    std::vector<int32_t> sums(at((kWinogradPoints - 1) * plane + whole));
    for (auto& v : sums) v = static_cast<int32_t>(rng());
    const std::vector<int32_t> before(at(3 * row_step + 3 * pixel_step + channels), 0x55555555);
    auto want = before;
    for (int64_t i = 0; i < 16 * channels; ++i) {
      const int64_t c = i % channels, column = i / channels % 4, row = i / channels / 4;
      uint32_t sum = 0;
      for (int64_t point = 0; point < kWinogradPoints; ++point) {
        const int weight = kOutputTransform[at(row)][at(point / 6)] * kOutputTransform[at(column)][at(point % 6)];
        sum += static_cast<uint32_t>(weight) * static_cast<uint32_t>(sums[at(point * plane + c)]);
      }
      // 9 * 64 times the result: a ninth modulo 2^32, then the shift.
      want[at(row * row_step + column * pixel_step + c)] = static_cast<int32_t>(sum * 0x38E38E39U) >> 6;
    }
    const auto got = memory.copy(rng, before);
    k.winograd.output(memory.copy(rng, sums).data(), plane, channels, got.data(), row_step, pixel_step);
    return same_values(got, want);
  });
}

}  // namespace
}  // namespace openrknn::npu
