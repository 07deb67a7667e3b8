// The extents of the operators that carry a state from step to step, shared by shape inference and the kernels.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"

namespace openrknn {

// x, output [batch, channels, length]; weights [channels, 1, taps]; states [batch, channels, taps - 1].
struct CausalConvPlan {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t length = 0;
  int64_t taps = 0;
  Shape state;
};
// `bias` and `past` may be null.
Result<CausalConvPlan> causal_conv_plan(const Shape& x, const Shape& weights, const Shape* bias, const Shape* past);

struct LinearAttentionShapes {
  const Shape* query = nullptr;
  const Shape* key = nullptr;
  const Shape* value = nullptr;
  const Shape* past = nullptr;  // null: absent, as the two below
  const Shape* decay = nullptr;
  const Shape* beta = nullptr;
};

struct LinearAttentionPlan {
  bool gated = false;  // the state fades by the decay
  bool delta = false;  // what the state already says of a value is taken off it
  int64_t batch = 0;
  int64_t length = 0;
  int64_t q_heads = 0;
  int64_t kv_heads = 0;  // divides q_heads: neighbouring heads share a state
  int64_t key_size = 0;
  int64_t value_size = 0;
  int64_t decay_size = 0;  // numbers a head: 1 or key_size
  int64_t beta_heads = 0;  // 1 or kv_heads
  Shape output;
  Shape state;  // [batch, kv_heads, key_size, value_size]
};
Result<LinearAttentionPlan> linear_attention_plan(const Attributes& attributes, const LinearAttentionShapes& shapes);

}  // namespace openrknn
