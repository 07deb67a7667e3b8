// Look-up tables of activations: int16 [2][513] over a symmetric range of the pre-activation.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/activation.hpp"
#include "model/program.hpp"

namespace openrknn::npu {

using Table = std::array<int16_t, 1026>;

// Is it a function that the table stage stands for (and not a clamp or a slope)?
bool is_table_function(Activation kind);
double table_function(const ActivationSpec& f, double x);

// int8: the function itself, over [-range, range]; y = T * value_scale.
struct IntegerTable {
  Table table{};
  double range = 0;
  double value_scale = 0;
};
// `lowest`, `highest`: the calibrated range of the result, `step` its quantization step: the table's range covers every
// pre-activation that matters for them.
IntegerTable integer_table(const ActivationSpec& f, double lowest, double highest, double step);

// The x * gate(x) forms, whose gate fp16 tasks tabulate over a fixed range.
bool is_gate_function(Activation kind);

struct HalfTable {
  Table table{};
  double range = 0;
  double value_scale = 0;
  model::TableForm form = model::TableForm::kGate;
};
HalfTable half_table(const ActivationSpec& f);

}  // namespace openrknn::npu
