#include "quant/rules.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "kernels/recurrent_plan.hpp"
#include "quant/rule.hpp"
#include "target/transpose.hpp"

namespace openrknn::quant {
namespace {

const std::set<std::string, std::less<>> kMovement = {
    "Concat",  "Split",   "Slice",   "Pad",       "Transpose",    "Tile",         "Expand",   "Gather",
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "DepthToSpace", "SpaceToDepth", "Identity", "Dropout"};
const std::set<std::string, std::less<>> kHalfOnly = {
    "Softmax", "LayerNormalization", "InstanceNormalization", "Div", "MatMul", "Pow", "Sqrt", "LSTM", "GRU"};

const std::set<std::string, std::less<>> kActivations = {"Relu",    "Clip",        "LeakyRelu", "PRelu", "Sigmoid",
                                                         "Tanh",    "HardSigmoid", "HardSwish", "Elu",   "Softplus",
                                                         "exSwish", "exGelu",      "exMish"};

DType dtype_of_format(Format f) { return f == Format::kInt8 ? DType::kInt8 : DType::kFloat16; }

std::optional<Refusal> pool(const Rule& r) {
  const Node& n = r.node;
  const bool average = n.op == "AveragePool";
  const auto pads = n.attributes.ints_or("pads", {});
  if (auto refusal = negative_pads(pads)) return refusal;
  if (average && largest(pads) > 0 && n.attributes.int_or("count_include_pad", 0) == 0) {
    return Refusal{"pool.count_include_pad", "the NPU's average counts the padding (sdk.md C.2, npu.md 3.11)"};
  }
  if (average && n.attributes.int_or("ceil_mode", 0) != 0) {
    return Refusal{"pool.ceil_mode", "ceil_mode with an average (sdk.md C.2)"};
  }
  if (largest(n.attributes.ints_or("dilations", {1})) > 1)
    return Refusal{"pool.dilation", "dilated pooling (sdk.md C.2)"};
  int64_t extent = 0;
  for (int i = 1; i < r.shape(0).rank(); ++i) extent = std::max(extent, r.shape(0)[i]);
  return first_of(r.at_most("pool.kernel.max", largest(n.attributes.ints_or("kernel_shape", {1})), "the kernel"),
                  r.at_most("pool.stride.max", largest(n.attributes.ints_or("strides", {1})), "a stride"),
                  r.at_most("pool.pad.max", largest(pads), "a pad"), r.at_most("pool.extent.max", extent, "an extent"));
}

std::optional<Refusal> global_pool(const Rule& r) {
  int64_t extent = 0;
  for (int i = 2; i < r.shape(0).rank(); ++i) extent = std::max(extent, r.shape(0)[i]);
  return r.at_most("pool.kernel.max", extent, "the window");
}

// Broadcasts of sdk.md C.1 "BC": one operand whole, the other with extent 1 in the patterns named there.
std::optional<Refusal> elementwise(const Rule& r) {
  if (r.node.inputs.size() != 2) {
    return Refusal{"elementwise.operands",
                   fmt::format("{} operands, the NPU takes two (sdk.md C.2)", r.node.inputs.size())};
  }
  const Shape& out = r.out();
  for (size_t i = 0; i < r.node.inputs.size(); ++i) {
    const Shape& s = r.shape(i);
    if (s == out || s.elements() == 1 || r.graph.constant(r.node.inputs[i]) != nullptr) continue;
    if (s.rank() != out.rank())
      return Refusal{"elementwise.broadcast",
                     fmt::format("{} against {}: ranks differ (sdk.md C.1)", s.to_string(), out.to_string())};
    for (int axis = 2; axis < out.rank(); ++axis) {
      if (auto refusal = r.at_most("elementwise.extent.max", out[axis], "an extent under a broadcast")) return refusal;
    }
    if (s.rank() != 4) {
      // [N, C] and [N, C, L] are cubes too: a broadcast over the channels alone or over the row alone.
      continue;
    }
    const auto one = [&](int axis) { return s[axis] == 1 && out[axis] != 1; };
    const bool legal = !one(0) && !(one(1) && one(2) && one(3)) && (one(2) || one(3));
    if (!legal)
      return Refusal{"elementwise.broadcast",
                     fmt::format("{} against {} is no broadcast of sdk.md C.1", s.to_string(), out.to_string())};
  }
  return std::nullopt;
}

// The table is about cubes: a rank-2 [N, C] is (N, C, 1, 1), a rank-3 [N, C, L] is (N, C, 1, L).
std::optional<Refusal> transpose(const Rule& r) {
  const Shape& s = r.shape(0);
  const int rank = s.rank();
  const auto cube_axis = [rank](int64_t axis) { return rank == 3 && axis == 2 ? 3 : static_cast<int>(axis); };
  std::array<int64_t, 4> dims{1, 1, 1, 1};
  for (int i = 0; i < rank; ++i) dims[static_cast<size_t>(cube_axis(i))] = s[i];
  std::vector<int64_t> reversed;
  for (int i = rank - 1; i >= 0; --i) reversed.push_back(i);
  const auto given = r.node.attributes.ints_or("perm", reversed);
  std::array<int, 4> perm{0, 1, 2, 3};
  for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(cube_axis(i))] = cube_axis(given[static_cast<size_t>(i)]);
  const auto refusal = target::transpose_refusal(r.target, perm, dims, dtype_of_format(r.format));
  if (!refusal) return std::nullopt;
  return Refusal{refusal->limit, refusal->why};
}

std::optional<Refusal> slice(const Rule& r) {
  if (const Tensor* steps = r.has(4) ? r.graph.constant(r.node.inputs[4]) : nullptr) {
    for (const int64_t step : to_ints(steps->view())) {
      if (step != 1) return Refusal{"slice.step", fmt::format("step {} (sdk.md C.2)", step)};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> product(const Rule& r) {
  return r.at_most("matmul.k.max", r.shape(0)[r.shape(0).rank() - 1], "K of the product");
}

std::optional<Refusal> activation(const Rule& r) {
  if (r.node.op == "Elu" && r.node.attributes.float_or("alpha", 1.0F) != 1.0F) {
    return Refusal{"elu.alpha",
                   fmt::format("alpha {}, the NPU has 1 (sdk.md C.2)", r.node.attributes.float_or("alpha", 1.0F))};
  }
  return std::nullopt;
}

std::optional<Refusal> constant_operand(const Rule& r, size_t i, std::string_view limit, std::string_view what) {
  if (!r.has(i) || r.graph.constant(r.node.inputs[i]) != nullptr) return std::nullopt;
  return Refusal{std::string(limit),
                 fmt::format("{} is computed at run time, on the NPU it must be constant (sdk.md C.2)", what)};
}

// One slope in all, or one per channel.
std::optional<Refusal> prelu(const Rule& r) {
  if (auto refusal = constant_operand(r, 1, "prelu.slope", "the slope")) return refusal;
  const Shape& slope = r.shape(1);
  const Shape& out = r.out();
  if (slope.elements() == 1) return std::nullopt;
  const int channel_axis = 1 - out.rank() + slope.rank();
  if (channel_axis >= 0 && channel_axis < slope.rank() && slope.elements() == slope[channel_axis] &&
      slope[channel_axis] == out[1])
    return std::nullopt;
  return Refusal{"prelu.slope",
                 fmt::format("the slope {} is neither a scalar nor one per channel (sdk.md C.2)", slope.to_string())};
}

std::optional<Refusal> pad(const Rule& r) {
  if (auto refusal = constant_operand(r, 2, "pad.value", "the value")) return refusal;
  const std::string mode = r.node.attributes.string_or("mode", "constant");
  if (mode == "constant") return std::nullopt;
  if (mode == "reflect") {
    const Shape& x = r.shape(0);
    const int64_t row = x.rank() > 0 ? x[x.rank() - 1] : 1;
    int64_t other = 1;
    for (int i = 1; i + 1 < x.rank(); ++i) other = std::max(other, x[i]);
    return first_of(r.at_most("pad.reflect.width.max", row, "a reflected row"),
                    r.at_most("pad.reflect.extent.max", other, "a reflected extent"));
  }
  return Refusal{"pad.mode", fmt::format("mode {} (sdk.md C.2)", mode)};
}

std::optional<Refusal> power(const Rule& r) {
  const Tensor* exponent = r.node.inputs.size() > 1 ? r.graph.constant(r.node.inputs[1]) : nullptr;
  if (exponent == nullptr || exponent->elements() != 1)
    return Refusal{"pow.exponent", "the exponent is no constant scalar (sdk.md C.2)"};
  constexpr std::array kLegal = {0.0, 1.0, 2.0, 3.0, 0.5, -0.5};
  const double e = to_doubles(exponent->view())[0];
  if (std::find(kLegal.begin(), kLegal.end(), e) == kLegal.end())
    return Refusal{"pow.exponent", fmt::format("exponent {}, the NPU has 0, 1, 2, 3, 0.5, -0.5 (sdk.md C.2)", e)};
  return std::nullopt;
}

// Whether the cell computes with Sigmoid for its gates and Tanh for the rest, as ONNX has it by default.
bool default_functions(const Node& node) {
  const auto* given = node.attributes.get<std::vector<std::string>>("activations");
  const size_t each = node.op == "LSTM" ? 3 : 2;
  for (size_t i = 0; given != nullptr && i < given->size(); ++i) {
    if (to_lower((*given)[i]) != (i % each == 0 ? "sigmoid" : "tanh")) return false;
  }
  return true;
}

std::optional<Refusal> recurrent(const Rule& r) {
  const Attributes& a = r.node.attributes;
  const auto refuse = [](std::string_view name) {
    return Refusal{"recurrent.attributes", fmt::format("its attribute {} is not the default (sdk.md C.2)", name)};
  };
  if (!default_functions(r.node)) return refuse("activations");
  if (a.has("clip")) return refuse("clip");
  for (const char* name : {"input_forget", "layout"}) {
    if (a.int_or(name, 0) != 0) return refuse(name);
  }
  if (r.has(kRecurrentLengths))
    return Refusal{"recurrent.lengths", "its sequences have lengths of their own (sdk.md C.2)"};
  if (r.has(kRecurrentP)) return Refusal{"recurrent.peepholes", "it has peepholes (sdk.md C.2)"};
  for (const auto& [slot, what] : {std::pair<size_t, const char*>{kRecurrentW, "the weight W"},
                                   {kRecurrentR, "the weight R"},
                                   {kRecurrentB, "the bias"}}) {
    if (auto refusal = constant_operand(r, slot, "recurrent.weights", what)) return refusal;
  }
  const Shape& x = r.shape(kRecurrentX);
  auto refusal = first_of(r.at_most("recurrent.extent.max", x[0], "the number of steps"),
                          r.at_most("recurrent.extent.max", x[2], "the number of inputs"),
                          r.at_most("recurrent.extent.max", r.shape(kRecurrentR)[2], "the hidden size"));
  if (refusal) return refusal;
  const target::Limit& multiple = r.target.limit("recurrent.batch.multiple");
  if (x[1] == 1 || x[1] % multiple.value == 0) return std::nullopt;
  return Refusal{"recurrent.batch.multiple", fmt::format("batch {}, the NPU takes 1 or a multiple of {} ({})", x[1],
                                                         multiple.value, multiple.source)};
}

bool is_activation(const std::string& op) { return kActivations.contains(op); }

std::optional<Refusal> family_rule(const Rule& r) {
  const std::string& op = r.node.op;
  if (op == "Conv" || op == "ConvTranspose") return convolution_refusal(r);
  if (op == "MaxPool" || op == "AveragePool") return pool(r);
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool") return global_pool(r);
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Max" || op == "Min") return elementwise(r);
  if (op == "MatMul") return product(r);
  if (op == "Transpose") return transpose(r);
  if (op == "Slice") return slice(r);
  if (op == "Pad") return pad(r);
  if (op == "Pow") return power(r);
  if (op == "Elu") return activation(r);
  if (op == "PRelu") return prelu(r);
  if (op == "LSTM" || op == "GRU") return recurrent(r);
  if (op == "Clip") {
    return first_of(constant_operand(r, 1, "clip.limits", "the lower limit"),
                    constant_operand(r, 2, "clip.limits", "the upper limit"));
  }
  if (op == "Resize")
    return Refusal{
        "resize.factor.max",
        "the NPU resizes by whole factors 2 to 8 where that is exactly a transposed convolution (sdk.md C.2)"};
  if (op == "Where") return Refusal{"npu.dtypes", "its mask is boolean (sdk.md C.1)"};
  if (kMovement.contains(op) || is_activation(op) || kHalfOnly.contains(op)) return std::nullopt;
  return r.unsupported("the optimiser leaves it to the CPU");
}

}  // namespace

bool is_movement(const std::string& op) { return kMovement.contains(op); }

bool is_npu_activation(const std::string& op) { return is_activation(op); }

FormatRole format_role(const Node& node) {
  if (is_movement(node.op) || node.op == "MaxPool" || node.op == "GlobalMaxPool" || node.op == "AveragePool" ||
      node.op == "GlobalAveragePool") {
    return FormatRole::kFollows;
  }
  return kHalfOnly.contains(node.op) ? FormatRole::kHalf : FormatRole::kOwn;
}

std::optional<Refusal> npu_refuses(const Graph& graph, const Node& node, const target::Target& target, Format format) {
  const Rule rule{graph, node, target, format};
  for (const ValueId id : node.outputs) {
    if (id.valid() && !is_float(graph.value(id).dtype)) {
      return Refusal{"npu.dtypes",
                     fmt::format("its result is {}, the NPU computes on int8, int16 and half floats (sdk.md C.1)",
                                 dtype_name(graph.value(id).dtype))};
    }
  }
  for (const ValueId id : node.outputs) {
    if (!id.valid()) continue;
    if (auto refusal = rule.at_most("npu.rank.max", graph.value(id).shape->rank(), "the rank")) return refusal;
  }
  if (!node.inputs.empty() && node.inputs[0].valid()) {
    if (auto refusal = rule.at_most("npu.rank.max", rule.shape(0).rank(), "the rank")) return refusal;
  }
  if (!target.npu_runs(node.op, dtype_of_format(format))) {
    return Refusal{"npu.ops", fmt::format("the NPU of {} has no {} in {} (sdk.md C.2)", target.title, node.op,
                                          format_name(format))};
  }
  return family_rule(rule);
}

}  // namespace openrknn::quant
