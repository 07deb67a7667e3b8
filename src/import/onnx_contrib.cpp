#include "import/onnx_contrib.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/checked.hpp"
#include "base/text.hpp"
#include "import/onnx_contrib_expansion.hpp"

namespace openrknn::import {
namespace {

// ------------------------------------------------------------------------------------------------ activations

Status gelu(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(1));
  OPENRKNN_TRY(const ValueId x, e.plus(e.in(0), e.in(1)));
  OPENRKNN_TRY(const ValueId y, e.node("Gelu", {x}));
  return e.give(0, y);
}

Status fast_gelu(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(1));
  OPENRKNN_TRY(const ValueId x, e.plus(e.in(0), e.in(1)));
  OPENRKNN_TRY(const ValueId y, e.node("Gelu", {x}, with("approximate", std::string("tanh"))));
  return e.give(0, y);
}

Status quick_gelu(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(1));
  OPENRKNN_TRY(const ValueId scaled, e.node("Mul", {e.in(0), e.scalar(e.attributes().float_or("alpha", 1.702F))}));
  OPENRKNN_TRY(const ValueId gate, e.node("Sigmoid", {scaled}));
  OPENRKNN_TRY(const ValueId y, e.node("Mul", {e.in(0), gate}));
  return e.give(0, y);
}

// `activation` of the fused operators, with its parameters in the order of the operator's attributes.
Result<ValueId> activated(Expansion& e, ValueId x, const std::string& activation, const std::vector<float>& p) {
  const auto at = [&](size_t i, float fallback) { return i < p.size() ? p[i] : fallback; };
  if (activation.empty()) return x;
  for (const auto* plain : {"Relu", "Tanh", "Sigmoid"}) {
    if (activation == plain) return e.node(activation, {x});
  }
  if (activation == "LeakyRelu") return e.node(activation, {x}, with("alpha", at(0, 0.01F)));
  if (activation == "HardSigmoid") {
    Attributes attributes = with("alpha", at(0, 0.2F));
    attributes.set("beta", at(1, 0.5F));
    return e.node(activation, {x}, std::move(attributes));
  }
  if (activation == "Clip") {
    return e.node(activation, {x, e.scalar(at(0, std::numeric_limits<float>::lowest())),
                               e.scalar(at(1, std::numeric_limits<float>::max()))});
  }
  return refusal(fmt::format("attribute 'activation' = '{}' is not supported", activation));
}

// ------------------------------------------------------------------------------------------------ normalisations

// (x + skip + bias) normalised; gamma, beta and bias are the operands at these slots.
Status skip_norm(Expansion& e, std::string_view op, size_t beta, size_t bias) {
  OPENRKNN_CHECK_OK(e.require(3));
  OPENRKNN_CHECK_OK(e.refuse_output(1, "mean"));
  OPENRKNN_CHECK_OK(e.refuse_output(2, "inverse deviation"));
  OPENRKNN_TRY(ValueId sum, e.node("Add", {e.in(0), e.in(1)}));
  OPENRKNN_TRY(sum, e.plus(sum, e.in(bias)));
  Attributes attributes = with("axis", int64_t{-1});
  attributes.set("epsilon", e.attributes().float_or("epsilon", 1e-12F));
  Values operands{sum, e.in(2)};
  if (beta != 0 && e.has(beta)) operands.push_back(e.in(beta));
  OPENRKNN_TRY(const ValueId y, e.node(op, std::move(operands), std::move(attributes)));
  OPENRKNN_CHECK_OK(e.give(3, sum));
  return e.give(0, y);
}

Status skip_layer_norm(Expansion& e) { return skip_norm(e, "LayerNormalization", 3, 4); }
Status skip_rms_norm(Expansion& e) { return skip_norm(e, "RMSNormalization", 0, 3); }

