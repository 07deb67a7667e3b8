#include <cmath>
#include <random>

#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;

struct Case {
  int rank = 2;  // spatial
  bool transposed = false;
  int64_t batch = 1, groups = 1, group_in = 1, group_out = 1;
  I in, kernel, strides, dilations, pads, extra;
};

Tensor random_tensor(std::mt19937& rng, const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = static_cast<float>(static_cast<int64_t>(rng() % 2001) - 1000) * 0.001F;
  return Tensor::from(shape, v);
}

Case random_case(std::mt19937& rng, bool transposed) {
  const auto pick = [&rng](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
  };
  Case c;
  c.transposed = transposed;
  c.rank = static_cast<int>(pick(1, 3));
  c.batch = pick(1, 2);
  c.groups = pick(0, 2) == 0 ? pick(2, 6) : 1;
  c.group_in = pick(0, 1) == 0 ? 1 : pick(1, 20);
  c.group_out = pick(0, 1) == 0 ? pick(1, 2) : pick(1, 40);
  for (int i = 0; i < c.rank; ++i) {
    c.kernel.push_back(pick(1, 4));
    c.strides.push_back(pick(1, 3));
    c.dilations.push_back(pick(1, 2));
    c.in.push_back(pick(transposed ? 1 : (c.kernel.back() - 1) * c.dilations.back() + 1, c.rank == 3 ? 9 : 23));
    c.in.back() = std::max<int64_t>(c.in.back(), 1);
  }
  for (int i = 0; i < 2 * c.rank; ++i) {
    c.pads.push_back(transposed ? 0 : pick(0, 3));
  }
  for (int i = 0; i < c.rank; ++i) c.extra.push_back(transposed ? pick(0, c.strides[static_cast<size_t>(i)] - 1) : 0);
  return c;
}

Attributes attributes_of(const Case& c) {
  Attributes a;
  a.set("group", c.groups);
  a.set("strides", c.strides);
  a.set("dilations", c.dilations);
  a.set("pads", c.pads);
  if (c.transposed) a.set("output_padding", c.extra);
  return a;
}

Shape shape_of(int64_t a, int64_t b, const I& rest) {
  I dims = {a, b};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return *Shape::make(dims);
}

// Calls f(index) for all multi-indices below `extents`.
template <typename Fn>
void each(const I& extents, Fn&& f) {
  I index(extents.size(), 0);
  for (const int64_t e : extents) {
    if (e == 0) return;
  }
  while (true) {
    f(index);
    size_t i = extents.size();
    while (i > 0 && ++index[i - 1] == extents[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

int64_t flat(const I& index, const I& extents) {
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); ++i) at = at * extents[i] + index[i];
  return at;
}

int64_t volume(const I& extents) {
  int64_t n = 1;
  for (const int64_t e : extents) n *= e;
  return n;
}

// Scatter form for both kinds: every (input, tap, output) triple of the definition, in double.
std::vector<double> naive(const Case& c, const Tensor& x, const Tensor& w, const Tensor& b, const I& out) {
  const int64_t m = c.groups * c.group_out;
  const int64_t channels = c.groups * c.group_in;
  const I& windows = c.transposed ? c.in : out;  // the side that counts window positions
  const I& covered = c.transposed ? out : c.in;  // the side that windows cover
  std::vector<double> y(static_cast<size_t>(c.batch * m * volume(out)), 0.0);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t oc = 0; oc < m; ++oc) {
      double* plane = y.data() + (n * m + oc) * volume(out);
      for (int64_t i = 0; i < volume(out); ++i) plane[i] = b.as<float>()[static_cast<size_t>(oc)];
      for (int64_t ic = 0; ic < c.group_in; ++ic) {
        const int64_t in_channel = oc / c.group_out * c.group_in + ic;
        const int64_t kernel_index = c.transposed ? in_channel * c.group_out + oc % c.group_out : oc * c.group_in + ic;
        each(windows, [&](const I& window) {
          each(c.kernel, [&](const I& tap) {
            I at(tap.size());
            for (size_t i = 0; i < tap.size(); ++i) {
              at[i] = window[i] * c.strides[i] + tap[i] * c.dilations[i] - c.pads[i];
              if (at[i] < 0 || at[i] >= covered[i]) return;
            }
            const int64_t x_at = (n * channels + in_channel) * volume(c.in) + flat(c.transposed ? window : at, c.in);
            const double product =
                static_cast<double>(x.as<float>()[static_cast<size_t>(x_at)]) *
                w.as<float>()[static_cast<size_t>(kernel_index * volume(c.kernel) + flat(tap, c.kernel))];
            plane[flat(c.transposed ? at : window, out)] += product;
          });
        });
      }
    }
  }
  return y;
}

