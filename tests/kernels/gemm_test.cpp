#include "kernels/gemm.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/isa.hpp"

namespace openrknn {
namespace {

std::vector<float> random_floats(std::mt19937& rng, int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F;
  return v;
}

class MatrixRows : public RowSource {
 public:
  MatrixRows(const float* data, int64_t n) : data_(data), n_(n) {}
  void row(int64_t k, int64_t first, int64_t count, float* to) const override {
    std::memcpy(to, data_ + k * n_ + first, static_cast<size_t>(count) * sizeof(float));
  }

 private:
  const float* data_;
  int64_t n_;
};

// The definition: one chain of fused multiply-adds over k per element, from the bias.
std::vector<float> chains(int64_t m, int64_t n, int64_t k, const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& bias) {
  std::vector<float> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = bias.empty() ? 0.0F : bias[static_cast<size_t>(i)];
      for (int64_t l = 0; l < k; ++l) {
        sum = std::fma(a[static_cast<size_t>(i * k + l)], b[static_cast<size_t>(l * n + j)], sum);
      }
      c[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

// Runs `body` for every instruction set of the machine and some numbers of threads.
template <typename Body>
void for_machines(const Body& body) {
  const Isa before = isa();
  for (const Isa set : kEveryIsa) {
    if (!isa_supported(set)) continue;
    force_isa(set);
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      body(set, threads);
    }
  }
  force_isa(before);
  set_thread_count(0);
}

TEST(Gemm, EveryElementIsOneChainOnEveryInstructionSet) {
  std::mt19937 rng(7);
  for (int round = 0; round < 24; ++round) {
    const int64_t m = 1 + static_cast<int64_t>(rng() % 50);
    const int64_t n = 1 + static_cast<int64_t>(rng() % 200);
    const int64_t k = static_cast<int64_t>(rng() % 700);
    const auto a = random_floats(rng, m * k);
    const auto b = random_floats(rng, k * n);
    const auto bias = round % 3 == 0 ? std::vector<float>{} : random_floats(rng, m);
    const auto expected = chains(m, n, k, a, b, bias);
    const MatrixRows rows(b.data(), n);
    for_machines([&](Isa set, int threads) {
      for (const bool in_memory : {false, true}) {
        std::vector<float> c(expected.size(), 123.0F);
        GemmProblem problem;
        problem.a = a.data();
        problem.lda = k;
        problem.b = in_memory ? nullptr : &rows;
        problem.b_rows = in_memory ? b.data() : nullptr;
        problem.ldb = n;
        problem.c = c.data();
        problem.ldc = n;
        problem.bias = bias.empty() ? nullptr : bias.data();
        gemm(1, m, n, k, [&](int64_t) { return problem; });
        ASSERT_EQ(0, std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)))
            << isa_name(set) << ", " << threads << " threads, " << m << " x " << n << " x " << k;
      }
    });
  }
}

TEST(Gemm, LargeProductsAreCutIntoBlocksWithoutTrace) {
  std::mt19937 rng(8);
  const int64_t m = 130, n = 1500, k = 520;
  const auto a = random_floats(rng, m * k);
  const auto b = random_floats(rng, k * n);
  const auto expected = chains(m, n, k, a, b, {});
  for_machines([&](Isa set, int threads) {
    if (set == Isa::kScalar) return;  // slow, and no different from the small ones
    std::vector<float> c(expected.size());
    gemm(1, m, n, k, [&](int64_t) { return GemmProblem{a.data(), k, nullptr, b.data(), n, c.data(), n, nullptr}; });
    ASSERT_EQ(0, std::memcmp(c.data(), expected.data(), c.size() * sizeof(float))) << isa_name(set) << " " << threads;
  });
}

TEST(Gemm, EpilogueSeesEveryElementOnceAndFinished) {
  const int64_t m = 70, n = 333, k = 300;
  const std::vector<float> a(static_cast<size_t>(2 * m * k), 1.0F);
  const std::vector<float> b(static_cast<size_t>(2 * k * n), 1.0F);
  for_machines([&](Isa, int) {
    std::vector<float> c(static_cast<size_t>(2 * m * n));
    gemm(
        2, m, n, k,
        [&](int64_t p) {
          return GemmProblem{a.data() + p * m * k, k, nullptr, b.data() + p * k * n, n,
                             c.data() + p * m * n, n, nullptr};
        },
        [&](int64_t p, int64_t i, int64_t first, int64_t count, float* row) {
          EXPECT_EQ(row, c.data() + (p * m + i) * n + first);
          for (int64_t j = 0; j < count; ++j) row[j] = -row[j];
        });
    for (const float v : c) ASSERT_EQ(v, -300.0F);
  });
}

TEST(Gemm, ClampsAndScalesAreTheirFormulas) {
  std::mt19937 rng(10);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_machines([&](Isa set, int) {
    for (int64_t n = 1; n < 70; n += 3) {
      std::vector<float> from = random_floats(rng, n);
      const std::vector<float> residual = random_floats(rng, n);
      from[static_cast<size_t>(n / 2)] = n % 2 == 0 ? nan : -0.0F;
      std::vector<float> clamped(from.size()), added(from.size()), scaled(from.size() + 1, 7.0F);
      gemm_kernels().clamp(n, from.data(), nullptr, 0.0F, 0.25F, clamped.data());
      gemm_kernels().clamp(n, from.data(), residual.data(), 0.5F, -0.5F, added.data());
      gemm_kernels().scale(n, from.data(), 1.0 / 3, 0.1, scaled.data());
      for (size_t i = 0; i < from.size(); ++i) {
        const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
        const float x = from[i];
        const float raised = x < 0.0F ? 0.0F : x;
        ASSERT_EQ(bits(clamped[i]), bits(raised > 0.25F ? 0.25F : raised)) << isa_name(set) << " " << n;
        // The bounds cross: the upper one wins for every number.
        const float sum = x + residual[i];
        ASSERT_TRUE(sum != sum ? added[i] != added[i] : added[i] == -0.5F) << isa_name(set) << " " << n;
        const auto wide = static_cast<float>(static_cast<double>(x) * (1.0 / 3) + 0.1);
        ASSERT_TRUE(x != x ? scaled[i] != scaled[i] : bits(scaled[i]) == bits(wide)) << isa_name(set) << " " << n;
      }
      ASSERT_EQ(scaled.back(), 7.0F);
    }
  });
}

// Any tile of channels and pixels; in place the pixels are left behind for the next tile, and nothing behind the last
// pixel is read or written.
TEST(Gemm, ChannelTilesAreBoundedChains) {
  std::mt19937 rng(7);
  for_machines([&](Isa, int) {
    const GemmKernels& kernels = gemm_kernels();
    const int64_t most = int64_t{kernels.vectors} * kernels.width;
    for (int channels = 1; channels <= kernels.rows; ++channels) {
      for (const int64_t n : {int64_t{1}, most / 3, most / 2 + 1, most - 1, most}) {
        const int64_t k = 1 + static_cast<int64_t>(rng() % 9);
        const bool residual = rng() % 2 != 0;
        const std::vector<float> x = random_floats(rng, k * n);  // the last row ends with the allocation
        const std::vector<float> w = random_floats(rng, k * channels), bias = random_floats(rng, channels);
        const std::vector<float> other = random_floats(rng, channels * n);
        std::vector<int64_t> offsets(static_cast<size_t>(k)), copied(static_cast<size_t>(k));
        for (int64_t l = 0; l < k; ++l) {
          offsets[static_cast<size_t>(l)] = l * n;
          copied[static_cast<size_t>(l)] = l * most;
        }
        std::vector<float> copy(static_cast<size_t>(k * most)), y(static_cast<size_t>(channels * n) + 1, 7.0F);
        std::vector<float> again = y;
        ChannelTile tile{channels, true,        n,
                         k,        x.data(),    offsets.data(),
                         w.data(), bias.data(), residual ? other.data() : nullptr,
                         -0.3F,    0.4F,        y.data(),
                         n,        copy.data()};
        kernels.channel_tile(tile);
        tile.in_place = false;
        tile.x = copy.data();
        tile.offsets = copied.data();
        tile.copy = nullptr;
        tile.y = again.data();
        kernels.channel_tile(tile);
        for (int64_t i = 0; i < channels; ++i) {
          for (int64_t p = 0; p < n; ++p) {
            float sum = bias[static_cast<size_t>(i)];
            for (int64_t l = 0; l < k; ++l) {
              sum = std::fma(w[static_cast<size_t>(l * channels + i)], x[static_cast<size_t>(l * n + p)], sum);
            }
            if (residual) sum += other[static_cast<size_t>(i * n + p)];
            const float expected = std::min(std::max(sum, -0.3F), 0.4F);
            ASSERT_EQ(y[static_cast<size_t>(i * n + p)], expected) << channels << " " << n << " " << i << " " << p;
          }
        }
        EXPECT_EQ(y.back(), 7.0F);
        EXPECT_EQ(again, y);
      }
    }
  });
}

TEST(Gemm, TapsAreOneChainPerElement) {
  std::mt19937 rng(9);
  const int64_t n = 77, padded = 128 + 16;
  std::vector<std::vector<float>> lines;
  std::vector<const float*> inputs;
  for (int t = 0; t < 9; ++t) lines.push_back(random_floats(rng, padded));
  for (const auto& line : lines) inputs.push_back(line.data() + inputs.size());
  const auto weights = random_floats(rng, 9);
  for_machines([&](Isa set, int) {
    std::vector<float> out(static_cast<size_t>(padded));
    gemm_kernels().taps(n, 9, inputs.data(), weights.data(), 0.25F, out.data());
    for (int64_t x = 0; x < n; ++x) {
      float sum = 0.25F;
      for (size_t t = 0; t < 9; ++t) sum = std::fma(weights[t], inputs[t][x], sum);
      ASSERT_EQ(out[static_cast<size_t>(x)], sum) << isa_name(set);
    }
  });
}

}  // namespace
}  // namespace openrknn