Status rms_norm(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_CHECK_OK(e.refuse_output(1, "inverse root mean square"));
  Attributes attributes = with("axis", e.attributes().int_or("axis", -1));
  attributes.set("epsilon", e.attributes().float_or("epsilon", 1e-5F));
  OPENRKNN_TRY(const ValueId y, e.node("RMSNormalization", {e.in(0), e.in(1)}, std::move(attributes)));
  return e.give(0, y);
}

// Word, position and segment embeddings, summed and normalised; the length of each row of the mask.
Status embed_layer_norm(Expansion& e) {
  for (const size_t slot : {0, 2, 3, 5, 6}) {
    if (!e.has(slot)) return refusal(fmt::format("operand {} is missing", slot), ErrorCode::kFormat);
  }
  OPENRKNN_TRY(const Shape ids, e.shape(e.in(0)));
  if (ids.rank() != 2) return refusal("the identifiers are not [batch, length]", ErrorCode::kFormat);
  OPENRKNN_TRY(ValueId sum, e.node("Gather", {e.in(2), e.in(0)}, with("axis", int64_t{0})));
  ValueId position;
  if (e.has(8)) {
    OPENRKNN_TRY(position, e.node("Gather", {e.in(3), e.in(8)}, with("axis", int64_t{0})));
  } else {
    OPENRKNN_TRY(position, e.node("Slice", {e.in(3), e.ints({0}), e.ints({ids[1]}), e.ints({0})}));
  }
  OPENRKNN_TRY(sum, e.node("Add", {sum, position}));
  if (e.has(1) && e.has(4)) {
    OPENRKNN_TRY(const ValueId segment, e.node("Gather", {e.in(4), e.in(1)}, with("axis", int64_t{0})));
    OPENRKNN_TRY(sum, e.node("Add", {sum, segment}));
  }
  Attributes attributes = with("axis", int64_t{-1});
  attributes.set("epsilon", e.attributes().float_or("epsilon", 1e-12F));
  OPENRKNN_TRY(const ValueId y, e.node("LayerNormalization", {sum, e.in(5), e.in(6)}, std::move(attributes)));
  if (e.wants(1)) {
    ValueId length;
    if (e.has(7)) {
      OPENRKNN_TRY(length, e.node("ReduceSum", {e.in(7), e.ints({1})}, with("keepdims", int64_t{0})));
    } else {
      length = e.constant(Tensor(DType::kInt32, Shape{ids[0]}));
    }
    OPENRKNN_CHECK_OK(e.give(1, length));
  }
  OPENRKNN_CHECK_OK(e.give(2, sum));
  return e.give(0, y);
}

// ------------------------------------------------------------------------------------------------ products

