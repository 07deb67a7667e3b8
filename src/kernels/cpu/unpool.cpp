// MaxUnpool and Col2Im: windows back into the tensor that they were taken from.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/spatial_plan.hpp"

namespace openrknn::cpu {
namespace {

Status max_unpool(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& x = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  if (indices.dtype != DType::kInt64) return kernel_error(fmt::format("indices are {}", dtype_name(indices.dtype)));
  OPENRKNN_TRY(const UnpoolPlan plan, unpool_plan(args.attributes, x.shape, indices.shape, ints_operand(args, 2)));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  if (out.bytes() > 0) std::memset(out.data, 0, out.bytes());
  const size_t size = dtype_size(x.dtype);
  const int64_t limit = plan.indexed.elements();
  const auto strides = plan.output.strides();
  const auto* from = static_cast<const std::byte*>(x.data);
  auto* to = static_cast<std::byte*>(out.data);
  const auto positions = indices.as<int64_t>();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0 || positions[i] >= limit)
      return kernel_error(fmt::format("index {} of {} elements", positions[i], limit));
    int64_t rest = positions[i];
    int64_t at = 0;
    for (int axis = plan.indexed.rank() - 1; axis >= 0; --axis) {
      at += rest % plan.indexed[axis] * strides[static_cast<size_t>(axis)];
      rest /= plan.indexed[axis];
    }
    std::memcpy(to + static_cast<size_t>(at) * size, from + i * size, size);
  }
  return {};
}

// Adds the columns of one channel, one row a window position, to its image.
template <typename T>
void add_columns(const Col2ImPlan& plan, const T* rows, T* image) {
  const std::vector<WindowAxis>& axes = plan.axes;
  for (int64_t tap = 0; tap < plan.taps; ++tap) {
    const int64_t kz = tap / (axes[1].kernel * axes[2].kernel);
    const int64_t ky = tap / axes[2].kernel % axes[1].kernel;
    const int64_t kx = tap % axes[2].kernel;
    for (int64_t line = 0; line < axes[0].out * axes[1].out; ++line) {
      const int64_t z = line / axes[1].out * axes[0].stride - axes[0].pad_begin + kz * axes[0].dilation;
      const int64_t y = line % axes[1].out * axes[1].stride - axes[1].pad_begin + ky * axes[1].dilation;
      if (z < 0 || z >= axes[0].in || y < 0 || y >= axes[1].in) continue;
      const T* from = rows + tap * plan.columns + line * axes[2].out;
      T* to = image + (z * axes[1].in + y) * axes[2].in;
      for (int64_t i = 0; i < axes[2].out; ++i) {
        const int64_t x = i * axes[2].stride - axes[2].pad_begin + kx * axes[2].dilation;
        if (x >= 0 && x < axes[2].in) to[x] += from[i];
      }
    }
  }
}

Status col2im(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(const Col2ImPlan plan,
               col2im_plan(args.attributes, x.shape, to_ints(args.inputs[1]), to_ints(args.inputs[2])));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  const int64_t image = plan.output.elements(2, plan.output.rank());
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted columns(x, dtype_of<T>());
    std::fill_n(to, plan.output.elements(), T{0});
    parallel_for(x.shape[0] * plan.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        add_columns(plan, columns.data<T>() + c * plan.taps * plan.columns, to + c * image);
    });
    return {};
  });
}

}  // namespace

void register_unpool(Registry& registry) {
  registry.add("MaxUnpool", max_unpool);
  registry.add("Col2Im", col2im);
}

}  // namespace openrknn::cpu
