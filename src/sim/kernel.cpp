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

using model::TensorDesc;

class KernelRunner final : public Runner {
 public:
  // `widen`: fp16 operands are given as fp32 and fp32 results are rounded once to fp16.
  KernelRunner(const model::Task& task, cpu::Kernel kernel, bool widen) : task_(task), kernel_(kernel), widen_(widen) {}

  Status run(const Context& context) override {
    OPENRKNN_CHECK_OK(lay_out(context));
    for (const Operand& operand : operands_) fill(context, operand);
    if (auto status = kernel_({inputs_, outputs_, task_.attributes}); !status.ok())
      return status.error().within(task_.name);
    for (const Operand& result : results_) finish(context, result);
    return {};
  }

 private:
  // What has another form for the kernel than in its tensor. `raw`: row-major elements, the tensor's own where they lie
  // so; `wide`: fp32, or nullptr.
  struct Operand {
    int id;
    std::byte *raw, *wide;
  };

  bool widened(const TensorDesc& t) const { return widen_ && t.dtype == DType::kFloat16; }

  // The same in every run, until the scratch memory grows.
  Status lay_out(const Context& context) {
    if (memory_ == &context.memory && base_ == context.scratch.tensors.data()) return {};
    Pieces counted;
    place_all(context, counted);
    OPENRKNN_TRY(std::byte * base, context.scratch.reserve_tensors(counted.used()));
    Pieces pieces(base);
    place_all(context, pieces);
    memory_ = &context.memory;
    base_ = base;
    return {};
  }

  // Where operands and results of the kernel lie.
  void place_all(const Context& context, Pieces& pieces) {
    inputs_.clear();
    outputs_.clear();
    operands_.clear();
    results_.clear();
    for (const int id : task_.inputs) {
      const auto kept = constants_.find(id);
      if (kept != constants_.end()) {
        inputs_.push_back(kept->second.view());
      } else {
        const MutableTensorView at = place(context, id, pieces, operands_);
        inputs_.push_back({at.dtype, at.shape, at.data});
      }
    }
    for (const int id : task_.outputs) outputs_.push_back(place(context, id, pieces, results_));
  }

  MutableTensorView place(const Context& context, int id, Pieces& pieces, std::vector<Operand>& others) const {
    if (id == model::kNone) return {};
    const TensorDesc& t = context.program.tensor(id);
    const View& v = context.view(id);
    if (is_plain(v) && !widened(t)) return {t.dtype, t.shape, v.base};
    const int64_t elements = t.shape.elements();
    std::byte* raw = is_plain(v) ? v.base : pieces.take(elements * v.size);
    std::byte* wide = widened(t) ? pieces.take(elements * int64_t{sizeof(float)}) : nullptr;
    others.push_back({id, raw, wide});
    return {widened(t) ? DType::kFloat32 : t.dtype, t.shape, widened(t) ? wide : raw};
  }

  void fill(const Context& context, const Operand& operand) {
    const TensorDesc& t = context.program.tensor(operand.id);
    const View& v = context.view(operand.id);
    if (operand.raw != v.base) to_plain(v, operand.raw);
    if (operand.wide != nullptr) convert_all(t, operand.raw, t.shape.elements(), real_desc(), operand.wide);
    if (t.constant == model::kNone) return;
    const bool wide = operand.wide != nullptr;
    const TensorView made{wide ? DType::kFloat32 : t.dtype, t.shape, wide ? operand.wide : operand.raw};
    constants_.insert_or_assign(operand.id, Tensor::copy_of(made));
    memory_ = nullptr;  // from the next run on it lies there
  }

  static void finish(const Context& context, const Operand& result) {
    const TensorDesc& t = context.program.tensor(result.id);
    if (result.wide != nullptr) convert_all(real_desc(), result.wide, t.shape.elements(), t, result.raw);
    const View& v = context.view(result.id);
    if (result.raw != v.base) from_plain(v, result.raw);
  }

  const model::Task& task_;
  cpu::Kernel kernel_;
  bool widen_;
  std::map<int, Tensor> constants_;  // converted once
  const Memory* memory_ = nullptr;   // that this is laid out for, with the scratch memory at base_
  const void* base_ = nullptr;
  std::vector<TensorView> inputs_;
  std::vector<MutableTensorView> outputs_;
  std::vector<Operand> operands_;
  std::vector<Operand> results_;
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
