// Every function of MathKernels, on every instruction set, against the functions of math.hpp one value at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/kernel_tables.hpp"
#include "kernels/math.hpp"
#include "kernels/property.hpp"

namespace openrknn {
namespace {

using math::MathKernels;
using namespace testing;

constexpr int64_t kUsual = 200;

// Any bits, or numbers that the functions do not saturate.
std::vector<float> operands(Rng& rng, int64_t n) {
  std::vector<float> v;
  const bool any = one_in(rng, 3);
  const float size = one_in(rng, 2) ? 2.0F : 40.0F;
  for (int64_t i = 0; i < n; ++i)
    v.push_back(any ? any_float(rng) : static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31F * size);
  return v;
}

template <typename Run>
void for_tables(const Property& property, const Run& run) {
  const auto tables = testing::math_tables();
  Memory memory;
  for (Cases cases(property, names_of(tables)); cases.next();) {
    for (const auto& each : tables) {
      memory.reset();
      Rng rng = cases.rng();
      const ::testing::AssertionResult result = run(rng, memory, *each.table);
      if (!result) FAIL() << each.isa << ": " << result.message();
    }
  }
}

void expect_function(const Property& property, void (*MathKernels::*function)(const float*, float*, int64_t),
                     float (*one)(float)) {
  for_tables(property, [&](Rng& rng, Memory& memory, const MathKernels& kernels) {
    const auto values = operands(rng, any_extent(rng, 70));
    std::vector<float> want;
    for (const float x : values) want.push_back(one(x));
    const auto from = memory.copy(rng, values);
    const auto to = one_in(rng, 2) ? from : memory.take<float>(rng, static_cast<int64_t>(values.size()));
    (kernels.*function)(from.data(), to.data(), static_cast<int64_t>(values.size()));
    return same_values(to, want, true);
  });
}

const Property kExp({"math.exp"}, kUsual);
TEST(MathKernels, Exp) { expect_function(kExp, &MathKernels::exp, math::exp_f); }
const Property kLog({"math.log"}, kUsual);
TEST(MathKernels, Log) { expect_function(kLog, &MathKernels::log, math::log_f); }
const Property kTanh({"math.tanh"}, kUsual);
TEST(MathKernels, Tanh) { expect_function(kTanh, &MathKernels::tanh, math::tanh_f); }
const Property kSigmoid({"math.sigmoid"}, kUsual);
TEST(MathKernels, Sigmoid) { expect_function(kSigmoid, &MathKernels::sigmoid, math::sigmoid_f); }
const Property kErf({"math.erf"}, kUsual);
TEST(MathKernels, Erf) { expect_function(kErf, &MathKernels::erf, math::erf_f); }

const Property kLines({"math.exp_lines", "math.divide_lines"}, kUsual);
TEST(MathKernels, SoftmaxOfLinesSideBySide) {
  for_tables(kLines, [](Rng& rng, Memory& memory, const MathKernels& kernels) {
    const auto x = operands(rng, any_extent(rng, 70));
    const auto n = static_cast<int64_t>(x.size());
    std::vector<double> most, sums, e;
    std::vector<float> want;
    for (const float value : x) {
      most.push_back(static_cast<double>(any_float(rng)));
      sums.push_back(static_cast<double>(rng()));
      e.push_back(math::exp(static_cast<double>(value) - most.back()));
      want.push_back(static_cast<float>(e.back() / (sums.back() + e.back())));
    }
    const auto got_e = memory.take<double>(rng, n), got_sums = memory.copy(rng, sums);
    const auto y = memory.take<float>(rng, n);
    kernels.exp_lines(memory.copy(rng, x).data(), memory.copy(rng, most).data(), n, got_e.data(), got_sums.data());
    kernels.divide_lines(got_e.data(), got_sums.data(), n, y.data());
    const auto same_e = same_values(got_e, e, true);
    return same_e ? same_values(y, want, true) : same_e;
  });
}

const Property kLine({"math.softmax_line"}, kUsual);
TEST(MathKernels, SoftmaxOfOneLine) {
  for_tables(kLine, [](Rng& rng, Memory& memory, const MathKernels& kernels) {
    const auto x = operands(rng, std::max<int64_t>(1, any_extent(rng, 150)));
    const auto n = static_cast<int64_t>(x.size());
    float most = x[0];
    for (const float value : x) most = value > most ? value : most;
    std::array<double, 16> lanes{};
    std::vector<double> e;
    for (const float value : x) {
      e.push_back(math::exp(static_cast<double>(value) - static_cast<double>(most)));
      lanes[(e.size() - 1) % lanes.size()] += e.back();
    }
    for (size_t half = lanes.size() / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    std::vector<float> want;
    for (const double value : e) want.push_back(static_cast<float>(value / lanes[0]));
    const auto y = memory.take<float>(rng, n);
    kernels.softmax_line(memory.copy(rng, x).data(), n, memory.take<double>(rng, n).data(), y.data());
    return same_values(y, want, true);
  });
}

}  // namespace
}  // namespace openrknn
