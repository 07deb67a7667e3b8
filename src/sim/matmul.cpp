// Products of two fp16 tensors: each matrix of the second one becomes the filters of a 1x1 convolution over the rows of
// the first, which is how the hardware does it: sums in groups along K (docs/ARITHMETIC.md "fp16 convolution").
#include <fmt/core.h>

#include <functional>

#include "kernels/matmul_plan.hpp"
#include "kernels/npu/conv.hpp"
#include "kernels/transpose.hpp"
#include "sim/pipeline.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

using model::TensorDesc;

class MatMulRunner final : public Runner {
 public:
  MatMulRunner(const model::Program& program, const model::Task& task, MatMulPlan plan)
      : profile_(program.profile), task_(task), plan_(std::move(plan)) {
    shape_.in_h = shape_.out_h = 1;
    shape_.in_w = shape_.out_w = plan_.m;
    shape_.channels = shape_.in_channels = plan_.k;
    shape_.out_channels = plan_.n;
    shape_.kernel_h = shape_.kernel_w = shape_.stride_h = shape_.stride_w = shape_.dilation_h = shape_.dilation_w = 1;
  }

  Status run(const Context& context) override {
    Pieces counted;
    place(context, counted);
    OPENRKNN_TRY(std::byte * base, context.scratch.reserve_tensors(counted.used()));
    Pieces pieces(base);
    const auto [a, b, c, turned] = place(context, pieces);
    read(context, task_.inputs[0], a);
    read(context, task_.inputs[1], b);
    int64_t packed = -1;
    npu::HalfFilters filters;
    for (size_t p = 0; p < plan_.a_batch.size(); ++p) {
      if (plan_.b_batch[p] != packed) {
        packed = plan_.b_batch[p];
        filters = pack(b + packed * plan_.k * plan_.n, turned);
      }
      uint16_t* to = c + static_cast<int64_t>(p) * plan_.m * plan_.n;
      const auto take = [this, to](const npu::AccumulatorBlock<float>& block) {
        HalfPipeline::output(block.pixels, block.channels, block.values, to + block.pixel * plan_.n + block.channel,
                             plan_.n);
      };
      npu::conv_f16(shape_, a + plan_.a_batch[p] * plan_.m * plan_.k, filters, std::ref(take));
    }
    const View& y = context.view(task_.outputs[0]);
    if (!is_plain(y)) from_plain(y, c);
    return {};
  }

 private:
  // Row-major elements, the tensors' own where they lie so, and one matrix of the second operand turned.
  struct Buffers {
    uint16_t *a, *b, *c, *turned;
  };
  Buffers place(const Context& context, Pieces& pieces) const {
    const auto halves = [&](int64_t n) {
      return reinterpret_cast<uint16_t*>(pieces.take(n * int64_t{sizeof(uint16_t)}));
    };
    const auto tensor = [&](int id) {
      const View& v = context.view(id);
      return is_plain(v) ? reinterpret_cast<uint16_t*>(v.base) : halves(context.program.tensor(id).shape.elements());
    };
    return {tensor(task_.inputs[0]), tensor(task_.inputs[1]), tensor(task_.outputs[0]), halves(plan_.k * plan_.n)};
  }

  static void read(const Context& context, int id, uint16_t* values) {
    const View& v = context.view(id);
    if (!is_plain(v)) to_plain(v, values);
  }

  npu::HalfFilters pack(const uint16_t* b, uint16_t* turned) const {
    constexpr int64_t kHalf = sizeof(uint16_t);
    transpose_matrix(b, plan_.n * kHalf, plan_.k, plan_.n, turned, plan_.k * kHalf, kHalf);
    return npu::pack_conv_f16(shape_, profile_.fp16_slice, profile_.fp16_group, turned);
  }

  const NumericsProfile& profile_;
  const model::Task& task_;
  MatMulPlan plan_;
  npu::ConvShape shape_{};
};

}  // namespace

Result<RunnerPtr> make_matmul(const model::Program& program, const model::Task& task) {
  const TensorDesc& a = program.tensor(task.inputs[0]);
  const TensorDesc& b = program.tensor(task.inputs[1]);
  auto plan = matmul_plan(a.shape, b.shape);
  if (!plan.ok()) return plan.error().within(task.name);
  const Shape& made = program.tensor(task.outputs[0]).shape;
  if (!(plan->output == made)) {
    return Error{ErrorCode::kFormat, "cannot run a task", task.name,
                 fmt::format("the product of {} and {} is {}, not {}", a.shape.to_string(), b.shape.to_string(),
                             plan->output.to_string(), made.to_string()),
                 "the file is damaged: build it again"};
  }
  return RunnerPtr(std::make_unique<MatMulRunner>(program, task, std::move(plan).value()));
}

}  // namespace openrknn::sim
