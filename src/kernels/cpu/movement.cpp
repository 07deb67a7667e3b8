// Concat, Split, Slice, Pad, Transpose, Tile, Expand, CenterCropPad: elements of any dtype, moved by size.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/support_kernel.hpp"
#include "kernels/geometry.hpp"
#include "kernels/spatial_plan.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

using geometry::Ints;

const std::byte* at(const TensorView& view, int64_t element) {
  return static_cast<const std::byte*>(view.data) + element * static_cast<int64_t>(dtype_size(view.dtype));
}
std::byte* at(const MutableTensorView& view, int64_t element) {
  return static_cast<std::byte*>(view.data) + element * static_cast<int64_t>(dtype_size(view.dtype));
}

// Rows of `extent` elements out of, or into, rows of another length: the two halves of Concat and Split.
void copy_rows(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row, int64_t rows, int64_t extent,
               size_t size) {
  copy_strided(from, to, {{rows, from_row, to_row}, {extent, 1, 1}}, size);
}

Status concat(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, args.inputs.size()));
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  std::vector<Shape> shapes;
  for (const TensorView& in : args.inputs) {
    if (in.dtype != args.inputs[0].dtype) return kernel_error("operands of different types", ErrorCode::kShape);
    shapes.push_back(in.shape);
  }
  OPENRKNN_TRY(const Shape shape, geometry::concat(shapes, args.attributes.int_or("axis", 0)));
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, shape));
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", 0), shape.rank()));
  const int64_t rows = shape.elements(0, axis);
  const int64_t row = shape.elements(axis, shape.rank());
  int64_t offset = 0;
  for (const TensorView& in : args.inputs) {
    const int64_t part = in.shape.elements(axis, shape.rank());
    copy_rows(at(in, 0), part, at(args.outputs[0], offset), row, rows, part, dtype_size(in.dtype));
    offset += part;
  }
  return {};
}

Status split(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1, 0));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", 0), in.shape.rank()));
  OPENRKNN_TRY(const Ints sizes, geometry::split(in.shape, axis, ints_operand(args, 1), args.outputs.size()));
  const int64_t inner = in.shape.elements(axis + 1, in.shape.rank());
  const int64_t row = in.shape.elements(axis, in.shape.rank());
  int64_t offset = 0;
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    const int64_t part = sizes[i] * inner;
    if (args.has_output(i)) {
      Shape shape = in.shape;
      shape.set(axis, sizes[i]);
      OPENRKNN_CHECK_OK(require_output(args, i, in.dtype, shape));
      copy_rows(at(in, offset), row, at(args.outputs[i], 0), part, in.shape.elements(0, axis), part,
                dtype_size(in.dtype));
    }
    offset += part;
  }
  return {};
}

Status slice(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const auto plan, geometry::slice(in.shape, *ints_operand(args, 1), *ints_operand(args, 2),
                                                ints_operand(args, 3), ints_operand(args, 4)));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, plan.shape));
  const auto in_strides = in.shape.strides();
  const auto out_strides = plan.shape.strides();
  std::vector<StridedLoop> loops;
  int64_t offset = 0;
  for (int i = 0; i < plan.shape.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    offset += plan.starts[k] * in_strides[k];
    loops.push_back({plan.shape[i], plan.steps[k] * in_strides[k], out_strides[k]});
  }
  if (plan.shape.elements() > 0) copy_strided(at(in, offset), at(args.outputs[0], 0), loops, dtype_size(in.dtype));
  return {};
}

// The part of the input that stays (negative pads cut), placed inside the result.
void place_interior(const TensorView& in, const geometry::PadPlan& plan, const MutableTensorView& out) {
  const auto in_strides = in.shape.strides();
  const auto out_strides = plan.shape.strides();
  std::vector<StridedLoop> loops;
  int64_t from = 0;
  int64_t to = 0;
  for (int i = 0; i < in.shape.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t cut_front = std::max<int64_t>(-plan.before[k], 0);
    const int64_t cut_back = std::max<int64_t>(-plan.after[k], 0);
    from += cut_front * in_strides[k];
    to += std::max<int64_t>(plan.before[k], 0) * out_strides[k];
    loops.push_back({std::max<int64_t>(in.shape[i] - cut_front - cut_back, 0), in_strides[k], out_strides[k]});
  }
  for (const StridedLoop& l : loops) {
    if (l.extent == 0) return;
  }
  copy_strided(at(in, from), at(out, to), loops, dtype_size(in.dtype));
}

