// Conv of the golden run, on every instruction set, against chains of fused multiply-adds: from the bias on, input
// channels and then taps in ascending order, zeros outside of the picture, then residual and clamp. Shapes reach every
// way to compute it (conv.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/registry.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu_loops.hpp"
#include "kernels/property.hpp"

namespace openrknn::cpu {
namespace {

using npu::testing::Loops;
using npu::testing::names_of;
using npu::testing::supported_loops;
using npu::testing::UseLoops;
using namespace testing;

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct Conv {
  int64_t batch, groups, group_in, group_out, in_h, in_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h,
      dilation_w;
  std::array<int64_t, 4> pads{};
  int64_t out_h = 0, out_w = 0;
  std::vector<float> x, w, bias, residual;
  bool clamps;

  explicit Conv(Rng& rng) : batch(pick(rng, 1, 2)), groups(1), clamps(one_in(rng, 2)) {
    const auto kind = rng() % 4;
    if (kind == 0) {  // depthwise, one result a channel or more
      groups = pick(rng, 1, 6), group_in = 1, group_out = one_in(rng, 4) ? 2 : 1;
    } else {
      groups = kind == 1 ? pick(rng, 1, 3) : 1;
      group_in = one_in(rng, 8) ? pick(rng, 1, 130) : pick(rng, 1, 9),
      group_out = std::max<int64_t>(1, any_extent(rng, 40));
    }
    const int64_t side = one_in(rng, 3) ? 1 : one_in(rng, 2) ? 3 : 5, step = pick(rng, 1, 2);
    const bool square = !one_in(rng, 4);
    kernel_h = square ? side : pick(rng, 1, 4), kernel_w = square ? side : pick(rng, 1, 4);
    stride_h = square ? step : pick(rng, 1, 3), stride_w = square ? step : pick(rng, 1, 3);
    dilation_h = one_in(rng, 5) ? 2 : 1, dilation_w = one_in(rng, 5) ? 2 : 1;
    for (int64_t& pad : pads) pad = square && one_in(rng, 2) ? side / 2 : pick(rng, 0, 3);
    const int64_t span_h = (kernel_h - 1) * dilation_h + 1, span_w = (kernel_w - 1) * dilation_w + 1;
    // Now and then wide rows; sums stay below some thousands of products.
    in_h = pick(rng, 1, 8), in_w = one_in(rng, 8) ? pick(rng, 1, 200) : pick(rng, 1, 24);
    in_h = std::max(in_h, span_h - pads[0] - pads[2]), in_w = std::max(in_w, span_w - pads[1] - pads[3]);
    out_h = (in_h + pads[0] + pads[2] - span_h) / stride_h + 1,
    out_w = (in_w + pads[1] + pads[3] - span_w) / stride_w + 1;
    while (group_out > 1 && products() > 20000) group_out = (group_out + 1) / 2;
    const bool any = one_in(rng, 8);
    const auto floats = [&](int64_t n) {
      std::vector<float> v;
      for (int64_t i = 0; i < n; ++i)
        v.push_back(any ? any_float(rng) : static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F);
      return v;
    };
    x = floats(batch * groups * group_in * in_h * in_w);
    w = floats(groups * group_out * group_in * kernel_h * kernel_w);
    bias = floats(groups * group_out);
    if (one_in(rng, 3)) residual = floats(results());
  }
  int64_t results() const { return batch * groups * group_out * out_h * out_w; }
  int64_t products() const { return results() * group_in * kernel_h * kernel_w; }

  std::vector<float> wanted() const {
    std::vector<float> y;
    for (int64_t i = 0; i < results(); ++i) {
      const int64_t column = i % out_w, row = i / out_w % out_h, oc = i / (out_w * out_h) % (groups * group_out);
      const int64_t n = i / (out_w * out_h) / (groups * group_out);
      float sum = bias[at(oc)];
      const float* weight = w.data() + oc * group_in * kernel_h * kernel_w;
      for (int64_t ic = 0; ic < group_in; ++ic) {
        const int64_t plane = n * groups * group_in + oc / group_out * group_in + ic;
        for (int64_t tap = 0; tap < kernel_h * kernel_w; ++tap) {
          const int64_t r = row * stride_h + tap / kernel_w * dilation_h - pads[0];
          const int64_t c = column * stride_w + tap % kernel_w * dilation_w - pads[1];
          const bool inside = r >= 0 && r < in_h && c >= 0 && c < in_w;
          sum = std::fma(inside ? x[at((plane * in_h + r) * in_w + c)] : 0.0F, *weight++, sum);
        }
      }
      if (!residual.empty()) sum += residual[at(i)];
      if (clamps) sum = sum < 0.0F ? 0.0F : sum > 6.0F ? 6.0F : sum;
      y.push_back(sum);
    }
    return y;
  }

  Attributes attributes() const {
    Attributes a;
    a.set("group", groups);
    a.set("strides", std::vector<int64_t>{stride_h, stride_w});
    a.set("dilations", std::vector<int64_t>{dilation_h, dilation_w});
    a.set("pads", std::vector<int64_t>(pads.begin(), pads.end()));
    if (clamps) {
      a.set("activation", std::string("Clip"));
      a.set("activation_min", 0.0F);
      a.set("activation_max", 6.0F);
    }
    return a;
  }
};

const Property kConv({"golden Conv"}, 60);
TEST(GoldenConv, EveryElementIsOneChain) {
  const auto every = supported_loops();
  const Kernel kernel = kernels().find("Conv");
  for (Cases cases(kConv, names_of(every)); cases.next();) {
    Rng& rng = cases.rng();
    const Conv c(rng);
    const std::vector<float> want = c.wanted();
    const Attributes attributes = c.attributes();
    const Shape out{c.batch, c.groups * c.group_out, c.out_h, c.out_w};
    std::vector<TensorView> inputs{
        {DType::kFloat32, Shape{c.batch, c.groups * c.group_in, c.in_h, c.in_w}, c.x.data()},
        {DType::kFloat32, Shape{c.groups * c.group_out, c.group_in, c.kernel_h, c.kernel_w}, c.w.data()},
        {DType::kFloat32, Shape{c.groups * c.group_out}, c.bias.data()}};
    if (!c.residual.empty()) inputs.push_back({DType::kFloat32, out, c.residual.data()});
    const bool packs = one_in(rng, 2);
    set_thread_count(one_in(rng, 4) ? 2 : 1);
    for (const Loops& loops : every) {
      const UseLoops use(loops);
      NodeMemory memory({false, true, true, false});
      for (int call = 0; call < (packs ? 2 : 1); ++call) {
        std::vector<float> y(want.size(), 77.0F);
        const std::vector<MutableTensorView> outputs{{DType::kFloat32, out, y.data()}};
        const Status status = kernel({inputs, outputs, attributes, packs ? &memory : nullptr});
        ASSERT_TRUE(status.ok()) << status.error().message();
        ASSERT_TRUE(same_values(y, want, true))
            << loops.name << ": " << c.group_in << " to " << c.group_out << " channels in " << c.groups << " groups, "
            << c.kernel_h << "x" << c.kernel_w << ", results of " << c.out_h << "x" << c.out_w << ", call " << call;
      }
    }
  }
  set_thread_count(0);
}

}  // namespace
}  // namespace openrknn::cpu
