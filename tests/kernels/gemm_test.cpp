#include "kernels/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/gemm_packed.hpp"
#include "kernels/isa.hpp"
#include "kernels/property.hpp"

namespace openrknn {
namespace {

using namespace testing;

std::vector<float> random_floats(Rng& rng, int64_t n) {
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

std::vector<std::string> supported_names() {
  std::vector<std::string> names;
  for (const Isa set : kEveryIsa) {
    if (isa_supported(set)) names.emplace_back(isa_name(set));
  }
  return names;
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

const Property kGemm({"gemm"}, 40);
TEST(Gemm, EveryElementIsOneChainOnEveryInstructionSet) {
  for (Cases cases(kGemm, supported_names()); cases.next();) {
    Rng& rng = cases.rng();
    // Now and then more than a block.
    const bool large = one_in(rng, 30);
    const int64_t m = pick(rng, 1, large ? 50 : 20), n = pick(rng, 1, large ? 200 : 60);
    const int64_t k = pick(rng, 0, large ? 700 : 12);
    const auto a = random_floats(rng, m * k);
    const auto b = random_floats(rng, k * n);
    const auto bias = one_in(rng, 3) ? std::vector<float>{} : random_floats(rng, m);
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
        ASSERT_TRUE(same_values(c, expected))
            << isa_name(set) << ", " << threads << " threads, " << m << " x " << n << " x " << k;
      }
    });
  }
}

const Property kPacked({"packed matrix"}, 40);
TEST(Gemm, PackedMatricesGiveTheSameChains) {
  for (Cases cases(kPacked, supported_names()); cases.next();) {
    Rng& rng = cases.rng();
    const bool large = one_in(rng, 30);
    const int64_t m = pick(rng, 1, large ? 90 : 20), n = pick(rng, 1, large ? 300 : 70);
    const int64_t k = pick(rng, 0, large ? 90 : 12);
    const auto a = random_floats(rng, m * k);
    const auto b = random_floats(rng, k * n);
    const auto row = one_in(rng, 2) ? random_floats(rng, n) : std::vector<float>{};
    const bool by_columns = one_in(rng, 2);
    auto stored = b;
    for (int64_t l = 0; l < k && by_columns; ++l) {
      for (int64_t j = 0; j < n; ++j) stored[static_cast<size_t>(j * k + l)] = b[static_cast<size_t>(l * n + j)];
    }
    auto expected = chains(m, n, k, a, b, {});
    for (size_t i = 0; i < expected.size() && !row.empty(); ++i) expected[i] += row[i % static_cast<size_t>(n)];
    for_machines([&](Isa set, int threads) {
      const PackedMatrix matrix(stored.data(), k, n, by_columns ? 1 : n, by_columns ? k : 1);
      std::vector<float> c(expected.size(), 123.0F);
      matrix.multiply({m, a.data(), k, c.data(), n, row.empty() ? nullptr : row.data()});
      ASSERT_TRUE(same_values(c, expected))
          << isa_name(set) << ", " << threads << " threads, " << m << " x " << n << " x " << k;
    });
  }
}

TEST(Gemm, LargeProductsAreCutIntoBlocksWithoutTrace) {
  Rng rng(8);
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

}  // namespace
}  // namespace openrknn
