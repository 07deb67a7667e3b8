#include "kernels/signal_plan.hpp"

#include <fmt/core.h>

#include <string>

namespace openrknn {
namespace {

Error unfit(std::string where, std::string why) {
  return {ErrorCode::kShape, "the node's operands do not fit", std::move(where), std::move(why), "repair the model"};
}

// Longer signals in one transform are damage, and products of a few of them stay inside int64.
constexpr int64_t kLongest = int64_t{1} << 24;

Result<int64_t> scalar(const std::vector<int64_t>& values, const char* operand, int64_t least) {
  if (values.size() != 1 || values[0] < least || values[0] > kLongest) {
    return unfit(operand, fmt::format("one number from {} to {} expected", least, kLongest));
  }
  return values[0];
}

Status require_complex(const Shape& x, int rank) {
  if (x.rank() >= rank && (x.dim(-1) == 1 || x.dim(-1) == 2)) return {};
  return unfit("operand 0", fmt::format("shape {}: the last axis has 1 number (real) or 2", x.to_string()));
}

}  // namespace

Result<DftPlan> dft_plan(const Attributes& attributes, const Shape& x,
                         const std::optional<std::vector<int64_t>>& length,
                         const std::optional<std::vector<int64_t>>& axis) {
  OPENRKNN_CHECK_OK(require_complex(x, 2));
  DftPlan plan;
  int64_t given = -2;
  if (axis) {
    if (axis->size() != 1) return unfit("axis", "it is no scalar");
    given = (*axis)[0];
  }
  OPENRKNN_TRY(plan.axis, normalize_axis(given, x.rank()));
  if (plan.axis == x.rank() - 1) return unfit("axis", "it is that of real and imaginary parts");
  plan.inverse = attributes.int_or("inverse", 0) != 0;
  plan.onesided = attributes.int_or("onesided", 0) != 0;
  const int64_t extent = x[plan.axis];
  const int64_t whole = plan.inverse && plan.onesided ? 2 * (extent - 1) : extent;
  OPENRKNN_TRY(plan.length, scalar(length.value_or(std::vector<int64_t>{whole}), "dft_length", 1));
  if (plan.onesided && !plan.inverse && x.dim(-1) == 2)
    return unfit("attribute 'onesided'", "the signal is complex: its spectrum has two sides");
  if (plan.inverse && plan.onesided && x.dim(-1) != 2)
    return unfit("operand 0", "half a spectrum has real and imaginary parts");
  std::vector<int64_t> dims = x.to_vector();
  const bool halved = plan.onesided && !plan.inverse;
  dims[static_cast<size_t>(plan.axis)] = halved ? plan.length / 2 + 1 : plan.length;
  dims.back() = plan.onesided && plan.inverse ? 1 : 2;
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  return plan;
}

Result<StftPlan> stft_plan(const Attributes& attributes, const Shape& x, const std::vector<int64_t>& step,
                           const Shape* window, const std::optional<std::vector<int64_t>>& length) {
  OPENRKNN_CHECK_OK(require_complex(x, 3));
  if (x.rank() != 3) return unfit("operand 0", fmt::format("shape {}, rank 3 expected", x.to_string()));
  StftPlan plan;
  OPENRKNN_TRY(plan.step, scalar(step, "frame_step", 1));
  const int64_t whole = window != nullptr ? window->elements() : x[1];
  OPENRKNN_TRY(plan.length, scalar(length.value_or(std::vector<int64_t>{whole}), "frame_length", 1));
  if (window != nullptr && !(*window == Shape{plan.length})) {
    return unfit("window", fmt::format("shape {} for frames of {}", window->to_string(), plan.length));
  }
  if (plan.length > x[1]) return unfit("frame_length", fmt::format("{} of a signal of {}", plan.length, x[1]));
  const bool onesided = attributes.int_or("onesided", 1) != 0;
  if (onesided && x[2] == 2) return unfit("attribute 'onesided'", "the signal is complex: its spectrum has two sides");
  const int64_t bins = onesided ? plan.length / 2 + 1 : plan.length;
  OPENRKNN_TRY(plan.output, Shape::make(std::vector<int64_t>{x[0], 1 + (x[1] - plan.length) / plan.step, bins, 2}));
  return plan;
}

Result<Shape> window_shape(const std::vector<int64_t>& size) {
  OPENRKNN_TRY(const int64_t n, scalar(size, "size", 0));
  return Shape{n};
}

Result<DType> signal_dtype(const Attributes& attributes) {
  const auto dtype = dtype_from_onnx_number(attributes.int_or("output_datatype", 1));
  if (!dtype || !is_float(*dtype) || dtype_size(*dtype) < 2)
    return unfit("attribute 'output_datatype'", "it is no float type of 16 to 64 bits");
  return *dtype;
}

Result<Shape> mel_shape(const std::vector<int64_t>& bins, const std::vector<int64_t>& dft_length) {
  OPENRKNN_TRY(const int64_t columns, scalar(bins, "num_mel_bins", 1));
  OPENRKNN_TRY(const int64_t length, scalar(dft_length, "dft_length", 1));
  return Shape::make(std::vector<int64_t>{length / 2 + 1, columns});
}

}  // namespace openrknn
