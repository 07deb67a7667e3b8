// Which 4-D transpositions the NPU of a target can do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "target/target.hpp"

namespace openrknn::target {

struct TransposeRefusal {
  std::string limit;  // "transpose.p", ...
  std::string why;    // the condition that fails, with values
};

// `dims` are the operand's N, C, H, W; `perm` as ONNX means it. Nothing: the NPU does it. The dtype is int8, or one of
// two bytes (int16, float16). Table of sdk.md C.4.
std::optional<TransposeRefusal> transpose_refusal(const Target& target, const std::array<int, 4>& perm,
                                                  const std::array<int64_t, 4>& dims, DType dtype);

}  // namespace openrknn::target
