// Products of two fp16 tensors: each matrix of the second one becomes the filters of a 1x1 convolution over the rows of
// the first, which is how the hardware does it: sums in groups along K (docs/ARITHMETIC.md "fp16 convolution").
#include <fmt/core.h>

#include "kernels/matmul_plan.hpp"
#include "kernels/npu/conv.hpp"
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
    const std::vector<uint16_t> a = plain(context, task_.inputs[0]);
    const std::vector<uint16_t> b = plain(context, task_.inputs[1]);
    std::vector<uint16_t> c(static_cast<size_t>(plan_.output.elements()));
    int64_t packed = -1;
    npu::HalfFilters filters;
    for (size_t p = 0; p < plan_.a_batch.size(); ++p) {
      if (plan_.b_batch[p] != packed) {
        packed = plan_.b_batch[p];
        filters = pack(b.data() + packed * plan_.k * plan_.n);
      }
      uint16_t* to = c.data() + static_cast<int64_t>(p) * plan_.m * plan_.n;
      npu::conv_f16(shape_, a.data() + plan_.a_batch[p] * plan_.m * plan_.k, filters,
                    [&](const npu::AccumulatorBlock<float>& block) {
                      HalfPipeline::output(block.pixels, block.channels, block.values,
                                           to + block.pixel * plan_.n + block.channel, plan_.n);
                    });
    }
    from_plain(context.view(task_.outputs[0]), c.data());
    return {};
  }

 private:
  static std::vector<uint16_t> plain(const Context& context, int id) {
    std::vector<uint16_t> values(static_cast<size_t>(context.program.tensor(id).shape.elements()));
    to_plain(context.view(id), values.data());
    return values;
  }

  npu::HalfFilters pack(const uint16_t* b) const {
    std::vector<uint16_t> turned(static_cast<size_t>(plan_.k * plan_.n));
    for (int64_t l = 0; l < plan_.k; ++l) {
      for (int64_t j = 0; j < plan_.n; ++j) turned[static_cast<size_t>(j * plan_.k + l)] = b[l * plan_.n + j];
    }
    return npu::pack_conv_f16(shape_, profile_.fp16_slice, profile_.fp16_group, turned.data());
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
