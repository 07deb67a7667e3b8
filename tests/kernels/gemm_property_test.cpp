// Every function of GemmKernels, on every instruction set, against its statement in gemm_kernels.hpp one value at a
// time. Sums are chains of std::fma; of several NaN that meet, the processor chooses one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.hpp"
#include "kernels/kernel_tables.hpp"
#include "kernels/property.hpp"

namespace openrknn {
namespace {

using namespace testing;

constexpr int64_t kUsual = 200;

template <typename Prepare>
void for_cases(const Property& property, const Prepare& prepare) {
  const auto tables = testing::gemm_tables();
  Memory memory;
  for (Cases cases(property, names_of(tables)); cases.next();) {
    for (const TableOf<GemmKernels>& each : tables) {
      memory.reset();
      Rng rng = cases.rng();  // tiles depend on the table: each has operands of its own
      const ::testing::AssertionResult result = prepare(rng, memory, *each.table);
      if (!result) FAIL() << each.isa << ": " << result.message();
    }
  }
}

std::vector<float> any_floats(Rng& rng, int64_t n) {
  std::vector<float> v;
  const bool any = one_in(rng, 4);
  for (int64_t i = 0; i < n; ++i)
    v.push_back(any ? any_float(rng) : static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F);
  return v;
}

template <typename T>
size_t at(T i) {
  return static_cast<size_t>(i);
}

const Property kTile({"gemm.tile"}, kUsual);
TEST(GemmKernels, Tile) {
  for_cases(kTile, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t rows = pick(rng, 1, kernels.rows), vectors = pick(rng, 1, kernels.vectors),
                  n = vectors * kernels.width;
    const int64_t k = any_extent(rng, 40), lda = k + pick(rng, 0, 3), ldb = n + pick(rng, 0, 3),
                  ldc = n + pick(rng, 0, 3);
    const bool biased = one_in(rng, 2);
    const auto a = any_floats(rng, (rows - 1) * lda + k), b = any_floats(rng, k == 0 ? 0 : (k - 1) * ldb + n);
    const auto bias = any_floats(rng, rows), before = any_floats(rng, (rows - 1) * ldc + n);
    auto want = before;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = biased ? bias[at(i)] : before[at(i * ldc + j)];
        for (int64_t l = 0; l < k; ++l) sum = std::fma(a[at(i * lda + l)], b[at(l * ldb + j)], sum);
        want[at(i * ldc + j)] = sum;
      }
    }
    const auto c = memory.copy(rng, before);
    kernels.tile(static_cast<int>(rows), static_cast<int>(vectors), k, memory.copy(rng, a).data(), lda,
                 memory.copy(rng, b).data(), ldb, c.data(), ldc, biased ? memory.copy(rng, bias).data() : nullptr);
    return same_values(c, want, true);
  });
}

const Property kTaps({"gemm.taps"}, kUsual);
TEST(GemmKernels, Taps) {
  for_cases(kTaps, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 150), taps = pick(rng, 0, 9), whole = align_up(n, int64_t{4} * kernels.width);
    const auto weights = any_floats(rng, taps);
    const float bias = any_float(rng);
    std::vector<const float*> inputs;
    for (int64_t t = 0; t < taps; ++t) inputs.push_back(memory.copy(rng, any_floats(rng, whole)).data());
    std::vector<float> want;
    for (int64_t x = 0; x < n; ++x) {
      float sum = bias;
      for (int64_t t = 0; t < taps; ++t) sum = std::fma(weights[at(t)], inputs[at(t)][x], sum);
      want.push_back(sum);
    }
    const auto out = memory.take<float>(rng, whole);
    kernels.taps(n, taps, inputs.data(), memory.copy(rng, weights).data(), bias, out.data());
    return same_values(out.first(at(n)), want, true);
  });
}