Result<ValueId> swapped_ends(Expansion& e, ValueId value) {
  OPENRKNN_TRY(const Shape shape, e.shape(value));
  if (shape.rank() < 2) return value;
  std::vector<int64_t> perm;
  for (int i = 0; i < shape.rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return e.permuted(value, std::move(perm));
}

Status fused_matmul(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  for (const auto* name : {"transBatchA", "transBatchB"}) {
    if (e.attributes().int_or(name, 0) != 0) return refusal(fmt::format("attribute '{}' = 1 is not supported", name));
  }
  ValueId a = e.in(0);
  ValueId b = e.in(1);
  if (e.attributes().int_or("transA", 0) != 0) {
    OPENRKNN_TRY(a, swapped_ends(e, a));
  }
  if (e.attributes().int_or("transB", 0) != 0) {
    OPENRKNN_TRY(b, swapped_ends(e, b));
  }
  OPENRKNN_TRY(ValueId y, e.node("MatMul", {a, b}));
  const float alpha = e.attributes().float_or("alpha", 1.0F);
  if (alpha != 1.0F) {
    OPENRKNN_TRY(y, e.node("Mul", {y, e.scalar(alpha)}));
  }
  return e.give(0, y);
}

Attributes without_activation(const Attributes& all) {
  Attributes rest = all;
  for (const auto* name :
       {"activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma"})
    rest.erase(name);
  return rest;
}

Status fused_conv(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(ValueId y, e.node("Conv", {e.in(0), e.in(1), e.in(2)}, without_activation(e.attributes())));
  OPENRKNN_TRY(y, e.plus(y, e.in(3)));
  OPENRKNN_TRY(y, activated(e, y, e.attributes().string_or("activation", ""),
                            e.attributes().floats_or("activation_params", {})));
  return e.give(0, y);
}

Status fused_gemm(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  OPENRKNN_TRY(ValueId y, e.node("Gemm", {e.in(0), e.in(1), e.in(2)}, without_activation(e.attributes())));
  std::vector<float> parameters;
  for (const auto* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (e.attributes().has(name)) parameters.push_back(e.attributes().float_or(name, 0));
  }
  OPENRKNN_TRY(y, activated(e, y, e.attributes().string_or("activation", ""), parameters));
  return e.give(0, y);
}

// ------------------------------------------------------------------------------------------------ attention

// Queries, keys and values as [batch, heads, length, size of a head].
struct Heads {
  ValueId query, key, value;
  int64_t batch = 0, heads = 0, length = 0, value_size = 0, past = 0, total = 0;
  float scale = 1;
};

// [batch, length, heads * size] as [batch, heads, length, size].
Result<ValueId> split_heads(Expansion& e, ValueId value, int64_t heads) {
  OPENRKNN_TRY(const Shape shape, e.shape(value));
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0)
    return refusal(fmt::format("{} cannot be divided among {} heads", shape.to_string(), heads), ErrorCode::kFormat);
  OPENRKNN_TRY(const ValueId apart, e.reshaped(value, {shape[0], shape[1], heads, shape[2] / heads}));
  return e.permuted(apart, {0, 2, 1, 3});
}

// What a mask adds to the scores [batch, heads, length, total]: 0 where it lets through, `filter` elsewhere.
Result<ValueId> mask_bias(Expansion& e, ValueId mask, const Heads& h, float filter) {
  OPENRKNN_TRY(const Shape shape, e.shape(mask));
  ValueId keep;
  if (shape.rank() == 1 && shape[0] == h.batch) {  // the number of keys of each sample
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < h.total; ++i) positions.push_back(i);
    OPENRKNN_TRY(const ValueId wide, e.node("Cast", {mask}, with("to", int64_t{7})));
    OPENRKNN_TRY(const ValueId column, e.reshaped(wide, {h.batch, 1, 1, 1}));
    OPENRKNN_TRY(keep, e.node("Less", {e.ints(positions), column}));
  } else if (shape.rank() == 2 && shape[0] == h.batch && shape[1] == h.total) {
    OPENRKNN_TRY(keep, e.reshaped(mask, {h.batch, 1, 1, h.total}));
  } else if (shape.rank() == 3 && shape[0] == h.batch && shape[2] == h.total) {
    OPENRKNN_TRY(keep, e.reshaped(mask, {h.batch, 1, shape[1], h.total}));
  } else {
    return refusal(
        fmt::format("a mask of shape {} is not supported: give [batch], [batch, keys] or "
                    "[batch, queries, keys]",
                    shape.to_string()));
  }
  OPENRKNN_TRY(const ValueId as_float, e.node("Cast", {keep}, with("to", int64_t{kOnnxFloat})));
  OPENRKNN_TRY(const ValueId dropped, e.node("Sub", {e.scalar(1.0F), as_float}));
  return e.node("Mul", {dropped, e.scalar(filter)});
}

// Query i sees the keys up to past + i.
Result<ValueId> causal_bias(Expansion& e, const Heads& h, float filter) {
  OPENRKNN_TRY(const Shape shape, Shape::make(std::vector<int64_t>{h.length, h.total}));
  const auto bytes = checked_mul(shape.elements(), static_cast<int64_t>(sizeof(float)));
  if (!bytes) return refusal("the mask of a causal attention is too large", ErrorCode::kResource);
  OPENRKNN_CHECK_OK(e.charge(*bytes));
  OPENRKNN_TRY(Tensor bias, Tensor::make(DType::kFloat32, shape));
  auto values = bias.mutable_as<float>();
  for (int64_t i = 0; i < h.length; ++i) {
    for (int64_t j = 0; j < h.total; ++j) values[static_cast<size_t>(i * h.total + j)] = j > h.past + i ? filter : 0.0F;
  }
  return e.constant(std::move(bias));
}

