// Helpers shared by the shape inference of the operator families.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/registry.hpp"

namespace openrknn::ops {

// An operator of class kCompute with `least` to `most` operands and one result.
inline OpDef compute_def(std::string_view name, int least, int most, Infer infer, std::string_view doc,
                         std::vector<AttrSpec> attributes = {}) {
  return {.name = name,
          .op_class = OpClass::kCompute,
          .min_inputs = least,
          .max_inputs = most,
          .attributes = std::move(attributes),
          .infer = infer,
          .doc = doc};
}

using Types = Result<std::vector<TensorType>>;

inline Error infer_error(std::string where, std::string why) {
  return Error{ErrorCode::kShape, "the node's operands do not fit", std::move(where), std::move(why),
               "repair the model"};
}

inline Types one(DType dtype, std::optional<Shape> shape) { return std::vector<TensorType>{{dtype, std::move(shape)}}; }

// The result of a shape computation as the only output; its error passes through.
inline Types computed(DType dtype, Result<Shape> shape) {
  if (!shape.ok()) return shape.error();
  return std::vector<TensorType>{{dtype, *shape}};
}

// One output like the first input.
inline Types like_first(const InferInput& in) { return one(in.dtype(0), in.shape(0)); }

// Operand `i` is absent or its data are known: a shape that depends on it can be computed.
inline bool known(const InferInput& in, size_t i) {
  return !in.has(i) || (i < in.constants.size() && in.constants[i] != nullptr);
}

inline Status same_dtype(const InferInput& in, size_t a, size_t b) {
  if (!in.has(a) || !in.has(b) || in.dtype(a) == in.dtype(b)) return {};
  return infer_error(fmt::format("operand {}", b),
                     fmt::format("type {}, operand {} has {}", dtype_name(in.dtype(b)), a, dtype_name(in.dtype(a))));
}

}  // namespace openrknn::ops