const Property kDepthPlane({"gemm.depth_plane"}, kUsual);
TEST(GemmKernels, DepthPlane) {
  for_cases(kDepthPlane, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    DepthPlane d{};
    d.side = one_in(rng, 2) ? 3 : 5, d.step = one_in(rng, 2) ? 1 : 2;
    d.in_h = pick(rng, 1, 9), d.in_w = std::max<int64_t>(1, any_extent(rng, 80)), d.out_w = any_extent(rng, 50);
    d.first = pick(rng, 0, 3), d.rows = pick(rng, 0, 9), d.pad_y = pick(rng, 0, 5), d.pad_x = pick(rng, 0, 5);
    const auto in = any_floats(rng, d.in_h * d.in_w), weights = any_floats(rng, d.side * d.side);
    const std::vector<float> zeros(at(d.in_w));
    d.bias = any_float(rng);
    const bool clamps = one_in(rng, 2);
    d.low = clamps ? any_float(rng) : -INFINITY;
    d.high = clamps ? any_float(rng) : INFINITY;
    const auto before = any_floats(rng, (d.first + d.rows) * d.out_w);
    auto want = before;
    for (int64_t i = d.first * d.out_w; i < static_cast<int64_t>(want.size()); ++i) {
      float sum = d.bias;
      for (int64_t tap = 0; tap < d.side * d.side; ++tap) {
        const int64_t y = i / d.out_w * d.step + tap / d.side - d.pad_y;
        const int64_t x = i % d.out_w * d.step + tap % d.side - d.pad_x;
        const bool inside = y >= 0 && y < d.in_h && x >= 0 && x < d.in_w;
        sum = std::fma(inside ? in[at(y * d.in_w + x)] : 0.0F, weights[at(tap)], sum);
      }
      sum = sum < d.low ? d.low : sum;
      want[at(i)] = sum > d.high ? d.high : sum;
    }
    const auto out = memory.copy(rng, before);
    d.in = memory.copy(rng, in).data();
    d.zeros = memory.copy(rng, zeros).data();
    d.weights = memory.copy(rng, weights).data();
    d.out = out.data();
    kernels.depth_plane(d);
    return same_values(out, want, true);
  });
}

const Property kPixelTile({"gemm.pixel_tile"}, kUsual);
TEST(GemmKernels, PixelTile) {
  for_cases(kPixelTile, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t pixels = pick(rng, 1, kernels.rows), vectors = pick(rng, 1, kernels.vectors);
    const int64_t n = vectors * kernels.width, k = any_extent(rng, 40), ldc = kernels.rows + pick(rng, 0, 3);
    std::vector<int64_t> offsets;
    for (int64_t l = 0; l < k; ++l) offsets.push_back(pick(rng, 0, 100));
    const auto x = any_floats(rng, 100 + pixels), w = any_floats(rng, k * n), bias = any_floats(rng, n);
    const auto before = any_floats(rng, (n - 1) * ldc + kernels.rows);
    auto want = before;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < pixels; ++i) {
        float sum = bias[at(j)];
        for (int64_t l = 0; l < k; ++l) sum = std::fma(x[at(offsets[at(l)] + i)], w[at(l * n + j)], sum);
        want[at(j * ldc + i)] = sum;
      }
    }
    const auto c = memory.copy(rng, before);
    kernels.pixel_tile(static_cast<int>(pixels), static_cast<int>(vectors), k, memory.copy(rng, x).data(),
                       offsets.data(), memory.copy(rng, w).data(), memory.copy(rng, bias).data(), c.data(), ldc);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = pixels; i < kernels.rows; ++i) c[at(j * ldc + i)] = want[at(j * ldc + i)];  // anything
    }
    return same_values(c, want, true);
  });
}