// softmax(query key^T scale + biases) value, heads side by side.
Result<ValueId> attended(Expansion& e, const Heads& h, const Values& biases) {
  OPENRKNN_TRY(const ValueId keys, e.permuted(h.key, {0, 1, 3, 2}));
  OPENRKNN_TRY(const ValueId query, e.node("Mul", {h.query, e.scalar(h.scale)}));
  OPENRKNN_TRY(ValueId scores, e.node("MatMul", {query, keys}));
  for (const ValueId bias : biases) {
    OPENRKNN_TRY(scores, e.plus(scores, bias));
  }
  OPENRKNN_TRY(const ValueId weights, e.node("Softmax", {scores}, with("axis", int64_t{-1})));
  OPENRKNN_TRY(const ValueId mixed, e.node("MatMul", {weights, h.value}));
  OPENRKNN_TRY(const ValueId together, e.permuted(mixed, {0, 2, 1, 3}));
  return e.reshaped(together, {h.batch, h.length, h.heads * h.value_size});
}

// Fills the extents from the operands, which have their heads apart.
Status measure(Expansion& e, Heads& h) {
  OPENRKNN_TRY(const Shape query, e.shape(h.query));
  OPENRKNN_TRY(const Shape key, e.shape(h.key));
  OPENRKNN_TRY(const Shape value, e.shape(h.value));
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4)
    return refusal("query, key and value differ in their dimensions", ErrorCode::kFormat);
  h.batch = query[0];
  h.heads = query[1];
  h.length = query[2];
  h.value_size = value[3];
  h.total = key[2];
  const float given = e.attributes().float_or("scale", 0.0F);
  h.scale = given != 0.0F ? given : 1.0F / std::sqrt(static_cast<float>(std::max<int64_t>(query[3], 1)));
  return {};
}

Result<Values> biases_of(Expansion& e, const Heads& h, size_t mask, size_t bias) {
  const float filter = e.attributes().float_or("mask_filter_value", -10000.0F);
  Values biases;
  if (e.has(mask)) {
    OPENRKNN_TRY(const ValueId masked, mask_bias(e, e.in(mask), h, filter));
    biases.push_back(masked);
  }
  if (e.attributes().int_or("unidirectional", 0) != 0) {
    OPENRKNN_TRY(const ValueId causal, causal_bias(e, h, filter));
    biases.push_back(causal);
  }
  if (e.has(bias)) biases.push_back(e.in(bias));
  return biases;
}

Status with_past(Expansion& e, ValueId past, ValueId& now, int64_t& length) {
  OPENRKNN_TRY(const Shape shape, e.shape(past));
  if (shape.rank() != 4) return refusal("the past is not [batch, heads, length, size]", ErrorCode::kFormat);
  length = shape[2];
  OPENRKNN_TRY(now, e.node("Concat", {past, now}, with("axis", int64_t{2})));
  return {};
}

