// The one-pass requantizer against the stages one by one: the same bytes for every constant, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu/requantizer.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

// Small results for small accumulators, where ties and zeros come often, or any; now and then the ends.
std::vector<int32_t> accumulators(Rng& rng, int64_t n, int64_t largest) {
  const int64_t reach = one_in(rng, 2) ? largest : std::min<int64_t>(largest, 300);
  std::vector<int32_t> acc;
  for (int64_t i = 0; i < n; ++i)
    acc.push_back(static_cast<int32_t>(one_in(rng, 16) ? (one_in(rng, 2) ? reach : -reach) : pick(rng, -reach, reach)));
  return acc;
}

struct Task {
  std::vector<int32_t> bias, multiplier;
  std::vector<int64_t> least, largest;
  OperandStage residual;
  Requantizer::Stages stages;
  bool has_residual = false;

  Task(Rng& rng, int64_t channels) {
    const int bits = static_cast<int>(pick(rng, 6, 26));
    const int shift = static_cast<int>(pick(rng, 0, 12));
    for (int64_t c = 0; c < channels; ++c) {
      bias.push_back(static_cast<int32_t>(pick(rng, -(int64_t{1} << bits), int64_t{1} << bits)));
      multiplier.push_back(static_cast<int32_t>(pick(rng, 1, 32767)));
      least.push_back(-(int64_t{1} << bits));
      largest.push_back(int64_t{1} << bits);
    }
    has_residual = rng() % 2 == 0;
    residual = {static_cast<int32_t>(pick(rng, -128, 128)), static_cast<int32_t>(pick(rng, 1, 1 << 22)),
                static_cast<int32_t>(pick(rng, 0, 4))};
    stages.channels = channels;
    stages.channel = {bias.data(), nullptr, multiplier.data(), shift, shift, rng() % 4 == 0};
    stages.least = least.data();
    stages.largest = largest.data();
    if (has_residual) stages.residual = &residual;
    stages.clamps = rng() % 2 == 0;
    stages.low = rng() % 2 == 0 ? 0 : -pick(rng, 0, 1 << 20);
    stages.high = pick(rng, 0, INT32_MAX);
    // A result of some hundred at most for the largest accumulators, or of far more, and powers of two for ties.
    const int64_t farthest = rng() % 3 == 0 ? -14 : -2;
    const int gain = bits + 1 + (stages.channel.bypass ? 0 : 15 - shift) - 8;
    const int multiplier_bits = static_cast<int>(pick(rng, 0, 14));
    stages.output = {static_cast<int32_t>(rng() % 4 == 0 ? 1 << multiplier_bits : pick(rng, 1, 32767)), 0,
                     static_cast<int32_t>(pick(rng, -128, 127)), rng() % 2 == 0};
    stages.output.shift =
        static_cast<int32_t>(std::clamp<int64_t>(gain + multiplier_bits + pick(rng, farthest, 2), 0, 40));
  }

  int64_t before_output(int64_t c, int32_t acc, int8_t r) const {
    const ChannelStage& s = stages.channel;
    const int64_t t = int64_t{acc} + bias[static_cast<size_t>(c)];
    int64_t v = channel_stage(t, multiplier[static_cast<size_t>(c)], s.shift, s.shift_negative, s.bypass);
    if (has_residual) {
      v = sat32(v + sat32(operand_stage(r, residual.offset, residual.multiplier, residual.shift)));
    }
    return v;
  }

  int8_t expected(int64_t c, int32_t acc, int8_t r) const {
    int64_t v = before_output(c, acc, r);
    if (stages.clamps) v = std::min(std::max(v, stages.low), stages.high);
    const OutputStage& o = stages.output;
    return output_stage(v, o.multiplier, o.shift, o.zero_point, o.zero_point_first);
  }
};