const Property kChannelTile({"gemm.channel_tile"}, kUsual);
TEST(GemmKernels, ChannelTile) {
  for_cases(kChannelTile, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    ChannelTile t{};
    const int64_t whole = int64_t{kernels.vectors} * kernels.width;
    t.channels = static_cast<int>(pick(rng, 1, kernels.rows));
    t.in_place = one_in(rng, 2);
    t.n = std::max<int64_t>(1, any_extent(rng, whole)), t.k = any_extent(rng, 40), t.ldy = t.n + pick(rng, 0, 3);
    std::vector<int64_t> offsets;
    for (int64_t l = 0; l < t.k; ++l) offsets.push_back(pick(rng, 0, 100));
    const auto x = any_floats(rng, 100 + (t.in_place ? t.n : align_up(t.n, int64_t{kernels.width})));
    const auto w = any_floats(rng, t.k * t.channels), bias = any_floats(rng, t.channels);
    const auto before = any_floats(rng, (t.channels - 1) * t.ldy + t.n);
    const auto residual = any_floats(rng, static_cast<int64_t>(before.size()));
    const bool adds = one_in(rng, 2), clamps = one_in(rng, 2), copies = t.in_place && one_in(rng, 2);
    t.low = clamps ? any_float(rng) : -INFINITY;
    t.high = clamps ? any_float(rng) : INFINITY;
    auto want = before;
    for (int64_t i = 0; i < t.channels * t.n; ++i) {
      const int64_t c = i / t.n, p = i % t.n, to = c * t.ldy + p;
      float sum = bias[at(c)];
      for (int64_t l = 0; l < t.k; ++l) sum = std::fma(w[at(l * t.channels + c)], x[at(offsets[at(l)] + p)], sum);
      if (adds) sum += residual[at(to)];
      sum = sum < t.low ? t.low : sum;
      want[at(to)] = sum > t.high ? t.high : sum;
    }
    const auto y = memory.copy(rng, before), copy = memory.take<float>(rng, t.k * whole);
    t.x = memory.copy(rng, x).data();
    t.offsets = offsets.data();
    t.w = memory.copy(rng, w).data();
    t.bias = memory.copy(rng, bias).data();
    t.residual = adds ? memory.copy(rng, residual).data() : nullptr;
    t.y = y.data();
    t.copy = copies ? copy.data() : nullptr;
    kernels.channel_tile(t);
    for (int64_t i = 0; copies && i < t.k * t.n; ++i) {
      const int64_t l = i / t.n, p = i % t.n;
      if (std::memcmp(&copy[at(l * whole + p)], &x[at(offsets[at(l)] + p)], sizeof(float)) != 0)
        return ::testing::AssertionFailure() << "the copy differs at " << i;
    }
    return same_values(y, want, true);
  });
}

const Property kLines({"gemm.line", "gemm.lines"}, kUsual);
TEST(GemmKernels, Lines) {
  for_cases(kLines, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t rows = pick(rng, 0, 4), extent = any_extent(rng, 60), count = any_extent(rng, 60);
    const int64_t start = pick(rng, -70, 70), step = pick(rng, 1, 4);
    const int64_t from_pitch = extent + pick(rng, 0, 3), to_pitch = count + pick(rng, 0, 3);
    const auto from = any_floats(rng, rows == 0 ? 0 : (rows - 1) * from_pitch + extent);
    const auto before = any_floats(rng, rows == 0 ? 0 : (rows - 1) * to_pitch + count);
    auto want = before;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t x = start + i * step;
        want[at(r * to_pitch + i)] = x >= 0 && x < extent ? from[at(r * from_pitch + x)] : 0.0F;
      }
    }
    const auto in = memory.copy(rng, from);
    auto to = memory.copy(rng, before);
    kernels.lines(in.data(), from_pitch, rows, extent, start, step, count, to.data(), to_pitch);
    if (const auto result = same_values(to, want); !result) return result;
    std::copy(before.begin(), before.end(), to.begin());
    for (int64_t r = 0; r < rows; ++r)
      kernels.line(in.data() + r * from_pitch, extent, start, step, count, to.data() + r * to_pitch);
    return same_values(to, want);
  });
}

