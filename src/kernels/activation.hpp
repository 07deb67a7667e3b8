// Unary functions of float values: one statement for the activation operators and for those fused behind Conv, Add, ...
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "core/attributes.hpp"

namespace openrknn {

enum class Activation : uint8_t {
  kNone,
  kRelu,       // max(x, 0)
  kClip,       // min(max(x, min), max)
  kLeakyRelu,  // x < 0 ? alpha * x : x
  kPRelu,      // the same; the caller sets alpha to the slope of the channel
  kSigmoid,
  kTanh,
  kHardSigmoid,      // clip(alpha * x + beta, 0, 1)
  kHardSwish,        // x * clip(x / 6 + 0.5, 0, 1)
  kElu,              // x < 0 ? alpha * (exp(x) - 1) : x
  kSelu,             // beta * (x < 0 ? alpha * (exp(x) - 1) : x); beta is ONNX's gamma
  kCelu,             // x < 0 ? alpha * (exp(x / alpha) - 1) : x
  kSoftplus,         // log(1 + exp(x))
  kSoftsign,         // x / (1 + |x|)
  kThresholdedRelu,  // x > alpha ? x : 0
  kSwish,            // x * sigmoid(alpha * x); exSwish has alpha 1
  kGelu,             // x * normal_cdf(x)
  kGeluTanh,         // the tanh approximation of it
  kMish,             // x * tanh(softplus(x))
};

struct ActivationSpec {
  Activation kind = Activation::kNone;
  float alpha = 0.0F;
  float beta = 0.0F;
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

// The function of an operator's name (Relu, Clip, exSwish, ...) with ONNX's default parameters; nullopt for other
// names.
std::optional<ActivationSpec> activation_from_name(std::string_view op);

// The activation of an activation node: the operator's own attributes (alpha, beta, gamma, approximate) over its
// defaults. Clip's bounds and PRelu's slope are operands, not attributes: the caller sets min, max and alpha.
Result<ActivationSpec> activation_of(std::string_view op, const Attributes& attributes);

// The activation fused behind another operator: attributes activation, activation_min, activation_max,
// activation_alpha, activation_beta. kNone when there is none; an error names a function that is not known.
Result<ActivationSpec> fused_activation(const Attributes& attributes);

// data[i] = f(data[i]). NaN stays NaN. Parallelism is the caller's: elements are independent.
void apply_activation(const ActivationSpec& spec, float* data, int64_t n);
// The same for operands that stay: to[i] = f(from[i]); from == to is allowed.
void apply_activation(const ActivationSpec& spec, const float* from, float* to, int64_t n);

}  // namespace openrknn
