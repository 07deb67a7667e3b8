// Convolutions that the benchmarks measure: shapes, and int8 ones with constants as the compiler chooses them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/npu/conv.hpp"
#include "kernels/npu/requantizer.hpp"

namespace openrknn::bench {

using npu::ConvShape;

struct Layer {
  int64_t in, out, kernel, stride, extent;  // channels, square kernel, square result
};

inline ConvShape shape_of(const Layer& l) {
  ConvShape s{};
  s.channels = s.in_channels = l.in;
  s.out_channels = l.out;
  s.kernel_h = s.kernel_w = l.kernel;
  s.stride_h = s.stride_w = l.stride;
  s.dilation_h = s.dilation_w = 1;
  s.out_h = s.out_w = l.extent;
  s.in_h = s.in_w = (l.extent - 1) * l.stride + l.kernel;
  s.slack = 64;
  return s;
}

inline std::string name_of(const Layer& l) {
  return std::to_string(l.kernel) + "x" + std::to_string(l.kernel) + "/" + std::to_string(l.stride) + " " +
         std::to_string(l.in) + ">" + std::to_string(l.out) + " @" + std::to_string(l.extent);
}

template <typename T>
std::vector<T> random_bits(int64_t n, uint32_t mask = 0xFFFFFFFFU) {
  std::mt19937 random(1);
  std::vector<T> values(static_cast<size_t>(n));
  for (T& v : values) v = static_cast<T>(random() & mask);
  return values;
}

// An int8 convolution as the simulator runs it: filters packed once, results requantized while they are in the cache.
struct IntegerConv {
  ConvShape s;
  std::vector<int8_t> x, w, y;
  std::vector<int32_t> zero, bias, multiplier;
  std::vector<int64_t> least, largest;
  std::unique_ptr<npu::Requantizer> requantizer;

  IntegerConv(const Layer& l, bool depthwise) : s(shape_of(l)) {
    const int64_t filter = l.kernel * l.kernel * (depthwise ? 1 : l.in);
    x = random_bits<int8_t>(s.in_h * s.in_w * s.channels + s.slack);
    w = random_bits<int8_t>(filter * l.out);
    y.resize(static_cast<size_t>(l.extent * l.extent * l.out));
    const auto channels = static_cast<size_t>(l.out);
    zero.assign(channels, -3);
    bias.assign(channels, 100);
    multiplier.assign(channels, 20000);
    least.assign(channels, -filter * 131 * 128);
    largest.assign(channels, filter * 131 * 128);
    npu::Requantizer::Stages stages;
    stages.channels = l.out;
    // As the compiler chooses them: the first stage as fine as 31 bits allow, results of some 60 for usual sums.
    int32_t shift = 0, out_shift = 0;
    while (std::ldexp(static_cast<double>(largest[0]) * 20000, -shift) > 0x1p30) ++shift;
    const double usual = std::ldexp(std::sqrt(static_cast<double>(filter)) * 74 * 74 * 20000, -shift);
    while (std::ldexp(60 / usual, out_shift) < 16384) ++out_shift;
    stages.channel = {bias.data(), nullptr, multiplier.data(), shift, shift, false};
    stages.least = least.data();
    stages.largest = largest.data();
    stages.clamps = true;
    stages.high = INT32_MAX;
    stages.output = {static_cast<int32_t>(std::ldexp(60 / usual, out_shift)), out_shift, -128, false};
    requantizer = std::make_unique<npu::Requantizer>(stages);
  }

  npu::AccumulatorSink<int32_t> sink() {
    return [this](const npu::AccumulatorBlock<int32_t>& b) {
      requantizer->run(b.pixels, b.channel, b.channels, b.values, nullptr, 0,
                       y.data() + b.pixel * s.out_channels + b.channel, s.out_channels);
    };
  }
  npu::RequantizeRequest request(bool requantizes) {
    if (!requantizes || !requantizer->simple()) return {};
    return [this](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels, npu::RequantizeCall& call) {
      requantizer->describe(pixels, channel, channels, nullptr, 0, y.data() + pixel * s.out_channels + channel,
                            s.out_channels, call);
      return true;
    };
  }
};

}  // namespace openrknn::bench
