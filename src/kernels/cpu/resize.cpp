#include "kernels/resize.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/strided.hpp"

namespace openrknn::cpu {
namespace {

// Results [first, end). Taps are added in their order; those behind the first that weigh nothing are left out.
void interpolate_line(const float* from, float* to, const ResizeTaps& taps, int64_t first, int64_t end) {
  const int64_t* index = taps.indices.data() + first * taps.taps;
  const float* weight = taps.weights.data() + first * taps.taps;
  if (taps.taps == 2) {
    for (int64_t i = first; i < end; ++i, index += 2, weight += 2) {
      const float sum = weight[0] * from[index[0]];
      to[i] = weight[1] != 0.0F ? sum + weight[1] * from[index[1]] : sum;
    }
    return;
  }
  for (int64_t i = first; i < end; ++i, index += taps.taps, weight += taps.taps) {
    float sum = weight[0] * from[index[0]];
    for (int64_t k = 1; k < taps.taps; ++k) {
      if (weight[k] != 0.0F) sum += weight[k] * from[index[k]];
    }
    to[i] = sum;
  }
}

// Linear interpolation to twice the extent: between two input positions lie two results, everywhere with the weights of
// results 1 and 2.
bool doubles(const ResizeTaps& taps, const ResizeAxis& axis) {
  if (taps.taps != 2 || axis.in < 2 || axis.out != 2 * axis.in) return false;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t x = 1; x + 1 < axis.out; ++x) {
    const int64_t like = 2 - x % 2;
    const bool expected = taps.indices[at(2 * x)] == (x - 1) / 2 && taps.indices[at(2 * x + 1)] == (x + 1) / 2;
    if (!expected || taps.weights[at(2 * x)] != taps.weights[at(2 * like)] || taps.weights[at(2 * x + 1)] == 0.0F ||
        taps.weights[at(2 * x + 1)] != taps.weights[at(2 * like + 1)])
      return false;
  }
  return true;
}

void interpolate_doubled_line(const float* from, float* to, const ResizeTaps& taps, const ResizeAxis& axis) {
  const float a0 = taps.weights[2], a1 = taps.weights[3], b0 = taps.weights[4], b1 = taps.weights[5];
  interpolate_line(from, to, taps, 0, 1);
  float* pairs = to + 1;
  for (int64_t i = 0; i + 1 < axis.in; ++i) {
    pairs[2 * i] = a0 * from[i] + a1 * from[i + 1];
    pairs[2 * i + 1] = b0 * from[i] + b1 * from[i + 1];
  }
  interpolate_line(from, to, taps, axis.out - 1, axis.out);
}

// The same for rows of `inner` elements: result row r.
void interpolate_row(const float* from, float* to, const ResizeTaps& taps, int64_t r, int64_t inner) {
  const int64_t* index = taps.indices.data() + r * taps.taps;
  const float* weight = taps.weights.data() + r * taps.taps;
  if (taps.taps == 2 && weight[1] != 0.0F) {
    const float* first = from + index[0] * inner;
    const float* second = from + index[1] * inner;
    const float w0 = weight[0];
    const float w1 = weight[1];
    for (int64_t i = 0; i < inner; ++i) to[i] = w0 * first[i] + w1 * second[i];
    return;
  }
  for (int64_t k = 0; k < taps.taps; ++k) {
    const float w = weight[k];
    const float* row = from + index[k] * inner;
    if (k == 0) {
      for (int64_t i = 0; i < inner; ++i) to[i] = w * row[i];
    } else if (w != 0.0F) {
      for (int64_t i = 0; i < inner; ++i) to[i] += w * row[i];
    }
  }
}

// One axis at a time: `from` is outer x in x inner, `to` outer x out x inner.
void interpolate_axis(const float* from, float* to, int64_t outer, const ResizeAxis& axis, int64_t inner,
                      const ResizeTaps& taps) {
  const auto grain = [&](int64_t values) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(values, 1)); };
  if (inner == 1 && doubles(taps, axis)) {
    return parallel_for(outer, grain(axis.out * taps.taps), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) interpolate_doubled_line(from + o * axis.in, to + o * axis.out, taps, axis);
    });
  }
  if (inner == 1) {
    return parallel_for(outer, grain(axis.out * taps.taps), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) interpolate_line(from + o * axis.in, to + o * axis.out, taps, 0, axis.out);
    });
  }
  parallel_for(outer * axis.out, grain(inner * taps.taps), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      interpolate_row(from + r / axis.out * axis.in * inner, to + r * inner, taps, r % axis.out, inner);
  });
}

