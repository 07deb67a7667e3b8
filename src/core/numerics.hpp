// The arithmetic of one NPU generation, as data. Stored whole in every Program, so that the simulator needs no target.
// Sources and guesses: spec of the arithmetic in docs/ARITHMETIC.md.
#pragma once

#include <cstdint>
#include <string>

namespace openrknn {

// The per-channel multiplier of the first requantization stage.
enum class ChannelMultiplier : uint8_t {
  kInt16,  // signed 16 bits, one shift per task (RK3588, RK3576, RK3562, RV1126B)
  kQ14,    // unsigned 16 bits, shift fixed at 14 (RV110x, RK356x)
};

struct NumericsProfile {
  std::string name = "rk3588";
  ChannelMultiplier channel_multiplier = ChannelMultiplier::kInt16;
  // true: rne(v * MUL + (zp << SHIFT), SHIFT); false: rne(v * MUL, SHIFT) + zp.
  bool zero_point_before_rounding = false;
  // A residual Add can be fused behind a convolution (its operand is brought to the accumulator's scale).
  bool fused_residual = true;
  // fp16 convolution: products summed exactly, then one rounding to fp32, then an fp32 addition.
  int fp16_group = 32;
  // Input channels that one fp16 task contracts in one slice (the group never crosses it).
  int fp16_slice = 32;
  bool operator==(const NumericsProfile&) const = default;
};

}  // namespace openrknn
