// The ways to compute a float convolution, chosen by cpu/conv.cpp.
#pragma once

#include <limits>
#include <optional>

#include "kernels/activation.hpp"
#include "kernels/conv_plan.hpp"
#include "kernels/cpu/registry.hpp"

namespace openrknn::cpu {

// act(value + residual), fused behind a convolution.
struct ConvFusion {
  const float* residual = nullptr;  // of the output's shape
  const float* slopes = nullptr;    // PRelu: one per output channel, or one in all
  bool one_slope = false;
  ActivationSpec activation;

  struct Bounds {
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
  };
  // The activation as bounds; nothing for those that are more.
  std::optional<Bounds> bounds() const;

  bool present() const { return residual != nullptr || activation.kind != Activation::kNone; }
  // Elements [offset, offset + count) of the output, all of one channel, from sums at `from`; from == to is allowed.
  void apply(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const;
  void apply(int64_t channel, int64_t offset, int64_t count, float* data) const {
    apply(channel, offset, count, data, data);
  }
};

struct ConvOperands {
  const float* x = nullptr;
  const float* w = nullptr;
  const float* bias = nullptr;  // may be null
  float* y = nullptr;
  ConvFusion fusion;
  PackedWeights* packed = nullptr;  // not null: w stays the same from call to call
};

// Any convolution as products of matrices over patches.
void conv_by_gemm(const ConvPlan& plan, const ConvOperands& operands);
// 1-D and 2-D convolutions whose output channels fill vectors, with packed weights and no patches.
bool is_direct(const ConvPlan& plan, const ConvOperands& operands);
void conv_direct(const ConvPlan& plan, const ConvOperands& operands);
// The same with pixels in vectors: sums of few products over many pixels.
bool is_by_channels(const ConvPlan& plan);
void conv_by_channels(const ConvPlan& plan, const ConvOperands& operands);
// One input channel per group, planes (1-D and 2-D only).
bool is_planar_depthwise(const ConvPlan& plan);
void conv_depthwise(const ConvPlan& plan, const ConvOperands& operands);
// Transposed: one ordinary stride-1 convolution per phase of the output.
Status conv_transposed(const ConvPlan& plan, const ConvOperands& operands);

}  // namespace openrknn::cpu
