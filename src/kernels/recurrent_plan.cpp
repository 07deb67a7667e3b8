#include "kernels/recurrent_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "kernels/math.hpp"

namespace openrknn {
namespace {

struct CellTraits {
  std::string_view op;
  RecurrentCell cell;
  int64_t gates;
  std::vector<std::string> functions;
};

const CellTraits* traits_of(std::string_view op) {
  static const CellTraits kTraits[] = {{"LSTM", RecurrentCell::kLstm, 4, {"Sigmoid", "Tanh", "Tanh"}},
                                       {"GRU", RecurrentCell::kGru, 3, {"Sigmoid", "Tanh"}},
                                       {"RNN", RecurrentCell::kRnn, 1, {"Tanh"}}};
  const auto* const at =
      std::find_if(std::begin(kTraits), std::end(kTraits), [op](const auto& t) { return t.op == op; });
  return at == std::end(kTraits) ? nullptr : at;
}

Error malformed(std::string where, std::string why) {
  return {ErrorCode::kShape, "the recurrent layer is malformed", std::move(where), std::move(why), "repair the model"};
}

struct FunctionTraits {
  std::string_view name;
  bool takes_alpha = false;
  bool takes_beta = false;
  RecurrentFunction::Kind kind = RecurrentFunction::Kind::kActivation;
};

constexpr FunctionTraits kFunctions[] = {{"Relu"},
                                         {"Tanh"},
                                         {"Sigmoid"},
                                         {"Softsign"},
                                         {"Softplus"},
                                         {"LeakyRelu", true},
                                         {"ThresholdedRelu", true},
                                         {"Elu", true},
                                         {"HardSigmoid", true, true},
                                         {"Affine", true, true, RecurrentFunction::Kind::kAffine},
                                         {"ScaledTanh", true, true, RecurrentFunction::Kind::kScaledTanh}};

// The values of activation_alpha and activation_beta go to those functions that have such a parameter, in order.
class FunctionReader {
 public:
  explicit FunctionReader(const Attributes& attributes)
      : alphas_(attributes.floats_or("activation_alpha", {})), betas_(attributes.floats_or("activation_beta", {})) {}

  Result<RecurrentFunction> read(const std::string& name) {
    const auto* const at = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const auto& f) { return to_lower(std::string(f.name)) == to_lower(name); });
    if (at == std::end(kFunctions))
      return malformed("attribute 'activations'", fmt::format("'{}' is no activation of a recurrent layer", name));
    RecurrentFunction function;
    function.kind = at->kind;
    if (const auto known = activation_from_name(at->name)) function.spec = *known;
    const bool has_alpha = at->takes_alpha && take(alphas_, next_alpha_, function.spec.alpha);
    const bool has_beta = at->takes_beta && take(betas_, next_beta_, function.spec.beta);
    if (at->kind != RecurrentFunction::Kind::kActivation && !(has_alpha && has_beta))
      return malformed("attribute 'activations'", fmt::format("{} needs values for alpha and beta", at->name));
    return function;
  }

 private:
  static bool take(const std::vector<float>& values, size_t& next, float& to) {
    if (next >= values.size()) return false;
    to = values[next++];
    return true;
  }

  std::vector<float> alphas_, betas_;
  size_t next_alpha_ = 0, next_beta_ = 0;
};

Status read_functions(const CellTraits& traits, const Attributes& attributes, RecurrentPlan& plan) {
  const size_t needed = traits.functions.size() * static_cast<size_t>(plan.directions);
  std::vector<std::string> names;
  if (const auto* given = attributes.get<std::vector<std::string>>("activations")) names = *given;
  // RNN's default in ONNX has a name for a second direction even when there is only one.
  if (traits.cell == RecurrentCell::kRnn && names.size() > needed) names.resize(needed);
  while (names.empty() || (attributes.find("activations") == nullptr && names.size() < needed))
    names.insert(names.end(), traits.functions.begin(), traits.functions.end());
  if (names.size() != needed)
    return malformed("attribute 'activations'", fmt::format("{} names, {} needed", names.size(), needed));
  FunctionReader reader(attributes);
  for (const std::string& name : names) {
    OPENRKNN_TRY(auto function, reader.read(name));
    plan.functions.push_back(function);
  }
  return {};
}

