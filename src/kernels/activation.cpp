#include "kernels/activation.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"
#include "kernels/math.hpp"

namespace openrknn {
namespace {

struct Named {
  std::string_view op;
  ActivationSpec spec;
};

constexpr float kInf = std::numeric_limits<float>::infinity();

constexpr ActivationSpec spec_of(Activation kind, float alpha = 0.0F, float beta = 0.0F) {
  return {kind, alpha, beta, -kInf, kInf};
}

// Names with ONNX's default parameters.
constexpr std::array kNamed = {
    Named{"Relu", spec_of(Activation::kRelu)},
    Named{"Clip", spec_of(Activation::kClip)},
    Named{"LeakyRelu", spec_of(Activation::kLeakyRelu, 0.01F)},
    Named{"PRelu", spec_of(Activation::kPRelu)},
    Named{"Sigmoid", spec_of(Activation::kSigmoid)},
    Named{"Tanh", spec_of(Activation::kTanh)},
    Named{"HardSigmoid", spec_of(Activation::kHardSigmoid, 0.2F, 0.5F)},
    Named{"HardSwish", spec_of(Activation::kHardSwish)},
    Named{"Elu", spec_of(Activation::kElu, 1.0F)},
    Named{"Selu", spec_of(Activation::kSelu, 1.67326319217681884765625F, 1.05070102214813232421875F)},
    Named{"Celu", spec_of(Activation::kCelu, 1.0F)},
    Named{"Softplus", spec_of(Activation::kSoftplus)},
    Named{"Softsign", spec_of(Activation::kSoftsign)},
    Named{"ThresholdedRelu", spec_of(Activation::kThresholdedRelu, 1.0F)},
    Named{"Swish", spec_of(Activation::kSwish, 1.0F)},
    Named{"exSwish", spec_of(Activation::kSwish, 1.0F)},
    Named{"Gelu", spec_of(Activation::kGelu)},
    Named{"exGelu", spec_of(Activation::kGelu)},
    Named{"Mish", spec_of(Activation::kMish)},
    Named{"exMish", spec_of(Activation::kMish)},
};

Error unusable(std::string where, std::string why) {
  return Error{ErrorCode::kUnsupported, "unusable activation", std::move(where), std::move(why),
               "see docs/OPERATORS.md"};
}

float clip(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// x + 3 is exact near -3, where the product is small.
float hard_swish(float x) { return x <= -3.0F ? 0.0F : x >= 3.0F ? x : x * (x + 3.0F) / 6.0F; }

// x * gate, 0 at -inf instead of inf * 0; gates below 1e-300 give 0 for every float.
double gated(double x, double gate) { return gate < 1e-300 ? 0.0 : x * gate; }

double gelu(double x) { return gated(x, 0.5 * (1.0 + math::erf(x * 0.70710678118654752))); }

double gelu_tanh(double x) {
  return gated(x, 0.5 * (1.0 + math::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))));
}

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2). Beyond 20 the factor is 1 in double.
double mish(double x) {
  const double e = math::exp(x > 20.0 ? 20.0 : x);
  const double n = e * (e + 2.0);
  return gated(x, n / (n + 2.0));
}

template <typename F>
void each(const float* from, float* to, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]);
}

// The same with the function in double and one rounding.
template <typename F>
void each_wide(const float* from, float* to, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(f(static_cast<double>(from[i])));
}

void apply_exponential(const ActivationSpec& spec, const float* from, float* to, int64_t n) {
  const double alpha = spec.alpha;
  const double beta = spec.beta;
  switch (spec.kind) {
    case Activation::kSigmoid:
      return math::sigmoid_array(from, to, n);
    case Activation::kTanh:
      return math::tanh_array(from, to, n);
    case Activation::kElu:
      return each_wide(from, to, n, [=](double x) { return x < 0.0 ? alpha * math::expm1(x) : x; });
    case Activation::kSelu:
      return each_wide(from, to, n, [=](double x) { return beta * (x < 0.0 ? alpha * math::expm1(x) : x); });
    case Activation::kCelu:
      return each_wide(from, to, n, [=](double x) { return x < 0.0 ? alpha * math::expm1(x / alpha) : x; });
    case Activation::kSoftplus:
      return each_wide(from, to, n, math::softplus);
    case Activation::kSwish:
      return each_wide(from, to, n, [=](double x) { return gated(x, math::sigmoid(alpha * x)); });
    case Activation::kGelu:
      return each_wide(from, to, n, gelu);
    case Activation::kGeluTanh:
      return each_wide(from, to, n, gelu_tanh);
    case Activation::kMish:
      return each_wide(from, to, n, mish);
    default:
      return;
  }
}

}  // namespace