const Property kClamp({"gemm.clamp"}, kUsual);
TEST(GemmKernels, Clamp) {
  for_cases(kClamp, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 100);
    const bool adds = one_in(rng, 2);
    const auto from = any_floats(rng, n), residual = any_floats(rng, n);
    const float low = one_in(rng, 2) ? 0.0F : any_float(rng), high = any_float(rng);
    std::vector<float> want;
    for (size_t i = 0; i < from.size(); ++i) {
      float x = adds ? from[i] + residual[i] : from[i];
      x = x < low ? low : x;
      want.push_back(x > high ? high : x);
    }
    const bool in_place = one_in(rng, 2);
    const auto in = memory.copy(rng, from), to = in_place ? in : memory.take<float>(rng, n);
    kernels.clamp(n, in.data(), adds ? memory.copy(rng, residual).data() : nullptr, low, high, to.data());
    return same_values(to, want, true);
  });
}

const Property kScale({"gemm.scale"}, kUsual);
TEST(GemmKernels, Scale) {
  for_cases(kScale, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 100);
    const auto from = any_floats(rng, n);
    const double factor = double{any_float(rng)} / 3, term = double{any_float(rng)} / 7;
    std::vector<float> want;
    for (const float x : from) {
      const double product = double{x} * factor;
      want.push_back(static_cast<float>(product + term));
    }
    const auto to = memory.take<float>(rng, n);
    kernels.scale(n, memory.copy(rng, from).data(), factor, term, to.data());
    return same_values(to, want, true);
  });
}

const Property kCombine({"gemm.combine"}, kUsual);
TEST(GemmKernels, Combine) {
  for_cases(kCombine, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 100);
    const int64_t a_step = pick(rng, 0, 1), b_step = pick(rng, 0, 1);
    const auto a = any_floats(rng, a_step != 0 ? n : 1), b = any_floats(rng, b_step != 0 ? n : 1);
    const auto op = static_cast<Combine>(pick(rng, 0, 3));
    std::vector<float> want;
    for (int64_t i = 0; i < n; ++i) {
      const float x = a[static_cast<size_t>(i * a_step)], y = b[static_cast<size_t>(i * b_step)];
      want.push_back(op == Combine::kAdd        ? x + y
                     : op == Combine::kSubtract ? x - y
                     : op == Combine::kMultiply ? x * y
                                                : x / y);
    }
    const auto left = memory.copy(rng, a), right = memory.copy(rng, b);
    const int place = static_cast<int>(pick(rng, 0, 2));
    const auto to = place == 0 && a_step != 0 ? left : place == 1 && b_step != 0 ? right : memory.take<float>(rng, n);
    kernels.combine(op, n, left.data(), a_step, right.data(), b_step, to.data());
    return same_values(to, want, true);
  });
}

const Property kMaxRow({"gemm.max_row"}, kUsual);
TEST(GemmKernels, MaxRow) {
  for_cases(kMaxRow, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 60), step = pick(rng, 1, 2), rows = pick(rng, 0, 4), taps = pick(rng, 1, 5);
    const int64_t floats = align_up(n, kernels.width) * step + taps - 1;
    std::vector<float> want(static_cast<size_t>(n), -INFINITY);
    std::vector<const float*> lines;
    for (int64_t r = 0; r < rows; ++r) {
      const auto line = any_floats(rng, floats);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t t = 0; t < taps; ++t) {
          const float x = line[static_cast<size_t>(i * step + t)];
          float& most = want[static_cast<size_t>(i)];
          most = x > most ? x : most;
        }
      }
      lines.push_back(memory.copy(rng, line).data());
    }
    const auto to = memory.take<float>(rng, n);
    kernels.max_row(n, step, rows, taps, lines.data(), to.data());
    return same_values(to, want);
  });
}

const Property kSum({"gemm.sum"}, kUsual);
TEST(GemmKernels, Sum) {
  for_cases(kSum, [](Rng& rng, Memory& memory, const GemmKernels& kernels) {
    const int64_t n = any_extent(rng, 100);
    const auto x = any_floats(rng, n);
    double lanes[16] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i % 16] += double{x[static_cast<size_t>(i)]};
    for (int half = 8; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    const std::vector<double> want{lanes[0]}, got{kernels.sum(n, memory.copy(rng, x).data())};
    return same_values(got, want, true);
  });
}

}  // namespace
}  // namespace openrknn
