#include "npu/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/npu/arithmetic.hpp"

namespace openrknn::npu {
namespace {

ActivationSpec spec(const char* name) { return *activation_from_name(name); }

constexpr const char* kFunctions[] = {"Sigmoid",  "Tanh",    "HardSigmoid", "HardSwish", "Elu",
                                      "Softplus", "exSwish", "exGelu",      "exMish"};

TEST(IntegerTable, StaysWithinAQuarterStepOfTheFunction) {
  for (const char* name : kFunctions) {
    const ActivationSpec f = spec(name);
    double low = 0;
    double high = 0;
    for (double x = -9; x <= 7; x += 0.01) {
      low = std::min(low, table_function(f, x));
      high = std::max(high, table_function(f, x));
    }
    const double step = (high - low) / 255;
    const IntegerTable t = integer_table(f, low, high, step);
    for (double x = -9; x <= 7; x += 0.0037) {
      const auto index = static_cast<int64_t>(std::nearbyint(16384 * x / t.range));
      const double y = table_value(t.table.data(), index) * t.value_scale;
      EXPECT_NEAR(std::clamp(y, low, high), table_function(f, x), step * 0.5) << name << " at " << x;
    }
  }
}

TEST(IntegerTable, FitsItsRangeToTheResult) {
  // A gate whose results never leave [0, 0.01] needs the far negative arguments, not those near zero.
  const IntegerTable t = integer_table(spec("Sigmoid"), 0.0, 0.01, 0.01 / 255);
  EXPECT_GT(t.range, 9);
  const IntegerTable small = integer_table(spec("exSwish"), -0.2784, 2.0, 2.2784 / 255);
  EXPECT_LT(small.range, 16);
}

TEST(HalfTable, GatesAreFineEverywhere) {
  for (const char* name : {"HardSwish", "exSwish", "exGelu", "exMish"}) {
    const ActivationSpec f = spec(name);
    const HalfTable t = half_table(f);
    // What the arithmetic allows: half a step of the index (slopes of all these stay below 1.2), the sag of a chord
    // between entries (second derivatives below 1), two steps of the value; gates multiply theirs by x.
    const double index_error = 1.2 * 0.5 * t.range / 16384;
    const double entry = t.range / 512;
    const double value_error = entry * entry / 8 + 2 * t.value_scale;
    for (double x = -20; x <= 20; x += 0.0101) {
      const double v = std::clamp(16384 * x / t.range, -16384.0, 16384.0);
      const double part = table_value(t.table.data(), static_cast<int64_t>(std::nearbyint(v))) * t.value_scale;
      const double y = x * part;
      EXPECT_NEAR(y, table_function(f, x), index_error + value_error * std::max(1.0, std::abs(x)))
          << name << " at " << x;
    }
  }
}

}  // namespace
}  // namespace openrknn::npu