// Where every output position of every axis takes its element from, for the modes that repeat the input.
Result<std::vector<Ints>> pad_tables(const Shape& in, const geometry::PadPlan& plan, geometry::PadMode mode) {
  std::vector<Ints> tables;
  for (int i = 0; i < in.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t cut_front = std::max<int64_t>(-plan.before[k], 0);
    const int64_t left = in[i] - cut_front - std::max<int64_t>(-plan.after[k], 0);
    if (left <= 0 && plan.shape[i] > 0)
      return kernel_error(fmt::format("axis {} has no element to repeat", i), ErrorCode::kShape);
    Ints table(static_cast<size_t>(plan.shape[i]));
    for (size_t j = 0; j < table.size(); ++j) {
      const int64_t before = std::max<int64_t>(plan.before[k], 0);
      table[j] = cut_front + geometry::pad_source(mode, static_cast<int64_t>(j), before, left);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

Status pad(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const auto mode, geometry::pad_mode(args.attributes.string_or("mode", "constant")));
  OPENRKNN_TRY(const auto plan, geometry::pad(in.shape, *ints_operand(args, 1), ints_operand(args, 3)));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, plan.shape));
  if (out.elements() == 0) return {};
  if (mode != geometry::PadMode::kConstant) {
    OPENRKNN_TRY(const auto tables, pad_tables(in.shape, plan, mode));
    copy_by_tables(in.data, in.shape, tables, out.data, dtype_size(in.dtype));
    return {};
  }
  const uint64_t zero = 0;  // all bits 0 is the value 0 in every dtype
  const void* value = &zero;
  if (args.has_input(2)) {
    if (args.inputs[2].dtype != in.dtype || args.inputs[2].elements() != 1) {
      return kernel_error(fmt::format("the padding value is {} {}, one {} expected", dtype_name(args.inputs[2].dtype),
                                      args.inputs[2].shape.to_string(), dtype_name(in.dtype)),
                          ErrorCode::kShape);
    }
    value = args.inputs[2].data;
  }
  fill_elements(out.data, out.elements(), value, dtype_size(in.dtype));
  place_interior(in, plan, out);
  return {};
}

Status transpose(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const auto perm, geometry::permutation(in.shape.rank(), args.attributes.ints_or("perm", {})));
  const Shape shape = geometry::permuted(in.shape, perm);
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  const auto in_strides = in.shape.strides();
  const auto out_strides = shape.strides();
  std::vector<StridedLoop> loops;
  for (size_t i = 0; i < perm.size(); ++i) {
    loops.push_back({shape[static_cast<int>(i)], in_strides[static_cast<size_t>(perm[i])], out_strides[i]});
  }
  copy_strided(in.data, args.outputs[0].data, loops, dtype_size(in.dtype));
  return {};
}

Status tile(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const Ints repeats = *ints_operand(args, 1);
  OPENRKNN_TRY(const Shape shape, geometry::tile(in.shape, repeats));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  const auto in_strides = in.shape.strides();
  const auto out_strides = shape.strides();
  std::vector<StridedLoop> loops;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    loops.push_back({repeats[k], 0, in.shape[i] * out_strides[k]});
    loops.push_back({in.shape[i], in_strides[k], out_strides[k]});
  }
  copy_strided(in.data, args.outputs[0].data, loops, dtype_size(in.dtype));
  return {};
}

Status expand(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const Shape shape, geometry::expand(in.shape, *ints_operand(args, 1)));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, shape));
  const auto in_strides = in.shape.strides();
  const auto out_strides = shape.strides();
  const int lead = shape.rank() - in.shape.rank();
  std::vector<StridedLoop> loops;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < lead || in.shape[i - lead] == 1;
    loops.push_back(
        {shape[i], repeated ? 0 : in_strides[static_cast<size_t>(i - lead)], out_strides[static_cast<size_t>(i)]});
  }
  copy_strided(in.data, args.outputs[0].data, loops, dtype_size(in.dtype));
  return {};
}

Status center_crop_pad(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  OPENRKNN_TRY(const CenterPlan plan, center_plan(args.attributes, in.shape, *ints_operand(args, 1)));
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, plan.output));
  if (out.elements() == 0) return {};
  std::memset(out.data, 0, out.bytes());  // all bits 0 is the value 0 in every dtype
  if (in.elements() == 0) return {};
  const auto in_strides = in.shape.strides();
  const auto out_strides = plan.output.strides();
  std::vector<StridedLoop> loops;
  int64_t from = 0;
  int64_t to = 0;
  for (size_t k = 0; k < plan.cut.size(); ++k) {
    const int axis = static_cast<int>(k);
    from += plan.cut[k] * in_strides[k];
    to += plan.before[k] * out_strides[k];
    loops.push_back({std::min(in.shape[axis], plan.output[axis]), in_strides[k], out_strides[k]});
  }
  copy_strided(at(in, from), at(out, to), loops, dtype_size(in.dtype));
  return {};
}

}  // namespace

void register_movement(Registry& registry) {
  registry.add("Concat", concat);
  registry.add("Split", split);
  registry.add("Slice", slice);
  registry.add("Pad", pad);
  registry.add("Transpose", transpose);
  registry.add("Tile", tile);
  registry.add("Expand", expand);
  registry.add("CenterCropPad", center_crop_pad);
}

}  // namespace openrknn::cpu