// Small integers: every sum is exact in fp32, so the result must be equal, not near.
Tensor random_integers(std::mt19937& rng, const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = static_cast<float>(static_cast<int64_t>(rng() % 17) - 8);
  return Tensor::from(shape, v);
}

void check_random(bool transposed, int count, uint32_t seed) {
  std::mt19937 rng(seed);
  for (int i = 0; i < count; ++i) {
    const Case c = random_case(rng, transposed);
    const Tensor x = random_integers(rng, shape_of(c.batch, c.groups * c.group_in, c.in));
    const Tensor w = random_integers(rng, transposed ? shape_of(c.groups * c.group_in, c.group_out, c.kernel)
                                                     : shape_of(c.groups * c.group_out, c.group_in, c.kernel));
    const Tensor b = random_integers(rng, Shape{c.groups * c.group_out});
    const Tensor y = run(transposed ? "ConvTranspose" : "Conv", {x, w, b}, attributes_of(c));
    I out;
    for (size_t a = 0; a < c.in.size(); ++a) {
      const int64_t span = (c.kernel[a] - 1) * c.dilations[a] + 1;
      out.push_back(transposed ? (c.in[a] - 1) * c.strides[a] + span + c.extra[a]
                               : (c.in[a] + c.pads[a] + c.pads[a + c.in.size()] - span) / c.strides[a] + 1);
    }
    ASSERT_EQ(y.shape().to_string(), shape_of(c.batch, c.groups * c.group_out, out).to_string());
    const std::vector<double> expected = naive(c, x, w, b, out);
    for (size_t e = 0; e < expected.size(); ++e) {
      ASSERT_EQ(static_cast<double>(y.as<float>()[e]), expected[e])
          << "case " << i << " element " << e << " of " << y.shape().to_string();
    }
  }
}

TEST(Conv, RandomConvolutionsEqualTheDefinition) { check_random(false, 150, 1); }
TEST(Conv, RandomTransposedConvolutionsEqualTheDefinition) { check_random(true, 100, 2); }

