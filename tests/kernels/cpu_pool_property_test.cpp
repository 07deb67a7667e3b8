// Pools and transposed convolutions of the golden run against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/registry.hpp"
#include "kernels/isa.hpp"
#include "kernels/property.hpp"

namespace openrknn::cpu {
namespace {

using namespace openrknn::testing;

std::vector<std::string> supported_names() {
  std::vector<std::string> names;
  for (const Isa set : kEveryIsa) {
    if (isa_supported(set)) names.emplace_back(isa_name(set));
  }
  return names;
}

// Calls body(set) for every instruction set of the machine, with one thread or two.
template <typename Body>
void for_machines(Rng& rng, const Body& body) {
  const Isa before = isa();
  for (const Isa set : kEveryIsa) {
    if (!isa_supported(set)) continue;
    force_isa(set);
    set_thread_count(one_in(rng, 3) ? 2 : 1);
    body(set);
  }
  force_isa(before);
  set_thread_count(0);
}

struct Side {
  int64_t in, kernel, stride, dilation, pad_begin, pad_end, out;

  explicit Side(Rng& rng)
      : in(any_extent(rng, 70) + 1),
        kernel(pick(rng, 1, 5)),
        stride(pick(rng, 1, 3)),
        dilation(one_in(rng, 4) ? 2 : 1),
        pad_begin(pick(rng, 0, kernel - 1)),
        pad_end(pick(rng, 0, kernel - 1)),
        out(0) {
    const int64_t span = (kernel - 1) * dilation + 1;
    if (in + pad_begin + pad_end < span) in = span;
    out = (in + pad_begin + pad_end - span) / stride + 1;
  }
};

struct Window {
  const Side &h, &w;
  int64_t planes;
};

// The kernel's results on every instruction set.
void check_pool(Rng& rng, Kernel kernel, const Window& window, const std::vector<float>& x,
                const std::vector<float>& want) {
  const Side &h = window.h, &w = window.w;
  const int64_t planes = window.planes;
  Attributes attributes;
  attributes.set("kernel_shape", std::vector<int64_t>{h.kernel, w.kernel});
  attributes.set("strides", std::vector<int64_t>{h.stride, w.stride});
  attributes.set("dilations", std::vector<int64_t>{h.dilation, w.dilation});
  attributes.set("pads", std::vector<int64_t>{h.pad_begin, w.pad_begin, h.pad_end, w.pad_end});
  const std::vector<TensorView> inputs{{DType::kFloat32, Shape{1, planes, h.in, w.in}, x.data()}};
  for_machines(rng, [&](Isa set) {
    std::vector<float> y(want.size(), 77.0F);
    const std::vector<MutableTensorView> outputs{{DType::kFloat32, Shape{1, planes, h.out, w.out}, y.data()}};
    const Status status = kernel({inputs, outputs, attributes});
    ASSERT_TRUE(status.ok()) << status.error().message();
    ASSERT_TRUE(same_values(y, want)) << isa_name(set) << ": " << h.in << "x" << w.in << ", kernel " << h.kernel << "x"
                                      << w.kernel << ", stride " << h.stride << "x" << w.stride;
  });
}

const Property kMaxPool({"golden MaxPool"}, 60);
TEST(GoldenPool, TheLargestOfEveryWindow) {
  const Kernel kernel = kernels().find("MaxPool");
  for (Cases cases(kMaxPool, supported_names()); cases.next();) {
    Rng& rng = cases.rng();
    const Side h(rng), w(rng);
    const int64_t planes = pick(rng, 1, 3);
    std::vector<float> x(static_cast<size_t>(planes * h.in * w.in));
    for (float& value : x) value = any_float(rng);
    std::vector<float> want;
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t i = 0; i < h.out * w.out; ++i) {
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t t = 0; t < h.kernel * w.kernel; ++t) {
          const int64_t row = i / w.out * h.stride - h.pad_begin + t / w.kernel * h.dilation;
          const int64_t column = i % w.out * w.stride - w.pad_begin + t % w.kernel * w.dilation;
          if (row < 0 || row >= h.in || column < 0 || column >= w.in) continue;
          const float value = x[static_cast<size_t>((p * h.in + row) * w.in + column)];
          most = value > most ? value : most;
        }
        want.push_back(most);
      }
    }
    check_pool(rng, kernel, {h, w, planes}, x, want);
  }
}

