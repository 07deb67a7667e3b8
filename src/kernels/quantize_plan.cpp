#include "kernels/quantize_plan.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/checked.hpp"

namespace openrknn {
namespace {

Error misfit(std::string why) {
  return {ErrorCode::kShape, "the quantization parameters do not fit", "", std::move(why), "repair the model"};
}

}  // namespace

Result<QuantizePlan> quantize_plan(const Attributes& attributes, const Shape& x, const Shape& scale) {
  QuantizePlan plan;
  const int64_t block = attributes.int_or("block_size", 0);
  if (block < 0) return misfit(fmt::format("block_size is {}", block));
  if (scale.elements() == 1 && block == 0) {
    plan.inner = x.elements();
    return plan;
  }
  OPENRKNN_TRY(const int axis, normalize_axis(attributes.int_or("axis", 1), x.rank()));
  plan.outer = x.elements(0, axis);
  plan.extent = x[axis];
  plan.inner = x.elements(axis + 1, x.rank());
  plan.axis_step = 1;
  if (block == 0) {
    if (scale == Shape{x[axis]}) return plan;
    return misfit(fmt::format("scales {} for axis {} of {}", scale.to_string(), axis, x.to_string()));
  }
  plan.block = block;
  Shape expected = x;
  expected.set(axis, x[axis] / block + (x[axis] % block != 0 ? 1 : 0));
  if (!(scale == expected)) {
    return misfit(fmt::format("scales {} for blocks of {} on axis {} of {}, expected {}", scale.to_string(), block,
                              axis, x.to_string(), expected.to_string()));
  }
  plan.inner_step = 1;
  plan.axis_step = plan.inner;
  plan.outer_step = expected[axis] * plan.inner;
  return plan;
}

bool is_quantized_type(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kInt4:
    case DType::kUInt4:
      return true;
    default:
      return false;
  }
}

Result<LineParameters> line_parameters(const Shape& parameter, const Shape& operand, bool rows) {
  if (parameter.elements() == 1) return LineParameters{};
  const auto refuse = [&] {
    return misfit(fmt::format("parameters {} for the {} of {}", parameter.to_string(), rows ? "rows" : "columns",
                              operand.to_string()));
  };
  if (operand.rank() < 2) return refuse();
  const int64_t lines = operand.dim(rows ? -2 : -1);
  if (parameter == Shape{lines}) return LineParameters{0, 1};
  Shape expected = operand;
  expected.set(operand.rank() - (rows ? 1 : 2), 1);
  if (!(parameter == expected)) return refuse();
  return LineParameters{lines, 1};
}

}  // namespace openrknn