Status multi_head_attention(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(1));
  if (!e.has(1) || !e.has(2)) return refusal("keys and values packed with the queries are not supported");
  OPENRKNN_CHECK_OK(e.refuse_operand(8, "past_sequence_length"));
  OPENRKNN_CHECK_OK(e.refuse_operand(9, "cache_indirection"));
  OPENRKNN_CHECK_OK(e.refuse_output(3, "scores"));
  const int64_t heads = e.attributes().int_or("num_heads", 0);
  Heads h;
  h.query = e.in(0);
  h.key = e.in(1);
  h.value = e.in(2);
  if (e.has(3)) {
    Attributes sizes = with("axis", int64_t{0});
    OPENRKNN_TRY(const Shape query, e.shape(h.query));
    OPENRKNN_TRY(const Shape bias, e.shape(e.in(3)));
    const int64_t size = query.rank() == 3 ? query[2] : 0;
    if (bias.rank() != 1 || bias[0] <= 2 * size) return refusal("the bias does not fit", ErrorCode::kFormat);
    OPENRKNN_TRY(const Values parts, e.nodes("Split", {e.in(3), e.ints({size, size, bias[0] - 2 * size})}, sizes, 3));
    OPENRKNN_TRY(h.query, e.node("Add", {h.query, parts[0]}));
    OPENRKNN_TRY(const Shape key, e.shape(h.key));
    if (key.rank() == 3) {
      OPENRKNN_TRY(h.key, e.node("Add", {h.key, parts[1]}));
      OPENRKNN_TRY(h.value, e.node("Add", {h.value, parts[2]}));
    }
  }
  OPENRKNN_TRY(h.query, split_heads(e, h.query, heads));
  OPENRKNN_TRY(const Shape key, e.shape(h.key));
  if (key.rank() != 4) {
    OPENRKNN_TRY(h.key, split_heads(e, h.key, heads));
    OPENRKNN_TRY(h.value, split_heads(e, h.value, heads));
  }
  if (e.has(6) && e.has(7)) {
    OPENRKNN_CHECK_OK(with_past(e, e.in(6), h.key, h.past));
    OPENRKNN_CHECK_OK(with_past(e, e.in(7), h.value, h.past));
  }
  OPENRKNN_CHECK_OK(measure(e, h));
  OPENRKNN_TRY(const Values biases, biases_of(e, h, 4, 5));
  OPENRKNN_TRY(const ValueId y, attended(e, h, biases));
  OPENRKNN_CHECK_OK(e.give(1, h.key));
  OPENRKNN_CHECK_OK(e.give(2, h.value));
  return e.give(0, y);
}

Status attention(Expansion& e) {
  OPENRKNN_CHECK_OK(e.require(2));
  if (e.attributes().int_or("do_rotary", 0) != 0) return refusal("attribute 'do_rotary' = 1 is not supported");
  OPENRKNN_CHECK_OK(e.refuse_operand(6, "past_sequence_length"));
  const int64_t heads = e.attributes().int_or("num_heads", 0);
  OPENRKNN_TRY(const Shape weights, e.shape(e.in(1)));
  if (weights.rank() != 2) return refusal("the weights are no matrix", ErrorCode::kFormat);
  auto sizes = e.attributes().ints_or("qkv_hidden_sizes", {});
  if (sizes.empty()) sizes.assign(3, weights[1] / 3);
  if (sizes.size() != 3) return refusal("attribute 'qkv_hidden_sizes' must have 3 elements", ErrorCode::kFormat);
  OPENRKNN_TRY(ValueId all, e.node("MatMul", {e.in(0), e.in(1)}));
  OPENRKNN_TRY(all, e.plus(all, e.in(2)));
  OPENRKNN_TRY(const Values parts, e.nodes("Split", {all, e.ints(sizes)}, with("axis", int64_t{2}), 3));
  Heads h;
  OPENRKNN_TRY(h.query, split_heads(e, parts[0], heads));
  OPENRKNN_TRY(h.key, split_heads(e, parts[1], heads));
  OPENRKNN_TRY(h.value, split_heads(e, parts[2], heads));
  if (e.has(4)) {  // [2, batch, heads, length, size]
    Attributes halves = with("axis", int64_t{0});
    halves.set("num_outputs", 2);
    OPENRKNN_TRY(const Values past, e.nodes("Split", {e.in(4)}, std::move(halves), 2));
    OPENRKNN_TRY(const ValueId past_key, e.node("Squeeze", {past[0], e.ints({0})}));
    OPENRKNN_TRY(const ValueId past_value, e.node("Squeeze", {past[1], e.ints({0})}));
    OPENRKNN_CHECK_OK(with_past(e, past_key, h.key, h.past));
    OPENRKNN_CHECK_OK(with_past(e, past_value, h.value, h.past));
  }
  OPENRKNN_CHECK_OK(measure(e, h));
  if (e.wants(1)) {
    OPENRKNN_TRY(const ValueId key, e.node("Unsqueeze", {h.key, e.ints({0})}));
    OPENRKNN_TRY(const ValueId value, e.node("Unsqueeze", {h.value, e.ints({0})}));
    OPENRKNN_TRY(const ValueId present, e.node("Concat", {key, value}, with("axis", int64_t{0})));
    OPENRKNN_CHECK_OK(e.give(1, present));
  }
  OPENRKNN_TRY(const Values biases, biases_of(e, h, 3, 5));
  OPENRKNN_TRY(const ValueId y, attended(e, h, biases));
  return e.give(0, y);
}