std::optional<ActivationSpec> activation_from_name(std::string_view op) {
  for (const Named& named : kNamed) {
    if (named.op == op) return named.spec;
  }
  return std::nullopt;
}

Result<ActivationSpec> activation_of(std::string_view op, const Attributes& attributes) {
  auto spec = activation_from_name(op);
  if (!spec) return unusable(std::string(op), "it is no activation");
  spec->alpha = attributes.float_or("alpha", spec->alpha);
  spec->beta = attributes.float_or(op == "Selu" ? "gamma" : "beta", spec->beta);
  if (spec->kind == Activation::kCelu && spec->alpha == 0.0F)
    return unusable("alpha", "Celu divides by alpha, which is 0");
  if (spec->kind == Activation::kGelu) {
    const std::string form = attributes.string_or("approximate", "none");
    if (form != "none" && form != "tanh")
      return unusable("approximate", fmt::format("'{}' is neither none nor tanh", form));
    if (form == "tanh") spec->kind = Activation::kGeluTanh;
  }
  return *spec;
}

Result<ActivationSpec> fused_activation(const Attributes& attributes) {
  const std::string name = attributes.string_or("activation", "");
  if (name.empty()) return ActivationSpec{};
  auto spec = activation_from_name(name);
  if (!spec) return unusable("activation", fmt::format("'{}' is not known", name));
  spec->alpha = attributes.float_or("activation_alpha", spec->alpha);
  spec->beta = attributes.float_or("activation_beta", spec->beta);
  spec->min = attributes.float_or("activation_min", spec->min);
  spec->max = attributes.float_or("activation_max", spec->max);
  if (spec->kind == Activation::kCelu && spec->alpha == 0.0F)
    return unusable("activation_alpha", "Celu divides by alpha, which is 0");
  if (spec->kind == Activation::kGelu && attributes.string_or("approximate", "none") == "tanh")
    spec->kind = Activation::kGeluTanh;
  return *spec;
}

void apply_activation(const ActivationSpec& spec, float* data, int64_t n) { apply_activation(spec, data, data, n); }

void apply_activation(const ActivationSpec& spec, const float* from, float* to, int64_t n) {
  const float alpha = spec.alpha;
  const float beta = spec.beta;
  switch (spec.kind) {
    case Activation::kNone:
      if (from != to) each(from, to, n, [](float x) { return x; });
      return;
    case Activation::kRelu:
      return gemm_kernels().clamp(n, from, nullptr, 0.0F, kInf, to);
    case Activation::kClip:
      return gemm_kernels().clamp(n, from, nullptr, spec.min, spec.max, to);
    case Activation::kLeakyRelu:
    case Activation::kPRelu:
      return each(from, to, n, [=](float x) { return x < 0.0F ? alpha * x : x; });
    case Activation::kHardSigmoid:
      return each(from, to, n, [=](float x) { return clip(alpha * x + beta, 0.0F, 1.0F); });
    case Activation::kHardSwish:
      return each(from, to, n, hard_swish);
    case Activation::kSoftsign:
      return each(from, to, n, [](float x) { return x / (1.0F + std::fabs(x)); });
    case Activation::kThresholdedRelu:
      return each(from, to, n, [=](float x) { return x > alpha || x != x ? x : 0.0F; });
    default:
      return apply_exponential(spec, from, to, n);
  }
}

}  // namespace openrknn