const Property kRequantize({"rows.requantize"}, 1000);
TEST(NpuRequantizer, EqualsTheStages) {
  const auto every = supported_loops();
  for (Cases cases(kRequantize, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const bool shared = one_in(rng, 3);  // pixels that fill a row of 64
    const int64_t channels = shared ? int64_t{1} << pick(rng, 0, 5) : pick(rng, 1, 100);
    const int64_t first = shared ? 0 : pick(rng, 0, channels - 1);
    const int64_t count = shared ? channels : pick(rng, 1, std::min(Requantizer::kMostChannels, channels - first));
    const Task task(rng, channels);
    const Requantizer requantizer(task.stages);
    if (!requantizer.usable()) {
      cases.skip();
      continue;
    }
    const int64_t pixels = pick(rng, 1, one_in(rng, 10) ? 140 : 6), stride = count + pick(rng, 0, 3);
    const auto acc = accumulators(rng, pixels * count, task.largest[0]);
    std::vector<int8_t> residual(static_cast<size_t>(pixels * stride));
    for (int8_t& r : residual) r = static_cast<int8_t>(rng());
    std::vector<int8_t> want = residual;
    for (int64_t i = 0; i < pixels * count; ++i) {
      int8_t& at = want[static_cast<size_t>(i / count * stride + i % count)];
      at = task.expected(first + i % count, acc[static_cast<size_t>(i)], at);
    }
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<int8_t> y = residual;  // results over the residuals
      requantizer.run(pixels, first, count, acc.data(), task.has_residual ? y.data() : nullptr, stride, y.data(),
                      stride);
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

// A step at every index, or a parabola with few in each bin of a staircase, one way or the other.
std::vector<int16_t> table_of(Rng& rng) {
  const bool steep = one_in(rng, 3);
  const auto slope = static_cast<double>(pick(rng, -48, 48)), bend = static_cast<double>(pick(rng, -24, 24)) / 512;
  std::vector<int16_t> table;
  for (const int first : {-512, 0}) {
    for (int i = first; i <= first + 512; ++i) {
      const double smooth = i * (slope + bend * i / 2);
      table.push_back(static_cast<int16_t>(steep ? pick(rng, -32768, 32767) : std::clamp(smooth, -32768.0, 32767.0)));
    }
  }
  return table;
}

// Pixels together, apart and beside others.
const Property kLookUp({"rows.requantize_look_up"}, 100);
TEST(NpuRequantizer, EqualsTheStagesWithTables) {
  const auto every = supported_loops();
  int64_t all = 0, with_steps = 0;
  for (Cases cases(kLookUp, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const int64_t channels = one_in(rng, 2) ? int64_t{1} << pick(rng, 0, 6) : pick(rng, 1, 64);
    Task task(rng, channels);
    const std::vector<int16_t> table = table_of(rng);
    const auto reach = static_cast<double>(task.largest[0]) * (task.stages.channel.bypass ? 1 : 16384) /
                       static_cast<double>(int64_t{1} << (task.stages.channel.bypass ? 0 : task.stages.channel.shift));
    const int32_t index_scale = static_cast<int32_t>(pick(rng, 1, 32767));
    const int index_shift = std::clamp(static_cast<int>(std::log2(reach * index_scale / kTableLimit)), 0, 40);
    task.stages.output = {static_cast<int32_t>(pick(rng, 1, 32767)), static_cast<int32_t>(pick(rng, 18, 24)),
                          static_cast<int32_t>(pick(rng, -128, 127)), one_in(rng, 2)};
    const TableOutput output(table.data(), index_scale, index_shift, task.stages.output);
    task.stages.table = &output;
    const Requantizer requantizer(task.stages);
    if (!requantizer.usable()) {
      cases.skip();
      continue;
    }
    ++all;
    with_steps += output.look_up().steps != nullptr ? 1 : 0;
    const int64_t pixels = pick(rng, 1, one_in(rng, 10) ? 140 : 6);
    const int64_t stride = channels + pick(rng, 0, 1) * pick(rng, 0, 70);
    const auto acc = accumulators(rng, pixels * channels, task.largest[0]);
    std::vector<int8_t> residual(static_cast<size_t>(pixels * stride));
    for (int8_t& r : residual) r = static_cast<int8_t>(rng());
    std::vector<int8_t> want = residual;
    for (int64_t i = 0; i < pixels * channels; ++i) {
      int8_t& at = want[static_cast<size_t>(i / channels * stride + i % channels)];
      const int64_t v = task.before_output(i % channels, acc[static_cast<size_t>(i)], at);
      const OutputStage& o = task.stages.output;
      at = output_stage(table_value(table.data(), rne(v * index_scale, index_shift)), o.multiplier, o.shift,
                        o.zero_point, o.zero_point_first);
    }
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      std::vector<int8_t> y = residual;
      requantizer.run(pixels, 0, channels, acc.data(), task.has_residual ? y.data() : nullptr, stride, y.data(),
                      stride);
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
  if (all >= 50) {
    EXPECT_GT(with_steps, all / 4);
    EXPECT_LT(with_steps, all * 3 / 4);
  }
}

// Every index and the values around it, by the staircase: sigmoid's table and one with three steps in a bin.
TEST(NpuRequantizer, EveryIndexOfAStaircase) {
  const std::vector<int32_t> bias{0}, multiplier{1};
  const std::vector<int64_t> least{-(1 << 24)}, largest{1 << 24};
  for (const bool sigmoid : {false, true}) {
    std::vector<int16_t> table;
    for (const int first : {-512, 0}) {
      for (int i = first; i <= first + 512; ++i) {
        table.push_back(static_cast<int16_t>(sigmoid ? std::nearbyint(32767 / (1 + std::exp(-i / 100.0))) : i * 63));
      }
    }
    const OutputStage stage = sigmoid ? OutputStage{1, 7, -128, false} : OutputStage{3, 8, -10, false};
    const TableOutput output(table.data(), 1, 6, stage);
    ASSERT_NE(output.look_up().steps, nullptr);
    Requantizer::Stages stages;
    stages.channels = 1;
    stages.channel = {bias.data(), nullptr, multiplier.data(), 0, 0, true};
    stages.least = least.data();
    stages.largest = largest.data();
    stages.table = &output;
    const Requantizer requantizer(stages);
    ASSERT_TRUE(requantizer.usable());
    std::vector<int32_t> acc;
    for (int32_t v = -(kTableLimit + 2) * 64; v <= (kTableLimit + 2) * 64; v += 8) {
      for (int32_t near = v - 1; near <= v + 1; ++near) acc.push_back(near);
    }
    std::vector<int8_t> want;
    for (const int32_t v : acc) want.push_back(output.exact(v));
    for (const Loops& loops : supported_loops()) {
      const UseLoops use(loops);
      std::vector<int8_t> y(acc.size());
      requantizer.run(static_cast<int64_t>(acc.size()), 0, 1, acc.data(), nullptr, 0, y.data(), 1);
      ASSERT_TRUE(same_values(y, want)) << loops.name;
    }
  }
}

TEST(NpuRequantizer, RefusesWhatFloatsCannotDecide) {
  const std::vector<int32_t> bias{0}, multiplier{1}, zero{3};
  const std::vector<int64_t> least{-1000}, largest{1000}, huge{int64_t{1} << 31};
  Requantizer::Stages stages;
  stages.channels = 1;
  stages.channel = {bias.data(), nullptr, multiplier.data(), 0, 0, false};
  stages.least = least.data();
  stages.largest = largest.data();
  stages.output = {1, 6, 0, false};
  EXPECT_TRUE(Requantizer(stages).usable());
  auto changed = stages;
  changed.largest = huge.data();
  EXPECT_FALSE(Requantizer(changed).usable());
  changed = stages;
  changed.channel.minus_weight_zero = zero.data();
  EXPECT_FALSE(Requantizer(changed).usable());
  changed = stages;
  changed.channel.shift_negative = 1;
  EXPECT_FALSE(Requantizer(changed).usable());
  changed = stages;
  changed.output.multiplier = -1;
  EXPECT_FALSE(Requantizer(changed).usable());
  changed = stages;
  changed.output.shift = 1;  // the channel stage's rounding moves the result by a quarter
  EXPECT_FALSE(Requantizer(changed).usable());
}

}  // namespace
}  // namespace openrknn::npu
