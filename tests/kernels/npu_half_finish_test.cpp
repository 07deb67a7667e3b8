// fp16 convolutions that make results in registers, and depthwise loops that take halves: against sums one tap at a
// time and the stages behind them one value at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.hpp"
#include "kernels/kernel_tables.hpp"
#include "kernels/npu/conv.hpp"
#include "kernels/npu_conv_cases.hpp"
#include "kernels/npu_exact.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint16_t kUntouched = 0x1234;

template <typename T>
size_t at(T i) {
  return static_cast<size_t>(i);
}

float float_of(uint16_t h) { return static_cast<float>(half_value(h)); }

// Bias and limits of some channels.
struct Stages {
  std::vector<float> bias;  // empty: none
  float low = -kInfinity, high = kInfinity;
  Stages(Rng& rng, int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) bias.push_back(float_of(any_finite_half(rng)));
    if (one_in(rng, 3)) bias.clear();
    if (one_in(rng, 2)) low = 0, high = one_in(rng, 2) ? 6.0F : kInfinity;
  }
  uint16_t result(float sum, int64_t c) const {
    const float v = bias.empty() ? sum : sum + bias[at(c)];
    return std::isnan(v) ? uint16_t{0x7E00} : float_to_half(std::min(std::max(v, low), high));
  }
  void describe(const float* first, HalfOutput& o) const {
    o.bias = bias.empty() ? nullptr : first;
    o.low = low;
    o.high = high;
  }
};

const Property kDepthwiseHalves({"conv.depthwise_halves"}, 300);
TEST(NpuHalfFinish, DepthwiseTakesHalves) {
  auto tables = openrknn::testing::conv_tables();
  std::erase_if(tables, [](const auto& each) { return each.table->depthwise_halves == nullptr; });
  if (tables.empty()) GTEST_SKIP() << "no instruction set of this machine converts halves";
  Memory memory;
  for (Cases cases(kDepthwiseHalves, names_of(tables)); cases.next();) {
    for (const auto& each : tables) {
      memory.reset();
      Rng rng = cases.rng();
      const int64_t lanes = each.table->row_lanes, height = pick(rng, 1, 4);
      DepthwiseRow row{};
      row.kernel_w = one_in(rng, 2) ? 3 : 5, row.shared_columns = pick(rng, 1, 2);
      row.channels = std::max<int64_t>(1, any_extent(rng, 64)), row.pixels = pick(rng, 0, 19);
      row.column_step = row.channels + pick(rng, 0, 5), row.pixel_step = row.shared_columns * row.column_step;
      row.taps = height * row.kernel_w, row.weight_step = row.channels + pick(rng, 0, 3);
      std::vector<int64_t> taps;
      int64_t reach = 0;
      for (int64_t i = 0, line = 0; i < row.taps; ++i) {
        if (i % row.kernel_w == 0) line = pick(rng, 0, 300);
        taps.push_back(line + i % row.kernel_w * row.column_step);
        reach = std::max(reach, taps.back());
      }
      row.tap_offset = taps.data();
      const int64_t read = (row.channels + lanes - 1) / lanes * lanes;
      const bool any = one_in(rng, 3);
      const auto next = [&] { return any ? any_half(rng) : any_finite_half(rng); };
      std::vector<uint16_t> x(at(reach + std::max<int64_t>(0, row.pixels - 1) * row.pixel_step + read));
      std::vector<float> w(at((row.taps - 1) * row.weight_step + read)), sums;
      for (auto& v : x) v = next();
      for (auto& v : w) v = float_of(next());
      for (int64_t i = 0; i < row.pixels * row.channels; ++i) {
        const int64_t from = i / row.channels * row.pixel_step, c = i % row.channels;
        float sum = 0;
        for (int64_t tap = 0; tap < row.taps; ++tap) {
          const float product = float_of(x[at(from + taps[at(tap)] + c)]) * w[at(tap * row.weight_step + c)];
          sum += product;
        }
        sums.push_back(std::isnan(sum) ? std::bit_cast<float>(0x7FC00000U) : sum);
      }
      const Stages stages(rng, row.channels);
      const int64_t stride = row.channels + pick(rng, 0, 3);
      std::vector<uint16_t> want(at(row.pixels * stride), kUntouched);
      for (int64_t i = 0; i < row.pixels * row.channels; ++i) {
        want[at(i / row.channels * stride + i % row.channels)] = stages.result(sums[at(i)], i % row.channels);
      }
      const auto input = memory.copy(rng, x);
      const auto weights = memory.copy(rng, w);
      const auto got = memory.take<float>(rng, static_cast<int64_t>(sums.size()));
      each.table->depthwise_halves(row, input.data(), weights.data(), got.data());
      ASSERT_TRUE(same_values(got, sums)) << each.isa;
      HalfOutput finish{};
      stages.describe(memory.copy(rng, stages.bias).data(), finish);
      const auto results = memory.copy(rng, std::vector<uint16_t>(want.size(), kUntouched));
      finish.y = results.data();
      finish.y_stride = stride;
      row.half_finish = &finish;
      each.table->depthwise_halves(row, input.data(), weights.data(), nullptr);
      ASSERT_TRUE(same_values(results, want)) << each.isa;
    }
  }
}

