#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using namespace test;  // NOLINT

struct Spec {
  bool average = false, half = false;
  int64_t n = 1, c = 20, h = 7, w = 9;
  std::array<int32_t, 2> kernel{3, 2}, stride{2, 1};
  std::array<int32_t, 4> pad{1, 0, 1, 1};
  int64_t tile_channels = 16, tile_rows = 2, tile_columns = 3;
};

// npu.md 3.11: round half away, then a step back at exact halves when a reciprocal is inexact or the quotient is odd.
int64_t average_of(int64_t sum, int64_t kh, int64_t kw) {
  const int64_t n = kh * kw;
  const double exact = static_cast<double>(sum) / static_cast<double>(n);
  auto q = static_cast<int64_t>(std::round(exact));
  const bool half = n % 2 == 0 && std::abs(exact - std::trunc(exact)) == 0.5;
  if (half && (65536 % kw != 0 || 65536 % kh != 0 || q % 2 != 0)) q -= sum < 0 ? -1 : 1;
  return q;
}

void check(const Spec& s, uint64_t seed) {
  Random random(seed);
  Builder b;
  constexpr int kZero = -9;
  const Shape xs{s.n, s.c, s.h, s.w};
  const Shape ys{s.n, s.c, (s.h + s.pad[0] + s.pad[2] - s.kernel[0]) / s.stride[0] + 1,
                 (s.w + s.pad[1] + s.pad[3] - s.kernel[1]) / s.stride[1] + 1};
  const int x = s.half ? b.half("x", xs) : b.int8("x", xs, 0.5F, kZero);
  const int y = s.half ? b.half("y", ys) : b.int8("y", ys, 0.5F, kZero);
  b.input("x", x);
  Task& task = b.task(TaskKind::kPool, s.average ? "AveragePool" : "MaxPool", {x}, {y});
  task.pool = model::Pool{s.average, s.kernel, s.stride, s.pad, s.half || !s.average ? 0 : kZero};
  b.tile(task, s.tile_channels, s.tile_rows, s.tile_columns);
  b.output("y", y);
  const Program p = b.finish();
  Recording run;
  run_both(p, {{"x", s.half ? random_half_values(random, xs, 4) : random_int8_values(random, xs, 0.5F, kZero)}}, run);
  ASSERT_TRUE(run.count(y));
  int64_t at = 0;
  for (int64_t n = 0; n < ys[0]; ++n) {
    for (int64_t c = 0; c < ys[1]; ++c) {
      for (int64_t h = 0; h < ys[2]; ++h) {
        for (int64_t w = 0; w < ys[3]; ++w, ++at) {
          int64_t sum = 0, most = -128;
          float real_sum = 0, real_most = -INFINITY;
          for (int64_t kh = 0; kh < s.kernel[0]; ++kh) {
            for (int64_t kw = 0; kw < s.kernel[1]; ++kw) {
              const int64_t ih = h * s.stride[0] - s.pad[0] + kh, iw = w * s.stride[1] - s.pad[1] + kw;
              const bool inside = ih >= 0 && ih < s.h && iw >= 0 && iw < s.w;
              const auto i = static_cast<size_t>(((n * s.c + c) * s.h + ih) * s.w + iw);
              if (s.half) {
                const float v = inside ? half_to_float(run.at(x).as<uint16_t>()[i]) : 0.0F;
                real_sum += v;
                if (inside) real_most = std::max(real_most, v);
              } else {
                const int64_t v = inside ? run.at(x).as<int8_t>()[i] : kZero;
                sum += v;
                if (inside) most = std::max(most, v);
              }
            }
          }
          if (s.half) {
            const float rw = half_to_float(float_to_half(1.0F / static_cast<float>(s.kernel[1]))),
                        rh = half_to_float(float_to_half(1.0F / static_cast<float>(s.kernel[0])));
            ASSERT_EQ(run.at(y).as<uint16_t>()[static_cast<size_t>(at)],
                      float_to_half(s.average ? real_sum * rw * rh : real_most));
          } else {
            ASSERT_EQ(run.at(y).as<int8_t>()[static_cast<size_t>(at)],
                      s.average ? average_of(sum, s.kernel[0], s.kernel[1]) : most);
          }
        }
      }
    }
  }
}

TEST(SimPool, MaxAndAverageOfBothTypes) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random r(seed + 1000);
    Spec s;
    s.average = r.between(0, 1) == 0;
    s.half = r.between(0, 1) == 0;
    s.n = r.between(1, 2);
    s.c = r.between(1, 40);
    s.h = r.between(4, 12);
    s.w = r.between(4, 12);
    for (const size_t axis : {size_t{0}, size_t{1}}) {
      s.kernel[axis] = static_cast<int32_t>(r.between(1, 4));
      s.stride[axis] = static_cast<int32_t>(r.between(1, 3));
      s.pad[axis] = static_cast<int32_t>(r.between(0, s.kernel[axis] - 1));
      s.pad[axis + 2] = static_cast<int32_t>(r.between(0, s.kernel[axis] - 1));
    }
    s.tile_channels = r.between(1, 40);
    s.tile_rows = r.between(1, 6);
    s.tile_columns = r.between(1, 6);
    check(s, seed);
  }
}

TEST(SimPool, GlobalAverage) {
  Spec s;
  s.average = true;
  s.kernel = {7, 9};
  s.pad = {0, 0, 0, 0};
  s.stride = {1, 1};
  check(s, 5);
}

}  // namespace
}  // namespace openrknn::sim
