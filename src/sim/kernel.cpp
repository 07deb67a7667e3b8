// Tasks that call the float kernel of an operator: on raw elements (moves), in fp32 around fp16 tensors (modelled NPU
// functions), or as a CPU task.
#include <fmt/core.h>

#include <array>
#include <map>

#include "core/tensor.hpp"
#include "kernels/cpu/registry.hpp"
#include "sim/convert.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

using model::Layout;
using model::TensorDesc;

class KernelRunner final : public Runner {
 public:
  // `widen`: fp16 operands are given as fp32 and fp32 results are rounded once to fp16.
  KernelRunner(const model::Task& task, cpu::Kernel kernel, bool widen) : task_(task), kernel_(kernel), widen_(widen) {}

  Status run(const Context& context) override {
    std::vector<Tensor> copies;
    copies.reserve(task_.inputs.size() + task_.outputs.size());
    std::vector<TensorView> inputs;
    std::vector<MutableTensorView> outputs;
    for (const int id : task_.inputs) {
      OPENRKNN_TRY(TensorView view, operand(context, id, copies));
      inputs.push_back(view);
    }
    for (const int id : task_.outputs) {
      OPENRKNN_TRY(MutableTensorView view, result(context, id, copies));
      outputs.push_back(view);
    }
    if (auto status = kernel_({inputs, outputs, task_.attributes}); !status.ok())
      return status.error().within(task_.name);
    for (size_t i = 0; i < outputs.size(); ++i) finish(context, task_.outputs[i], outputs[i]);
    return {};
  }

 private:
  bool widened(const TensorDesc& t) const { return widen_ && t.dtype == DType::kFloat16; }
  static bool in_place(const View& v, const TensorDesc& t) {
    return t.layout == Layout::kPlain && v.blocks == v.cube.c;
  }

  Result<TensorView> operand(const Context& context, int id, std::vector<Tensor>& copies) {
    if (id == model::kNone) return TensorView{};
    const TensorDesc& t = context.program.tensor(id);
    const View& v = context.view(id);
    if (in_place(v, t) && !widened(t)) return TensorView{t.dtype, t.shape, v.base};
    const bool constant = t.constant != model::kNone;
    if (const auto kept = constants_.find(id); kept != constants_.end()) return kept->second.view();
    OPENRKNN_TRY(Tensor raw, Tensor::make(t.dtype, t.shape));
    to_plain(v, raw.mutable_data());
    if (widened(t)) {
      OPENRKNN_TRY(Tensor wide, Tensor::make(DType::kFloat32, t.shape));
      convert_all(t, raw.data(), raw.elements(), real_desc(), wide.mutable_data());
      raw = std::move(wide);
    }
    if (constant) return constants_.insert_or_assign(id, std::move(raw)).first->second.view();
    copies.push_back(std::move(raw));
    return copies.back().view();
  }

  Result<MutableTensorView> result(const Context& context, int id, std::vector<Tensor>& copies) const {
    if (id == model::kNone) return MutableTensorView{};
    const TensorDesc& t = context.program.tensor(id);
    const View& v = context.view(id);
    if (in_place(v, t) && !widened(t)) return MutableTensorView{t.dtype, t.shape, v.base};
    OPENRKNN_TRY(Tensor made, Tensor::make(widened(t) ? DType::kFloat32 : t.dtype, t.shape));
    copies.push_back(std::move(made));
    return copies.back().mutable_view();
  }

  void finish(const Context& context, int id, const MutableTensorView& out) const {
    if (id == model::kNone) return;
    const View& v = context.view(id);
    if (out.data == v.base) return;
    const TensorDesc& t = context.program.tensor(id);
    if (!widened(t)) return from_plain(v, out.data);
    std::vector<uint16_t> halves(static_cast<size_t>(out.elements()));
    convert_all(real_desc(), out.data, out.elements(), t, halves.data());
    from_plain(v, halves.data());
  }

  const model::Task& task_;
  cpu::Kernel kernel_;
  bool widen_;
  std::map<int, Tensor> constants_;  // converted once
};

Result<RunnerPtr> make(const model::Task& task, bool widen) {
  const cpu::Kernel kernel = cpu::kernels().find(task.op);
  if (kernel == nullptr) {
    return Error{ErrorCode::kUnsupported, "cannot run a task", task.name,
                 fmt::format("there is no kernel for operator '{}'", task.op),
                 "use the openrknn version that built the file"};
  }
  return RunnerPtr(std::make_unique<KernelRunner>(task, kernel, widen));
}

class Nothing final : public Runner {
 public:
  Status run(const Context&) override { return {}; }
};

}  // namespace

Result<RunnerPtr> make_move(const model::Program&, const model::Task& task) { return make(task, false); }
Result<RunnerPtr> make_modelled(const model::Program&, const model::Task& task) { return make(task, true); }
Result<RunnerPtr> make_cpu(const model::Program&, const model::Task& task) { return make(task, false); }

Result<RunnerPtr> make_runner(const model::Program& program, const model::Task& task) {
  if (task.in_place) return RunnerPtr(std::make_unique<Nothing>());
  switch (task.kind) {
    case model::TaskKind::kConv:
      return make_conv(program, task);
    case model::TaskKind::kPool:
      return make_pool(program, task);
    case model::TaskKind::kElementwise:
      return make_elementwise(program, task);
    case model::TaskKind::kActivation:
      return make_activation(program, task);
    case model::TaskKind::kConcat:
      return make_concat(program, task);
    case model::TaskKind::kConvert:
      return make_convert(program, task);
    case model::TaskKind::kMove:
      return make_move(program, task);
    case model::TaskKind::kMatMul:
      return make_matmul(program, task);
    case model::TaskKind::kModelled:
      return make_modelled(program, task);
    case model::TaskKind::kCpu:
      return make_cpu(program, task);
  }
  return RunnerPtr(std::make_unique<Nothing>());
}

}  // namespace openrknn::sim
