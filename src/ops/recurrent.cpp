// Recurrent layers.
#include "kernels/recurrent_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Result<RecurrentPlan> plan_of(const InferInput& in) {
  RecurrentShapes shapes{};
  for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = in.has(i) ? &in.shape(i) : nullptr;
  return recurrent_plan(in.op, in.attributes, shapes);
}

Types infer_recurrent(const InferInput& in) {
  for (size_t i = 1; i < kRecurrentOperands; ++i) {
    if (i != kRecurrentLengths) OPENRKNN_CHECK_OK(same_dtype(in, 0, i));
  }
  OPENRKNN_TRY(const RecurrentPlan plan, plan_of(in));
  std::vector<TensorType> types(std::max<size_t>(in.outputs, 1), TensorType{in.dtype(0), plan.state});
  types[0].shape = plan.sequence;
  return types;
}

int64_t recurrent_macs(const InferInput& in, std::span<const TensorType>) {
  const auto plan = plan_of(in);
  if (!plan.ok()) return 0;
  return plan->sequence.elements() * plan->gates * (plan->inputs + plan->hidden);
}

OpDef def(std::string_view name, int inputs, int outputs, std::string_view doc) {
  return {
      .name = name,
      .op_class = OpClass::kCompute,
      .min_inputs = 3,
      .max_inputs = inputs,
      .max_outputs = outputs,
      .attributes = {{"activations", AttrKind::kStrings, false, "names of the functions, per direction"},
                     {"activation_alpha", AttrKind::kFloats, false, "for the functions that have an alpha, in order"},
                     {"activation_beta", AttrKind::kFloats, false, "for the functions that have a beta, in order"},
                     {"clip", AttrKind::kFloat, false, "the gates' sums are cut to [-clip, clip]; default: not cut"},
                     {"direction", AttrKind::kString, false, "forward (default), reverse, bidirectional"},
                     {"hidden_size", AttrKind::kInt, false, "that of the weights"},
                     {"layout", AttrKind::kInt, false, "1: the batch is the first axis; default 0: the steps"}},
      .infer = infer_recurrent,
      .macs = recurrent_macs,
      .doc = doc};
}

}  // namespace

void register_recurrent(Registry& registry) {
  OpDef lstm = def("LSTM", 8, 3, "Long short-term memory, one layer; operand 7 holds peepholes");
  lstm.attributes.push_back({"input_forget", AttrKind::kInt, false, "1: the forget gate is 1 - input gate; default 0"});
  registry.add(std::move(lstm));
  OpDef gru = def("GRU", 6, 2, "Gated recurrent units, one layer");
  gru.attributes.push_back(
      {"linear_before_reset", AttrKind::kInt, false, "1: the reset gate acts on the hidden gate's product; default 0"});
  registry.add(std::move(gru));
  registry.add(def("RNN", 6, 2, "A plain recurrent layer"));
}

}  // namespace openrknn::ops
