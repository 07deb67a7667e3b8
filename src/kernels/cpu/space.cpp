// DepthToSpace, SpaceToDepth, ReverseSequence: fixed rearrangements of raw elements.
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/geometry.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

Status depth_to_space(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const int64_t b = args.attributes.int_or("blocksize", 0);
  OPENRKNN_TRY(const Shape shape, geometry::depth_to_space(in.shape, b));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  const std::string mode = args.attributes.string_or("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return kernel_error(fmt::format("mode '{}' is neither DCR nor CRD", mode));
  const int64_t c = shape[1];
  const int64_t h = in.shape[2];
  const int64_t w = in.shape[3];
  // Steps of a block's row, column and of a channel in the input's channel axis.
  const int64_t channel = mode == "DCR" ? 1 : b * b;
  const int64_t column = mode == "DCR" ? c : 1;
  const std::vector<StridedLoop> loops{{in.shape[0], in.shape[1] * h * w, c * h * b * w * b},
                                       {c, channel * h * w, h * b * w * b},
                                       {h, w, b * w * b},
                                       {b, column * b * h * w, w * b},
                                       {w, 1, b},
                                       {b, column * h * w, 1}};
  copy_strided(in.data, args.outputs[0].data, loops, dtype_size(in.dtype));
  return {};
}

Status space_to_depth(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const int64_t b = args.attributes.int_or("blocksize", 0);
  OPENRKNN_TRY(const Shape shape, geometry::space_to_depth(in.shape, b));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  const int64_t c = in.shape[1];
  const int64_t h = shape[2];
  const int64_t w = shape[3];
  const int64_t row = in.shape[3];
  const std::vector<StridedLoop> loops{{in.shape[0], c * in.shape[2] * row, shape[1] * h * w},
                                       {b, row, b * c * h * w},
                                       {b, 1, c * h * w},
                                       {c, in.shape[2] * row, h * w},
                                       {h, b * row, w},
                                       {w, b, 1}};
  copy_strided(in.data, args.outputs[0].data, loops, dtype_size(in.dtype));
  return {};
}

Status reverse_sequence(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, in.shape));
  const int64_t batch_axis = args.attributes.int_or("batch_axis", 1);
  const int64_t time_axis = args.attributes.int_or("time_axis", 0);
  const auto lengths = to_ints(args.inputs[1]);
  const bool axes_ok = in.shape.rank() >= 2 && (batch_axis == 0 || batch_axis == 1) && time_axis == 1 - batch_axis;
  if (!axes_ok || static_cast<int64_t>(lengths.size()) != in.shape[static_cast<int>(batch_axis)]) {
    return kernel_error("unfit axes or lengths", ErrorCode::kShape);
  }
  const auto strides = in.shape.strides();
  const int64_t batch_step = strides[static_cast<size_t>(batch_axis)];
  const int64_t time_step = strides[static_cast<size_t>(time_axis)];
  const int64_t times = in.shape[static_cast<int>(time_axis)];
  const size_t size = dtype_size(in.dtype);
  const auto row = static_cast<size_t>(in.shape.elements(2, in.shape.rank())) * size;
  for (size_t n = 0; n < lengths.size(); ++n) {
    if (lengths[n] < 0 || lengths[n] > times)
      return kernel_error(fmt::format("length {} for {} steps", lengths[n], times), ErrorCode::kShape);
    for (int64_t t = 0; t < times; ++t) {
      const int64_t source = t < lengths[n] ? lengths[n] - 1 - t : t;
      const int64_t base = static_cast<int64_t>(n) * batch_step;
      if (row == 0) continue;
      std::memcpy(static_cast<std::byte*>(args.outputs[0].data) + static_cast<size_t>(base + t * time_step) * size,
                  static_cast<const std::byte*>(in.data) + static_cast<size_t>(base + source * time_step) * size, row);
    }
  }
  return {};
}

}  // namespace

void register_space(Registry& registry) {
  registry.add("DepthToSpace", depth_to_space);
  registry.add("SpaceToDepth", space_to_depth);
  registry.add("ReverseSequence", reverse_sequence);
}

}  // namespace openrknn::cpu
