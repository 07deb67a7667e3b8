#include "npu/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/math.hpp"

namespace openrknn::npu {
namespace {

double sigmoid(double x) { return x >= 0 ? 1.0 / (1.0 + math::exp(-x)) : math::exp(x) / (1.0 + math::exp(x)); }
double softplus(double x) { return std::max(x, 0.0) + math::log1p(math::exp(-std::abs(x))); }

// What multiplies x in the x * gate(x) forms.
double gate(const ActivationSpec& f, double x) {
  switch (f.kind) {
    case Activation::kSwish:
      return sigmoid(f.alpha * x);
    case Activation::kMish:
      return math::tanh(softplus(x));
    case Activation::kHardSwish:
      return std::clamp(x / 6.0 + 0.5, 0.0, 1.0);
    case Activation::kGeluTanh:
      return 0.5 * (1.0 + math::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    default:
      return 0.5 * (1.0 + math::erf(x * 0.70710678118654752440));
  }
}

template <typename F>
Table tabulate(double range, double value_scale, F&& f) {
  Table table{};
  for (int i = 0; i <= 512; ++i) {
    const auto entry = [&](double x) {
      return static_cast<int16_t>(std::clamp(std::nearbyint(f(x) / value_scale), -32768.0, 32767.0));
    };
    table[static_cast<size_t>(i)] = entry(range * (i - 512) / 512.0);
    table[static_cast<size_t>(513 + i)] = entry(range * i / 512.0);
  }
  return table;
}

}  // namespace

bool is_gate_function(Activation kind) {
  return kind == Activation::kSwish || kind == Activation::kMish || kind == Activation::kHardSwish ||
         kind == Activation::kGelu || kind == Activation::kGeluTanh;
}

bool is_table_function(Activation kind) {
  switch (kind) {
    case Activation::kSigmoid:
    case Activation::kTanh:
    case Activation::kHardSigmoid:
    case Activation::kElu:
    case Activation::kSoftplus:
      return true;
    default:
      return is_gate_function(kind);
  }
}

double table_function(const ActivationSpec& f, double x) {
  switch (f.kind) {
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kTanh:
      return math::tanh(x);
    case Activation::kHardSigmoid:
      return std::clamp(f.alpha * x + f.beta, 0.0, 1.0);
    case Activation::kElu:
      return x >= 0 ? x : f.alpha * math::expm1(x);
    case Activation::kSoftplus:
      return softplus(x);
    default:
      return x * gate(f, x);
  }
}

IntegerTable integer_table(const ActivationSpec& f, double lowest, double highest, double step) {
  // Where does the function come within a quarter of a step of its value at the ends? Doubling then halving the
  // interval finds a range that loses nothing and wastes no entries.
  const auto target_at = [&](double x) { return std::clamp(table_function(f, x), lowest, highest); };
  const double far = 64.0 + 2.0 * std::max(std::abs(lowest), std::abs(highest));
  const auto covers = [&](double range) {
    for (const double sign : {-1.0, 1.0}) {
      const double edge = target_at(sign * range);
      for (int i = 1; i <= 64; ++i) {
        const double x = sign * (range + (far - range) * i / 64.0);
        if (std::abs(target_at(x) - edge) > step / 4) return false;
      }
    }
    return true;
  };
  double low = 1e-3;
  double high = far;
  for (int i = 0; i < 40 && high / low > 1.01; ++i) {
    const double middle = std::sqrt(low * high);
    (covers(middle) ? high : low) = middle;
  }
  IntegerTable t;
  t.range = high;
  double largest = 0;
  for (int i = -512; i <= 512; ++i) largest = std::max(largest, std::abs(table_function(f, t.range * i / 512.0)));
  t.value_scale = std::max(largest, 1e-30) / 32767.0;
  t.table = tabulate(t.range, t.value_scale, [&](double x) { return table_function(f, x); });
  return t;
}

HalfTable half_table(const ActivationSpec& f) {
  HalfTable t;
  const bool narrow = f.kind == Activation::kGelu || f.kind == Activation::kGeluTanh;
  // Every gate is flat to 2^-15 beyond these; entries lie 1/32 apart or closer.
  t.range = f.kind == Activation::kHardSwish ? 4.0 : narrow ? 8.0 : 16.0;
  t.value_scale = 1.0 / 32767.0;
  t.form = model::TableForm::kGate;
  t.table = tabulate(t.range, t.value_scale, [&](double x) { return gate(f, x); });
  return t;
}

}  // namespace openrknn::npu
