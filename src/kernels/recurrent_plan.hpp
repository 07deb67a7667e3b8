// The extents and functions of LSTM, GRU and RNN, shared by shape inference and the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/shape.hpp"
#include "kernels/activation.hpp"

namespace openrknn {

enum class RecurrentCell : uint8_t { kLstm, kGru, kRnn };

// An activation of the list in ONNX's description of LSTM.
struct RecurrentFunction {
  enum class Kind : uint8_t { kActivation, kAffine, kScaledTanh };
  Kind kind = Kind::kActivation;
  ActivationSpec spec;  // alpha and beta are those of the other kinds too

  void apply(float* data, int64_t n) const;
};

// The operands, by ONNX's position.
enum RecurrentOperand : size_t {
  kRecurrentX,
  kRecurrentW,
  kRecurrentR,
  kRecurrentB,
  kRecurrentLengths,
  kRecurrentH,
  kRecurrentC,
  kRecurrentP,
  kRecurrentOperands
};

struct RecurrentPlan {
  RecurrentCell cell = RecurrentCell::kLstm;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int64_t gates = 0;  // 4, 3 or 1
  int directions = 1;
  bool first_reversed = false;  // the second direction of two always is
  bool batch_first = false;     // layout 1
  bool input_forget = false;
  bool linear_before_reset = false;
  float clip = std::numeric_limits<float>::infinity();
  std::vector<RecurrentFunction> functions;  // 3, 2 or 1 per direction
  Shape sequence;                            // of Y
  Shape state;                               // of Y_h and Y_c

  int64_t functions_per_direction() const { return static_cast<int64_t>(functions.size()) / directions; }
  bool reversed(int direction) const { return direction == 1 || first_reversed; }
};

// Shapes by RecurrentOperand; absent operands are nullptr.
using RecurrentShapes = std::array<const Shape*, kRecurrentOperands>;

std::optional<RecurrentCell> recurrent_cell(std::string_view op);
Result<RecurrentPlan> recurrent_plan(std::string_view op, const Attributes& attributes, const RecurrentShapes& shapes);

}  // namespace openrknn