// ------------------------------------------------------------------------------------------------ table

constexpr std::string_view kConv = "auto_pad dilations group kernel_shape pads strides activation activation_params";
constexpr std::array kTable = std::to_array<ContribOperator>({
    {"Attention", attention, "num_heads qkv_hidden_sizes unidirectional scale mask_filter_value do_rotary"},
    {"BiasGelu", gelu, ""},
    {"EmbedLayerNormalization", embed_layer_norm, "epsilon mask_index_type"},
    {"FastGelu", fast_gelu, ""},
    {"FusedConv", fused_conv, kConv},
    {"FusedGemm", fused_gemm, "alpha beta transA transB activation activation_alpha activation_beta activation_gamma"},
    {"FusedMatMul", fused_matmul, "alpha transA transB transBatchA transBatchB"},
    {"Gelu", gelu, ""},
    {"MultiHeadAttention", multi_head_attention, "num_heads scale mask_filter_value unidirectional"},
    {"QuickGelu", quick_gelu, "alpha"},
    {"SimplifiedLayerNormalization", rms_norm, "axis epsilon stash_type"},
    {"SkipLayerNormalization", skip_layer_norm, "epsilon"},
    {"SkipSimplifiedLayerNormalization", skip_rms_norm, "epsilon"},
});

const ContribOperator* entry_of(std::string_view op) {
  for (const std::span<const ContribOperator> table : {std::span<const ContribOperator>(kTable), contrib_integers()}) {
    const auto found = std::find_if(table.begin(), table.end(), [op](const ContribOperator& e) { return e.op == op; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

Status check_attributes(const ContribOperator& entry, const Attributes& attributes) {
  const auto known = split(entry.attributes, ' ');
  std::vector<std::string> unknown;
  for (const auto& attribute : attributes) {
    if (std::find(known.begin(), known.end(), attribute.first) == known.end()) unknown.push_back(attribute.first);
  }
  if (unknown.empty()) return {};
  return refusal(fmt::format("attribute {} is not supported", join_names(unknown)));
}

}  // namespace

bool is_contrib(std::string_view domain, std::string_view op) {
  // onnxruntime writes this one into ONNX's own domain.
  if (domain.empty() || domain == "ai.onnx") return op == "SimplifiedLayerNormalization";
  return domain == "com.microsoft" && entry_of(op) != nullptr;
}

Result<std::vector<ValueId>> expand_contrib(const NodeDraft& draft, GraphBuilder& builder) {
  const ContribOperator& entry = *entry_of(draft.op);
  OPENRKNN_CHECK_OK(check_attributes(entry, draft.attributes));
  Expansion expansion(draft, builder);
  const bool unknown =
      std::any_of(draft.inputs.begin(), draft.inputs.end(), [&](ValueId v) { return builder.is_unknown(v); });
  if (unknown) {  // behind another failure
    for (size_t i = 0; i < draft.outputs.size(); ++i) {
      if (!draft.outputs[i].empty()) expansion.results[i] = builder.add_unknown(draft.outputs[i]);
    }
    return std::move(expansion.results);
  }
  OPENRKNN_CHECK_OK(entry.expand(expansion));
  return std::move(expansion.results);
}

}  // namespace openrknn::import
