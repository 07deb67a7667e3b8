// Convolutions that turn accumulators into results in registers: the bytes of the Requantizer on stored accumulators.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu/requantizer.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::npu {
namespace {

using namespace openrknn::testing;
using namespace testing;

template <typename T>
std::vector<T> random_bits(Rng& rng, int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(rng());
  return v;
}

// A convolution, and stages whose results spread over int8 or beyond it; powers of two among the factors bring ties.
struct Case {
  ConvShape s{};
  bool depthwise, has_residual;
  std::vector<int8_t> x, w;
  std::vector<int32_t> zero, bias, multiplier;
  std::vector<int64_t> least, largest;
  OperandStage residual{};
  Requantizer::Stages stages;

  explicit Case(Rng& rng) : depthwise(rng() % 3 == 0), has_residual(rng() % 3 == 0) {
    s.kernel_h = pick(rng, 1, 4), s.kernel_w = rng() % 2 == 0 ? s.kernel_h : pick(rng, 1, 4);
    s.stride_h = pick(rng, 1, 2), s.stride_w = pick(rng, 1, 2);
    s.dilation_h = s.dilation_w = rng() % 4 == 0 ? 2 : 1;
    const bool large = one_in(rng, 64);
    s.out_h = pick(rng, 1, large ? 5 : 2), s.out_w = pick(rng, 1, one_in(rng, 16) ? 120 : large ? 20 : 9);
    s.in_h = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    s.in_w = (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
    s.in_channels = rng() % 3 == 0 ? int64_t{1} << pick(rng, 0, 6) : pick(rng, 1, large || depthwise ? 140 : 20);
    s.channels = s.in_channels + (rng() % 2 == 0 ? 0 : pick(rng, 0, 17));
    s.out_channels = depthwise ? s.in_channels : pick(rng, 1, large ? 150 : 40);
    const int64_t taps = s.kernel_h * s.kernel_w, products = taps * (depthwise ? 1 : s.in_channels);
    x = random_bits<int8_t>(rng, s.in_h * s.in_w * s.channels + 64);
    w = random_bits<int8_t>(rng, products * s.out_channels);
    const int bits = static_cast<int>(pick(rng, 0, 14));
    const int shift = static_cast<int>(pick(rng, bits / 2, bits));
    for (int64_t c = 0; c < s.out_channels; ++c) {
      zero.push_back(static_cast<int32_t>(pick(rng, -128, 128)));
      bias.push_back(static_cast<int32_t>(pick(rng, -100000, 100000)));
      multiplier.push_back(static_cast<int32_t>(rng() % 4 == 0 ? 1 << bits : pick(rng, 1, (1 << bits) + 1)));
      least.push_back(-products * 256 * 128);
      largest.push_back(products * 256 * 128);
    }
    if (depthwise && one_in(rng, 3)) std::fill(zero.begin(), zero.end(), 0);  // weights of one byte
    stages.channels = s.out_channels;
    stages.channel = {bias.data(), nullptr, multiplier.data(), shift, shift, rng() % 5 == 0};
    stages.least = least.data();
    stages.largest = largest.data();
    residual = {static_cast<int32_t>(pick(rng, -128, 128)), static_cast<int32_t>(pick(rng, 1, 1 << 12)),
                static_cast<int32_t>(pick(rng, 0, 3))};
    if (has_residual) stages.residual = &residual;
    stages.clamps = rng() % 2 == 0;
    stages.low = rng() % 2 == 0 ? 0 : -pick(rng, 0, 1 << 16);
    stages.high = pick(rng, 0, 1 << 20);
    const int out_bits = static_cast<int>(pick(rng, 0, 14));
    stages.output = {static_cast<int32_t>(rng() % 3 == 0 ? 1 << out_bits : pick(rng, 1, (1 << out_bits) + 1)),
                     static_cast<int32_t>(out_bits + pick(rng, 5, 12)), static_cast<int32_t>(pick(rng, -128, 127)),
                     rng() % 2 == 0};
  }

  int64_t pixels() const { return s.out_h * s.out_w; }
  // Packed before slabs are known, as tasks do.
  IntegerFilters filters() const {
    ConvShape f = s;
    f.in_h = f.in_w = f.out_h = f.out_w = f.channels = f.slack = 0;
    return depthwise ? pack_depthwise_s8(f, w.data(), zero.data()) : pack_conv_s8(f, w.data(), zero.data());
  }
  void run(const IntegerFilters& f, const AccumulatorSink<int32_t>& sink, const RequantizeRequest& request) const {
    depthwise ? depthwise_s8(s, x.data(), f, false, sink, request) : conv_s8(s, x.data(), f, false, sink, request);
  }
};

const Property kFinish({"conv_s8 or depthwise_s8 to results"}, 200);
TEST(NpuFinish, EqualsTheRequantizer) {
  const auto every = supported_loops();
  int64_t cases_in_registers = 0, all = 0;
  for (Cases cases(kFinish, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const Case c(rng);
    const Requantizer requantizer(c.stages);
    if (!requantizer.usable()) {
      cases.skip();
      continue;
    }
    const int64_t stride = c.s.out_channels + (one_in(rng, 2) ? 0 : pick(rng, 1, 9));
    const auto residual = random_bits<int8_t>(rng, c.pixels() * stride);
    const bool simple = requantizer.simple(), mixed = one_in(rng, 4);
    bool in_registers = false;
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      const IntegerFilters filters = c.filters();
      auto want = residual, got = residual;
      const auto sink_to = [&](std::vector<int8_t>& y) {
        return AccumulatorSink<int32_t>([&](const AccumulatorBlock<int32_t>& b) {
          int8_t* to = y.data() + b.pixel * stride + b.channel;
          requantizer.run(b.pixels, b.channel, b.channels, b.values, c.has_residual ? to : nullptr, stride, to, stride);
        });
      };
      c.run(filters, sink_to(want), {});
      c.run(filters, sink_to(got),
            [&](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, RequantizeCall& call) {
              if (!simple || (mixed && pixel % 2 == 0)) return false;  // some blocks one way, some the other
              in_registers = true;
              int8_t* to = got.data() + pixel * stride + channel;
              requantizer.describe(pixels, channel, channels, c.has_residual ? to : nullptr, stride, to, stride, call);
              return true;
            });
      ASSERT_TRUE(same_values(got, want)) << loops.name << (c.depthwise ? " depthwise " : " ") << c.s.kernel_h << "x"
                                          << c.s.kernel_w << " of " << c.s.in_channels << " to " << c.s.out_channels;
    }
    cases_in_registers += in_registers ? 1 : 0;
    ++all;
  }
  if (isa_supported(Isa::kAvx512Vnni) && all >= 100) {
    EXPECT_GT(cases_in_registers, all / 3);
  }
}

}  // namespace
}  // namespace openrknn::npu