// Blocks that are refused a place for their results leave sums, as without a request.
const Property kResults({"conv_f16 to results", "depthwise_f16 to results"}, 150);
TEST(NpuHalfFinish, ResultsAreThoseOfTheSums) {
  const auto every = supported_loops();
  for (Cases cases(kResults, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const bool depthwise = one_in(rng, 2);
    ConvShape s = random_shape(rng, depthwise, 3000);
    s.slack = one_in(rng, 2) ? 64 : 0;
    const int64_t outputs = depthwise ? s.in_channels : s.out_channels, pixels = s.out_h * s.out_w;
    const auto kind = static_cast<int>(cases.number() % 6);
    std::vector<uint16_t> x(at(s.in_h * s.in_w * s.channels + s.slack / 2));
    std::vector<uint16_t> w(at((depthwise ? 1 : outputs) * s.kernel_h * s.kernel_w * s.in_channels));
    for (auto& v : x) v = random_half(rng, kind);
    for (auto& v : w) v = random_half(rng, kind == 5 ? 1 : kind);
    const Stages stages(rng, outputs);
    const uint32_t refused = pick(rng, 0, 2) == 0 ? 2 : 1000000;
    const int64_t stride = outputs + pick(rng, 0, 3);
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<float> sums(at(pixels * outputs));
      std::vector<uint16_t> y(at(pixels * stride), kUntouched), want = y;
      depthwise ? depthwise_f16(s, x.data(), w.data(), sums.data())
                : conv_f16(s, 32, 32, x.data(), w.data(), sums.data());
      for (int64_t i = 0; i < pixels * outputs; ++i)
        want[at(i / outputs * stride + i % outputs)] = stages.result(sums[at(i)], i % outputs);
      const AccumulatorSink<float> sink = [&](const AccumulatorBlock<float>& b) {
        for (int64_t i = 0; i < b.pixels * b.channels; ++i) {
          const int64_t c = b.channel + i % b.channels;
          y[at((b.pixel + i / b.channels) * stride + c)] = stages.result(b.values[i], c);
        }
      };
      const HalfRequest request = [&](int64_t pixel, int64_t, int64_t channel, int64_t, HalfOutput& o) {
        if (static_cast<uint32_t>(pixel + channel) % refused == 1) return false;
        stages.describe(stages.bias.data() + channel, o);
        o.y = y.data() + pixel * stride + channel;
        o.y_stride = stride;
        return true;
      };
      if (depthwise) {
        depthwise_f16(s, x.data(), pack_depthwise_f16(s, w.data()), sink, request);
      } else {
        conv_f16(s, x.data(), pack_conv_f16(s, 32, 32, w.data()), sink, request);
      }
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

}  // namespace
}  // namespace openrknn::npu
