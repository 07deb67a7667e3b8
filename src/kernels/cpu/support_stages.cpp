#include "kernels/cpu/support_stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "kernels/broadcast.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/gemm.hpp"
#include "kernels/math.hpp"

namespace openrknn::cpu {
namespace {

constexpr int64_t kStretch = 512;  // elements: some stretches fit the first cache

bool reads_b(const Stage& stage) { return stage.op == Stage::Op::kCombine; }

// For each value the last stage that reads it.
std::vector<size_t> last_readers(std::span<const Stage> stages) {
  std::vector<size_t> last(stages.size() + 1, 0);
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& s = stages[i];
    if (s.a.from == StageOperand::From::kValue) last[s.a.number] = i;
    if (reads_b(s) && s.b.from == StageOperand::From::kValue) last[s.b.number] = i;
  }
  return last;
}

}  // namespace

Stages::Stages(std::span<const Stage> stages) : kernels_(&gemm_kernels()) {
  const std::vector<size_t> last = last_readers(stages);
  std::vector<size_t> buffers(stages.size() + 1, 0);  // by value
  std::array<size_t, kMostStages> free_from{};        // by buffer: the first stage that may write it
  for (size_t i = 0; i < stages.size(); ++i) {
    Planned planned{stages[i], source_of(stages[i].a, buffers), {}, 0};
    if (reads_b(stages[i])) planned.b = source_of(stages[i].b, buffers);
    // A stage may write over what it is the last to read.
    while (free_from[planned.buffer] > i) ++planned.buffer;
    free_from[planned.buffer] = std::max(i, last[i + 1]);
    buffers[i + 1] = planned.buffer;
    stages_.push_back(planned);
  }
}

Stages::Source Stages::source_of(const StageOperand& operand, const std::vector<size_t>& buffers) {
  if (operand.from == StageOperand::From::kValue) {
    if (operand.number == 0) return {Source::Kind::kHead, 0};
    return {Source::Kind::kBuffer, buffers[operand.number]};
  }
  const auto at = std::find(inputs_.begin(), inputs_.end(), operand.number);
  const auto index = static_cast<size_t>(at - inputs_.begin());
  if (at == inputs_.end()) inputs_.push_back(operand.number);
  return {Source::Kind::kStrip, index};
}

void Stages::run(int64_t count, const float* head, const Strip* strips, const Affine* affines, float* to) const {
  alignas(64) std::array<std::array<float, kStretch>, kMostStages> buffers;
  const GemmKernels& kernels = *kernels_;
  for (int64_t first = 0; first < count; first += kStretch) {
    const int64_t n = std::min(kStretch, count - first);
    const auto strip = [&](const Source& source) -> Strip {
      if (source.kind == Source::Kind::kHead) return {head + first, 1};
      if (source.kind == Source::Kind::kBuffer) return {buffers[source.index].data(), 1};
      const Strip& given = strips[source.index];
      return {given.data + first * given.step, given.step};
    };
    const Affine* affine = affines;
    for (const Planned& planned : stages_) {
      const Stage& stage = planned.stage;
      float* result = &planned == &stages_.back() ? to + first : buffers[planned.buffer].data();
      const Strip a = strip(planned.a);
      switch (stage.op) {
        case Stage::Op::kCombine: {
          const Strip b = strip(planned.b);
          kernels.combine(stage.combine, n, a.data, a.step, b.data, b.step, result);
          break;
        }
        case Stage::Op::kActivation:
          apply_activation(stage.activation, a.data, result, n);
          break;
        case Stage::Op::kErf:
          math::erf_array(a.data, result, n);
          break;
        case Stage::Op::kSqrt:
          for (int64_t i = 0; i < n; ++i) result[i] = std::sqrt(a.data[i]);
          break;
        case Stage::Op::kNormalize:
          kernels.scale(n, a.data, affine->factor, affine->term, result);
          ++affine;
          break;
      }
    }
  }
}

namespace {

using Loops = std::vector<BroadcastLoop<kMostStageInputs>>;

struct KeptStages final : Kept {
  Stages stages;
  Loops loops;
};

Result<std::unique_ptr<KeptStages>> prepare_stages(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, args.inputs.size()));
  const Shape& shape = args.outputs[0].shape;
  auto made = std::make_unique<KeptStages>();
  made->stages = Stages(args.stages);
  std::array<const Shape*, kMostStageInputs> shapes{};
  shapes.fill(&shape);
  for (size_t i = 0; i < made->stages.inputs().size(); ++i) {
    const TensorView& in = args.inputs[made->stages.inputs()[i]];
    OPENRKNN_TRY(const Shape both, broadcast(in.shape, shape));
    if (in.dtype != DType::kFloat32 || !(both == shape)) {
      return kernel_error(fmt::format("operand {} is {} {}, expected float32 that broadcasts to {}", i,
                                      dtype_name(in.dtype), in.shape.to_string(), shape.to_string()),
                          ErrorCode::kShape);
    }
    shapes[i] = &in.shape;
  }
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kFloat32, shape));
  made->loops = broadcast_loops<kMostStageInputs>(shape, shapes);
  return made;
}

}  // namespace

Status run_stages(const KernelArgs& args) {
  return with_kept<KeptStages>(args, prepare_stages, [&](const KeptStages& kept) -> Status {
    std::array<const float*, kMostStageInputs> data{};
    const std::vector<size_t>& inputs = kept.stages.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) data[i] = static_cast<const float*>(args.inputs[inputs[i]].data);
    auto* to = static_cast<float*>(args.outputs[0].data);
    using Steps = std::array<int64_t, kMostStageInputs>;
    for_each_row(kept.loops, [&](int64_t at, const Steps& offsets, int64_t n, const Steps& steps) {
      std::array<Strip, kMostStageInputs> strips;
      for (size_t i = 0; i < inputs.size(); ++i) strips[i] = {data[i] + offsets[i], steps[i]};
      kept.stages.run(n, nullptr, strips.data(), nullptr, to + at);
    });
    return {};
  });
}

}  // namespace openrknn::cpu
