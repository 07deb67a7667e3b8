// The extents of Attention and RotaryEmbedding, shared by shape inference and the kernels.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"

namespace openrknn {

// The shapes of Attention's operands; null: absent.
struct AttentionShapes {
  const Shape* q = nullptr;
  const Shape* k = nullptr;
  const Shape* v = nullptr;
  const Shape* mask = nullptr;
  const Shape* past_key = nullptr;
  const Shape* past_value = nullptr;
  const Shape* valid = nullptr;  // nonpad_kv_seqlen
};

struct AttentionPlan {
  bool flat = false;  // [batch, position, heads * size] instead of [batch, head, position, size]
  int64_t batch = 0;
  int64_t q_heads = 0;
  int64_t kv_heads = 0;  // divides q_heads: neighbouring heads of q share one
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t past = 0;
  int64_t total = 0;  // past + kv_length
  int64_t size = 0;   // of a head of q and k
  int64_t v_size = 0;
  Shape output;
  Shape present_key;
  Shape present_value;
  Shape scores;  // [batch, q_heads, q_length, total]
};
Result<AttentionPlan> attention_plan(const Attributes& attributes, const AttentionShapes& shapes);

struct RotaryPlan {
  bool flat = false;  // [batch, position, heads * size] instead of [batch, head, position, size]
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;
  int64_t rotated = 0;  // leading elements of a head that are rotated; even
};
// `positions` may be null: then the caches hold a row for every position of every sample.
Result<RotaryPlan> rotary_plan(const Attributes& attributes, const Shape& x, const Shape& cos, const Shape& sin,
                               const Shape* positions);

}  // namespace openrknn