TEST(Conv, HandComputed) {
  const Tensor x = iota(Shape{1, 1, 3, 3});
  const Tensor w = floats(Shape{1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(run("Conv", {x, w})), (F{27, 37, 57, 67}));
  EXPECT_EQ(values(run("Conv", {x, w, floats(Shape{1}, {0.5F})})), (F{27.5F, 37.5F, 57.5F, 67.5F}));
}

TEST(Conv, AutoPadPutsTheOddZeroAtTheRightEnd) {
  const Tensor x = floats(Shape{1, 1, 4}, {1, 2, 3, 4});
  const Tensor w = floats(Shape{1, 1, 2}, {1, 10});
  EXPECT_EQ(values(run("Conv", {x, w}, attributes({{"auto_pad", std::string("SAME_UPPER")}}))), (F{21, 32, 43, 4}));
  EXPECT_EQ(values(run("Conv", {x, w}, attributes({{"auto_pad", std::string("SAME_LOWER")}}))), (F{10, 21, 32, 43}));
  EXPECT_EQ(values(run("Conv", {x, w}, attributes({{"auto_pad", std::string("VALID")}}))), (F{21, 32, 43}));
  EXPECT_EQ(values(run("Conv", {x, w}, attributes({{"auto_pad", std::string("SAME_UPPER")}, {"strides", I{3}}}))),
            (F{21, 4}));
}

TEST(Conv, ResidualAndActivationFollowTheBias) {
  const Tensor x = floats(Shape{1, 2, 2}, {1, -1, 2, 3});
  const Tensor w = floats(Shape{2, 2, 1}, {1, 1, -1, 1});
  const Tensor b = floats(Shape{2}, {1, 0});
  const Tensor r = floats(Shape{1, 2, 2}, {-5, 0.5F, 1, -10});
  EXPECT_EQ(values(run("Conv", {x, w, b, r})), (F{-1, 3.5F, 2, -6}));
  EXPECT_EQ(values(run("Conv", {x, w, b, r}, attributes({{"activation", std::string("Relu")}}))), (F{0, 3.5F, 2, 0}));
  EXPECT_EQ(values(run(
                "Conv", {x, w, b, Tensor()},
                attributes({{"activation", std::string("Clip")}, {"activation_min", 2.0F}, {"activation_max", 3.5F}}))),
            (F{3.5F, 3, 2, 3.5F}));
  EXPECT_EQ(values(run("Conv", {x, w, b, r, floats(Shape{2, 1}, {0.5F, 2})},
                       attributes({{"activation", std::string("PRelu")}}))),
            (F{-0.5F, 3.5F, 2, -12}));
  // The same behind a depthwise and a transposed convolution.
  const Tensor d = floats(Shape{2, 1, 1}, {1, -1});
  const auto relu = attributes({{"activation", std::string("Relu")}, {"group", int64_t{2}}});
  EXPECT_EQ(values(run("Conv", {x, d, b, r}, relu)), (F{0, 0.5F, 0, 0}));
  EXPECT_EQ(values(run("ConvTranspose", {x, d, b, r}, relu)), (F{0, 0.5F, 0, 0}));
}

TEST(Conv, TransposedWithStatedShapes) {
  const Tensor x = floats(Shape{1, 1, 2}, {1, 2});
  const Tensor w = floats(Shape{1, 1, 3}, {1, 10, 100});
  EXPECT_EQ(values(run("ConvTranspose", {x, w}, attributes({{"strides", I{2}}}))), (F{1, 10, 102, 20, 200}));
  EXPECT_EQ(values(run("ConvTranspose", {x, w}, attributes({{"strides", I{2}}, {"pads", I{1, 1}}}))), (F{10, 102, 20}));
  EXPECT_EQ(values(run("ConvTranspose", {x, w}, attributes({{"strides", I{2}}, {"output_padding", I{1}}}))),
            (F{1, 10, 102, 20, 200, 0}));
  EXPECT_EQ(
      values(run("ConvTranspose", {x, w},
                 attributes({{"strides", I{2}}, {"output_shape", I{4}}, {"auto_pad", std::string("SAME_UPPER")}}))),
      (F{1, 10, 102, 20}));
  EXPECT_EQ(
      values(run("ConvTranspose", {x, w}, attributes({{"strides", I{2}}, {"auto_pad", std::string("SAME_LOWER")}}))),
      (F{10, 102, 20, 200}));
}

TEST(Conv, ErrorsNameTheOperand) {
  const Tensor x = iota(Shape{1, 4, 5, 5});
  EXPECT_NE(error_of("Conv", {x, iota(Shape{2, 3, 3, 3})}).find("weights [2, 3, 3, 3] for 4 input channels"),
            std::string::npos);
  EXPECT_NE(error_of("Conv", {x, iota(Shape{2, 4, 7, 7})}).find("kernel 7"), std::string::npos);
  EXPECT_NE(error_of("Conv", {x, iota(Shape{2, 4, 3, 3}), iota(Shape{3})}).find("operand 2"), std::string::npos);
  EXPECT_NE(error_of("Conv", {x, iota(Shape{2, 4, 3, 3})}, attributes({{"strides", I{0, 1}}})).find("strides"),
            std::string::npos);
  EXPECT_NE(error_of("Conv", {x, iota(Shape{2, 4, 3, 3})}, attributes({{"group", int64_t{3}}})).find("group"),
            std::string::npos);
}

// One element as the kernels promise it: a chain of fused multiply-adds from the bias on, input channels and then taps
// in ascending order, zeros outside of the picture.
float chain(const Case& c, const Tensor& x, const Tensor& w, const Tensor& b, int64_t n, int64_t oc, const I& at) {
  float sum = b.as<float>()[static_cast<size_t>(oc)];
  const int64_t channels = c.groups * c.group_in;
  for (int64_t ic = 0; ic < c.group_in; ++ic) {
    const int64_t plane = n * channels + oc / c.group_out * c.group_in + ic;
    for (int64_t t = 0; t < c.kernel[0] * c.kernel[1]; ++t) {
      const int64_t y = at[0] * c.strides[0] + t / c.kernel[1] * c.dilations[0] - c.pads[0];
      const int64_t z = at[1] * c.strides[1] + t % c.kernel[1] * c.dilations[1] - c.pads[1];
      const bool inside = y >= 0 && y < c.in[0] && z >= 0 && z < c.in[1];
      const float value = inside ? x.as<float>()[static_cast<size_t>((plane * c.in[0] + y) * c.in[1] + z)] : 0.0F;
      const int64_t weight = (oc * c.group_in + ic) * c.kernel[0] * c.kernel[1] + t;
      sum = std::fma(value, w.as<float>()[static_cast<size_t>(weight)], sum);
    }
  }
  return sum;
}

TEST(Conv, EveryElementIsOneChain) {
  // batch, groups, group_in, group_out, in, kernel, strides, dilations, pads: shapes of every way to compute them.
  const Case cases[] = {{2, false, 1, 1, 5, 48, {9, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {}},
                        {2, false, 1, 1, 3, 31, {17, 21}, {3, 3}, {2, 2}, {1, 1}, {0, 1, 1, 2}, {}},
                        {2, false, 2, 1, 70, 80, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {}},
                        {2, false, 1, 1, 6, 16, {33, 41}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {}},
                        {2, false, 2, 2, 5, 21, {20, 50}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {}},
                        {2, false, 1, 1, 3, 16, {31, 64}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {}},
                        {2, false, 2, 2, 2, 5, {9, 96}, {3, 5}, {1, 1}, {1, 1}, {0, 2, 2, 2}, {}},
                        {2, false, 1, 1, 384, 16, {12, 40}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {}},
                        {2, false, 1, 2, 9, 16, {12, 20}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {}},
                        {2, false, 1, 1, 8, 64, {20, 19}, {5, 2}, {3, 1}, {1, 2}, {4, 3, 2, 1}, {}},
                        {2, false, 1, 1, 4, 24, {1, 700}, {1, 4}, {1, 3}, {1, 1}, {0, 2, 0, 0}, {}},
                        {2, false, 2, 6, 1, 1, {11, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {}},
                        {2, false, 1, 4, 1, 2, {90, 150}, {3, 3}, {2, 2}, {1, 1}, {1, 0, 1, 2}, {}},
                        {2, false, 1, 5, 1, 1, {23, 18}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, {}},
                        {2, false, 1, 5, 1, 1, {7, 7}, {5, 5}, {2, 2}, {1, 1}, {4, 6, 5, 5}, {}},
                        {2, false, 1, 3, 1, 1, {14, 14}, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, {}}};
  std::mt19937 rng(5);
  const Isa before = isa();
  for (const Case& c : cases) {
    const Tensor x = random_tensor(rng, shape_of(c.batch, c.groups * c.group_in, c.in));
    const Tensor w = random_tensor(rng, shape_of(c.groups * c.group_out, c.group_in, c.kernel));
    const Tensor b = random_tensor(rng, Shape{c.groups * c.group_out});
    for (const Isa set : kEveryIsa) {
      if (!isa_supported(set)) continue;
      force_isa(set);
      for (const int threads : {1, 3}) {
        set_thread_count(threads);
        const Tensor y = run("Conv", {x, w, b}, attributes_of(c));
        const auto dims = y.shape();
        const float* got = y.as<float>().data();
        for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
          for (int64_t p = 0; p < dims[2] * dims[3]; ++p, ++got) {
            const float expected = chain(c, x, w, b, i / dims[1], i % dims[1], {p / dims[3], p % dims[3]});
            ASSERT_EQ(*got, expected) << isa_name(set) << ", case " << &c - cases << ", channel " << i << ", pixel "
                                      << p;
          }
        }
      }
    }
  }
  force_isa(before);
  set_thread_count(0);
}

// The same bytes for every instruction set and number of threads.
TEST(Conv, BytesDependOnNeitherIsaNorThreads) {
  std::mt19937 rng(3);
  struct Net {
    Shape x, w;
    I strides;
    int64_t groups;
  };
  const Net nets[] = {{Shape{1, 70, 30, 31}, Shape{65, 70, 3, 3}, {1, 1}, 1},
                      {Shape{2, 300, 7, 7}, Shape{50, 300, 1, 1}, {1, 1}, 1},
                      {Shape{1, 48, 33, 29}, Shape{48, 1, 3, 3}, {2, 2}, 48}};
  const Isa before = isa();
  for (const Net& net : nets) {
    const Tensor x = random_tensor(rng, net.x);
    const Tensor w = random_tensor(rng, net.w);
    const auto attrs = attributes({{"strides", net.strides},
                                   {"group", net.groups},
                                   {"pads", I{1, 1, 1, 1}},
                                   {"activation", std::string("exSwish")}});
    std::vector<float> first;
    for (const Isa set : kEveryIsa) {
      if (!isa_supported(set)) continue;
      force_isa(set);
      for (const int threads : {1, 2, 5}) {
        if (set == Isa::kScalar && threads != 1) continue;  // slow
        set_thread_count(threads);
        const auto got = values(run("Conv", {x, w}, attrs));
        if (first.empty()) first = got;
        EXPECT_EQ(0, std::memcmp(first.data(), got.data(), first.size() * sizeof(float)))
            << isa_name(set) << ", " << threads << " threads";
      }
    }
  }
  force_isa(before);
  set_thread_count(0);
}

}  // namespace
}  // namespace openrknn::ops::test