const Property kAveragePool({"golden AveragePool"}, 40);
TEST(GoldenPool, TheMeanOfEveryWindow) {
  const Kernel kernel = kernels().find("AveragePool");
  for (Cases cases(kAveragePool, supported_names()); cases.next();) {
    Rng& rng = cases.rng();
    const Side h(rng), w(rng);
    const int64_t planes = pick(rng, 1, 3);
    std::vector<float> x(static_cast<size_t>(planes * h.in * w.in));
    for (float& value : x) value = static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F;
    std::vector<float> want;
    for (int64_t i = 0; i < planes * h.out * w.out; ++i) {
      double sum = 0.0, count = 0.0;
      for (int64_t t = 0; t < h.kernel * w.kernel; ++t) {
        const int64_t row = i / w.out % h.out * h.stride - h.pad_begin + t / w.kernel * h.dilation;
        const int64_t column = i % w.out * w.stride - w.pad_begin + t % w.kernel * w.dilation;
        if (row < 0 || row >= h.in || column < 0 || column >= w.in) continue;
        sum += double{x[static_cast<size_t>((i / (h.out * w.out) * h.in + row) * w.in + column)]};
        count += 1.0;
      }
      want.push_back(count > 0.0 ? static_cast<float>(sum / count) : 0.0F);
    }
    check_pool(rng, kernel, {h, w, planes}, x, want);
  }
}

const Property kBlocks({"golden ConvTranspose"}, 40);
TEST(GoldenConvTranspose, BlocksAreSumsOverChannels) {
  const Kernel kernel = kernels().find("ConvTranspose");
  for (Cases cases(kBlocks, supported_names()); cases.next();) {
    Rng& rng = cases.rng();
    const int64_t batch = pick(rng, 1, 2), in = pick(rng, 1, 9), out = pick(rng, 1, 9);
    const int64_t h = pick(rng, 1, 12), w = pick(rng, 1, 40), kh = pick(rng, 1, 3), kw = pick(rng, 1, 3);
    const auto values = [&](int64_t n) {
      std::vector<float> v(static_cast<size_t>(n));
      for (float& f : v) f = static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F;
      return v;
    };
    const auto x = values(batch * in * h * w), weights = values(in * out * kh * kw), bias = values(out);
    const auto at = [](const std::vector<float>& v, int64_t i) { return v[static_cast<size_t>(i)]; };
    std::vector<float> want;
    for (int64_t plane = 0; plane < batch * out; ++plane) {
      const int64_t m = plane % out;
      for (int64_t i = 0; i < h * kh * w * kw; ++i) {
        const int64_t y = i / (w * kw), column = i % (w * kw);
        float sum = at(bias, m);
        for (int64_t c = 0; c < in; ++c) {
          const float weight = at(weights, ((c * out + m) * kh + y % kh) * kw + column % kw);
          sum = std::fma(weight, at(x, ((plane / out * in + c) * h + y / kh) * w + column / kw), sum);
        }
        want.push_back(sum < 0.0F ? 0.0F : sum);
      }
    }
    Attributes attributes;
    attributes.set("strides", std::vector<int64_t>{kh, kw});
    attributes.set("activation", std::string("Relu"));
    const std::vector<TensorView> inputs{{DType::kFloat32, Shape{batch, in, h, w}, x.data()},
                                         {DType::kFloat32, Shape{in, out, kh, kw}, weights.data()},
                                         {DType::kFloat32, Shape{out}, bias.data()}};
    const bool keeps = one_in(rng, 2);
    for_machines(rng, [&](Isa set) {
      NodeMemory memory({false, true, true});
      for (int call = 0; call < 2; ++call) {
        std::vector<float> y(want.size(), 77.0F);
        const std::vector<MutableTensorView> outputs{{DType::kFloat32, Shape{batch, out, h * kh, w * kw}, y.data()}};
        const Status status = kernel({inputs, outputs, attributes, keeps ? &memory : nullptr});
        ASSERT_TRUE(status.ok()) << status.error().message();
        ASSERT_TRUE(same_values(y, want)) << isa_name(set) << ": " << in << " to " << out << " channels, " << h << "x"
                                          << w << ", kernel " << kh << "x" << kw;
      }
    });
  }
}

}  // namespace
}  // namespace openrknn::cpu
