// The ways to compute a float convolution, chosen by cpu/conv.cpp.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/conv_plan.hpp"
#include "kernels/cpu/registry.hpp"

namespace openrknn::cpu {

// How a convolution reads the operands of the stages behind it.
struct ConvStages {
  enum class Kind { kOne, kByChannel, kByElement };
  Stages stages;
  std::vector<Kind> kinds;                           // by strip
  std::vector<std::vector<Stages::Affine>> affines;  // by channel, then by kNormalize stage; or empty
  bool alike = true;                                 // no operand goes by channel
};

// stages(act(value + residual)), fused behind a convolution.
struct ConvFusion {
  const float* residual = nullptr;  // of the output's shape
  const float* slopes = nullptr;    // PRelu: one per output channel, or one in all
  bool one_slope = false;
  ActivationSpec activation;
  const ConvStages* behind = nullptr;  // null: no stages
  const TensorView* inputs = nullptr;  // the operands of the node, of which stages read some

  struct Bounds {
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
  };
  // The activation as bounds; nothing for those that are more.
  std::optional<Bounds> bounds() const;

  // Stages that treat all channels alike take neighbouring ones together: planes may be small.
  bool joins_channels() const { return behind != nullptr && behind->alike; }
  bool present() const { return residual != nullptr || activation.kind != Activation::kNone || behind != nullptr; }
  // Elements [offset, offset + count) of the output, all of one channel, from sums at `from`; from == to is allowed.
  void apply(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const;
  void apply(int64_t channel, int64_t offset, int64_t count, float* data) const {
    apply(channel, offset, count, data, data);
  }
  // Residual and activation alone, and the stages alone.
  void apply_activation(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const;
  void apply_stages(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const;
};

struct ConvOperands {
  const float* x = nullptr;
  const float* w = nullptr;
  const float* bias = nullptr;  // may be null
  float* y = nullptr;
  ConvFusion fusion;
};

// A convolution of fixed extents, prepared once: geometry, and packed weights where they are constant.
class ConvMethod {
 public:
  ConvMethod() = default;
  ConvMethod(const ConvMethod&) = delete;
  ConvMethod& operator=(const ConvMethod&) = delete;
  virtual ~ConvMethod() = default;
  virtual Status run(const ConvOperands& operands) const = 0;
};

// The ways; `constant`: the weights, when they stay the same from call to call. Each takes a plan by value and works
// for those that its is_... accepts.
using ConvMethodPtr = std::unique_ptr<const ConvMethod>;
// Any convolution as products of matrices over patches.
ConvMethodPtr conv_by_gemm(ConvPlan plan);
// 1-D and 2-D convolutions whose output channels fill vectors, with packed weights and no patches.
bool is_direct(const ConvPlan& plan, bool constant);
ConvMethodPtr conv_direct(ConvPlan plan, const float* constant);
// The same with pixels in vectors: sums of few products over many pixels.
bool is_by_channels(const ConvPlan& plan);
ConvMethodPtr conv_by_channels(ConvPlan plan, const float* constant);
// One input channel per group, planes (1-D and 2-D only).
bool is_planar_depthwise(const ConvPlan& plan);
ConvMethodPtr conv_depthwise(ConvPlan plan);
// The best of these.
ConvMethodPtr conv_method(const ConvPlan& plan, const float* constant);
// Transposed: one ordinary stride-1 convolution per phase of the output.
ConvMethodPtr conv_transposed(ConvPlan plan);
// Transposed 2-D without overlap, each input pixel an output block of its own: one pointwise convolution.
bool is_blockwise(const ConvPlan& plan);
ConvMethodPtr conv_blockwise(ConvPlan plan, const float* constant);

}  // namespace openrknn::cpu