Status read_attributes(const CellTraits& traits, const Attributes& attributes, RecurrentPlan& plan) {
  const std::string direction = attributes.string_or("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return malformed("attribute 'direction'", fmt::format("'{}' is no direction", direction));
  plan.directions = direction == "bidirectional" ? 2 : 1;
  plan.first_reversed = direction == "reverse";
  const int64_t layout = attributes.int_or("layout", 0);
  if (layout != 0 && layout != 1) return malformed("attribute 'layout'", fmt::format("{} is neither 0 nor 1", layout));
  plan.batch_first = layout == 1;
  plan.input_forget = attributes.int_or("input_forget", 0) != 0;
  plan.linear_before_reset = attributes.int_or("linear_before_reset", 0) != 0;
  plan.clip = attributes.float_or("clip", plan.clip);
  if (!(plan.clip > 0.0F)) return malformed("attribute 'clip'", fmt::format("{} is not above 0", plan.clip));
  return read_functions(traits, attributes, plan);
}

Status check_shapes(const RecurrentPlan& plan, const RecurrentShapes& shapes) {
  const int64_t rows = plan.gates * plan.hidden;
  struct Expected {
    RecurrentOperand operand;
    std::string_view what;
    Shape shape;
  };
  const Expected all[] = {{kRecurrentW, "the weights", {plan.directions, rows, plan.inputs}},
                          {kRecurrentR, "the recurrent weights", {plan.directions, rows, plan.hidden}},
                          {kRecurrentB, "the biases", {plan.directions, 2 * rows}},
                          {kRecurrentLengths, "sequence_lens", {plan.batch}},
                          {kRecurrentH, "initial_h", plan.state},
                          {kRecurrentC, "initial_c", plan.state},
                          {kRecurrentP, "the peepholes", {plan.directions, 3 * plan.hidden}}};
  for (const Expected& e : all) {
    const Shape* shape = shapes[e.operand];
    if (shape == nullptr || *shape == e.shape) continue;
    return malformed(fmt::format("operand {}", static_cast<size_t>(e.operand)),
                     fmt::format("{} have shape {}, expected {}", e.what, shape->to_string(), e.shape.to_string()));
  }
  return {};
}

}  // namespace

void RecurrentFunction::apply(float* data, int64_t n) const {
  switch (kind) {
    case Kind::kActivation:
      apply_activation(spec, data, n);
      break;
    case Kind::kAffine:
      for (int64_t i = 0; i < n; ++i) data[i] = spec.alpha * data[i] + spec.beta;
      break;
    case Kind::kScaledTanh:
      for (int64_t i = 0; i < n; ++i) data[i] = spec.alpha * math::tanh_f(spec.beta * data[i]);
      break;
  }
}

std::optional<RecurrentCell> recurrent_cell(std::string_view op) {
  const CellTraits* traits = traits_of(op);
  if (traits == nullptr) return std::nullopt;
  return traits->cell;
}

Result<RecurrentPlan> recurrent_plan(std::string_view op, const Attributes& attributes, const RecurrentShapes& shapes) {
  const CellTraits* traits = traits_of(op);
  if (traits == nullptr) return malformed("", fmt::format("'{}' is no recurrent layer", op));
  RecurrentPlan plan;
  plan.cell = traits->cell;
  plan.gates = traits->gates;
  OPENRKNN_CHECK_OK(read_attributes(*traits, attributes, plan));
  const Shape& x = *shapes[kRecurrentX];
  const Shape& r = *shapes[kRecurrentR];
  if (x.rank() != 3) return malformed("operand 0", fmt::format("shape {}, three axes are needed", x.to_string()));
  if (r.rank() != 3) return malformed("operand 2", fmt::format("shape {}, three axes are needed", r.to_string()));
  plan.steps = x[plan.batch_first ? 1 : 0];
  plan.batch = x[plan.batch_first ? 0 : 1];
  plan.inputs = x[2];
  plan.hidden = r[2];
  // Before anything is computed from the extent: the elements bound it.
  if (r[0] != plan.directions || r[1] % plan.gates != 0 || r[1] / plan.gates != plan.hidden)
    return malformed("operand 2", fmt::format("shape {}, expected [{}, {} x {}, {}]", r.to_string(), plan.directions,
                                              plan.gates, plan.hidden, plan.hidden));
  if (const int64_t given = attributes.int_or("hidden_size", plan.hidden); given != plan.hidden)
    return malformed("attribute 'hidden_size'", fmt::format("{}, the weights have {}", given, plan.hidden));
  using Dims = std::vector<int64_t>;
  const int64_t d = plan.directions;
  OPENRKNN_TRY(plan.sequence, Shape::make(plan.batch_first ? Dims{plan.batch, plan.steps, d, plan.hidden}
                                                           : Dims{plan.steps, d, plan.batch, plan.hidden}));
  OPENRKNN_TRY(plan.state,
               Shape::make(plan.batch_first ? Dims{plan.batch, d, plan.hidden} : Dims{d, plan.batch, plan.hidden}));
  OPENRKNN_CHECK_OK(check_shapes(plan, shapes));
  return plan;
}

}  // namespace openrknn
