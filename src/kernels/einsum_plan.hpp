// The equation of Einsum against the operands' shapes, shared by shape inference and the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/shape.hpp"

namespace openrknn {

// Indices are numbers: those of letters first, then the axes that an ellipsis stands for.
struct EinsumPlan {
  std::vector<std::vector<int>> operands;  // the index of every axis; one may occur twice (a diagonal)
  std::vector<int> output;                 // the index of every axis of the result, each once
  std::vector<int64_t> extents;            // by index; an operand's axis may have extent 1 instead
  Shape shape;                             // of the result
};

// numpy's rules: blanks are ignored, an ellipsis broadcasts, without "->" the result has the ellipsis and then, in
// alphabetical order, the letters that occur once.
Result<EinsumPlan> einsum_plan(std::string_view equation, std::span<const Shape> operands);

}  // namespace openrknn