Status interpolate(const TensorView& in, const ResizeSettings& settings, const ResizePlan& plan, float* out) {
  Shape shape = in.shape;
  int last = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (plan.axes[static_cast<size_t>(axis)].changes()) last = axis;
  }
  if (last < 0) {
    if (in.elements() > 0) std::memcpy(out, in.data, static_cast<size_t>(in.elements()) * sizeof(float));
    return {};
  }
  Tensor current;
  const float* from = in.as<float>().data();
  for (int axis = 0; axis <= last; ++axis) {
    const ResizeAxis& a = plan.axes[static_cast<size_t>(axis)];
    if (!a.changes()) continue;
    const int64_t outer = shape.elements(0, axis);
    const int64_t inner = shape.elements(axis + 1, shape.rank());
    shape.set(axis, a.out);
    Tensor next;
    if (axis < last) {
      OPENRKNN_TRY(next, Tensor::uninitialized(DType::kFloat32, shape));
    }
    float* to = axis < last ? next.mutable_as<float>().data() : out;
    interpolate_axis(from, to, outer, a, inner, interpolation_taps(settings, a));
    current = std::move(next);
    from = to;
  }
  return {};
}

// tf_crop_and_resize: positions outside the input on any axis get the extrapolation value.
void fill_outside(const ResizeSettings& settings, const ResizePlan& plan, float* out) {
  if (settings.coordinate != CoordinateMode::kCropAndResize) return;
  for (int axis = 0; axis < plan.shape.rank(); ++axis) {
    const auto outside = outside_positions(settings, plan.axes[static_cast<size_t>(axis)]);
    const int64_t inner = plan.shape.elements(axis + 1, plan.shape.rank());
    for (int64_t r = 0; r < plan.shape.elements(0, axis + 1); ++r) {
      if (outside[static_cast<size_t>(r % plan.shape[axis])])
        std::fill_n(out + r * inner, inner, settings.extrapolation);
    }
  }
}

Result<ResizePlan> plan_of(const KernelArgs& args, const ResizeSettings& settings) {
  const auto floats = [&](size_t i) {
    std::vector<float> made;
    if (!args.has_input(i)) return made;
    for (const double v : to_doubles(args.inputs[i])) made.push_back(static_cast<float>(v));
    return made;
  };
  return plan_resize(args.inputs[0].shape, settings, floats(1), floats(2),
                     ints_operand(args, 3).value_or(std::vector<int64_t>{}));
}

Status resize(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& in = args.inputs[0];
  const MutableTensorView& out = args.outputs[0];
  OPENRKNN_TRY(const ResizeSettings settings, resize_settings(args.attributes));
  OPENRKNN_TRY(const ResizePlan plan, plan_of(args, settings));
  OPENRKNN_CHECK_OK(require_output(args, 0, in.dtype, plan.shape));
  if (out.elements() == 0) return {};
  const bool extrapolates = settings.coordinate == CoordinateMode::kCropAndResize;
  if (settings.mode == ResizeMode::kNearest && (!extrapolates || in.dtype == DType::kFloat32)) {
    std::vector<std::vector<int64_t>> tables;
    for (const ResizeAxis& axis : plan.axes) tables.push_back(nearest_table(settings, axis));
    copy_by_tables(in.data, in.shape, tables, out.data, dtype_size(in.dtype));
    if (extrapolates) fill_outside(settings, plan, out.as<float>().data());
    return {};
  }
  const bool narrow = is_float(in.dtype) && dtype_size(in.dtype) < 2;
  if (narrow || in.dtype == DType::kBool || settings.mode == ResizeMode::kNearest) {
    return kernel_error(fmt::format("interpolation of {} values", dtype_name(in.dtype)));
  }
  if (in.dtype == DType::kFloat32) {
    OPENRKNN_CHECK_OK(interpolate(in, settings, plan, out.as<float>().data()));
    fill_outside(settings, plan, out.as<float>().data());
    return {};
  }
  // Integers are cut towards zero, as onnxruntime does it.
  const Tensor wide = cast(in, DType::kFloat32);
  Tensor result(DType::kFloat32, plan.shape);
  OPENRKNN_CHECK_OK(interpolate(wide.view(), settings, plan, result.mutable_as<float>().data()));
  fill_outside(settings, plan, result.mutable_as<float>().data());
  const Tensor back = cast(result.view(), in.dtype);
  std::memcpy(out.data, back.data(), out.bytes());
  return {};
}

}  // namespace

void register_resize(Registry& registry) { registry.add("Resize", resize); }

}  // namespace openrknn::cpu
