// Gather and scatter by index: elements of any dtype, moved by size; indices may be negative and are checked.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/half.hpp"
#include "base/parallel.hpp"
#include "kernels/cpu/support_kernel.hpp"
#include "kernels/geometry.hpp"

namespace openrknn::cpu {
namespace {

using geometry::Ints;

// Indices made non-negative; every one inside [0, extent).
Result<Ints> indices_of(const TensorView& view, int64_t extent) {
  if (!is_integer(view.dtype))
    return kernel_error(fmt::format("indices of type {}", dtype_name(view.dtype)), ErrorCode::kShape);
  Ints indices = to_ints(view);
  for (int64_t& i : indices) {
    if (i < -extent || i >= extent) {
      return kernel_error(fmt::format("index {} outside an axis of {}", i, extent), ErrorCode::kInvalidArgument);
    }
    if (i < 0) i += extent;
  }
  return indices;
}

const std::byte* bytes_of(const TensorView& view) { return static_cast<const std::byte*>(view.data); }
std::byte* bytes_of(const MutableTensorView& view) { return static_cast<std::byte*>(view.data); }

Status gather(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& data = args.inputs[0];
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", 0), data.shape.rank()));
  OPENRKNN_TRY(const Shape shape, geometry::gather(data.shape, args.inputs[1].shape, axis));
  OPENRKNN_CHECK_OK(require_output(args, 0, data.dtype, shape));
  OPENRKNN_TRY(const Ints indices, indices_of(args.inputs[1], data.shape[axis]));
  const auto row = static_cast<size_t>(data.shape.elements(axis + 1, data.shape.rank())) * dtype_size(data.dtype);
  const int64_t outer = data.shape.elements(0, axis);
  if (row == 0) return {};
  const auto count = static_cast<int64_t>(indices.size());
  const auto grain = static_cast<int64_t>(1 + 65536 / row);
  parallel_for(outer * count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i / count * data.shape[axis] + indices[static_cast<size_t>(i % count)];
      std::memcpy(bytes_of(args.outputs[0]) + static_cast<size_t>(i) * row,
                  bytes_of(data) + static_cast<size_t>(from) * row, row);
    }
  });
  return {};
}

// Calls f(position in indices, element of data) for GatherElements and ScatterElements.
template <typename F>
Status each_indexed(const Shape& data, const TensorView& indices, int axis, F&& f) {
  OPENRKNN_CHECK_OK(geometry::check_elementwise_indices(data, indices.shape, axis));
  OPENRKNN_TRY(const Ints positions, indices_of(indices, data[axis]));
  const auto strides = data.strides();
  for (size_t n = 0; n < positions.size(); ++n) {
    auto rest = static_cast<int64_t>(n);
    int64_t offset = 0;
    for (int i = data.rank() - 1; i >= 0; --i) {
      const int64_t at = rest % indices.shape[i];
      rest /= indices.shape[i];
      offset += (i == axis ? positions[n] : at) * strides[static_cast<size_t>(i)];
    }
    f(n, static_cast<size_t>(offset));
  }
  return {};
}

Status gather_elements(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& data = args.inputs[0];
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", 0), data.shape.rank()));
  OPENRKNN_CHECK_OK(require_output(args, 0, data.dtype, args.inputs[1].shape));
  const size_t size = dtype_size(data.dtype);
  return each_indexed(data.shape, args.inputs[1], axis, [&](size_t n, size_t from) {
    std::memcpy(bytes_of(args.outputs[0]) + n * size, bytes_of(data) + from * size, size);
  });
}

// The element of `data` where each index tuple points, `batch` leading axes running along.
Result<Ints> tuple_offsets(const Shape& data, const TensorView& indices, int batch) {
  if (!is_integer(indices.dtype))
    return kernel_error(fmt::format("indices of type {}", dtype_name(indices.dtype)), ErrorCode::kShape);
  const int64_t tuple = indices.shape.dim(-1);
  const Ints flat = to_ints(indices);
  const auto strides = data.strides();
  const int64_t tuples = indices.shape.elements(0, indices.shape.rank() - 1);
  const int64_t batches = indices.shape.elements(0, batch);
  const int64_t batch_step = data.elements(batch, data.rank());
  Ints offsets;
  offsets.reserve(static_cast<size_t>(tuples));
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = t / (tuples / batches) * batch_step;
    for (int64_t k = 0; k < tuple; ++k) {
      const auto axis = static_cast<int>(batch + k);
      int64_t i = flat[static_cast<size_t>(t * tuple + k)];
      if (i < -data[axis] || i >= data[axis]) {
        return kernel_error(fmt::format("index {} outside axis {} of {}", i, axis, data.to_string()),
                            ErrorCode::kInvalidArgument);
      }
      if (i < 0) i += data[axis];
      offset += i * strides[static_cast<size_t>(axis)];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

Status gather_nd(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  OPENRKNN_TRY(const Shape shape,
               geometry::gather_nd(data.shape, indices.shape, args.attributes.int_or("batch_dims", 0)));
  OPENRKNN_CHECK_OK(require_output(args, 0, data.dtype, shape));
  const auto batch = static_cast<int>(args.attributes.int_or("batch_dims", 0));
  OPENRKNN_TRY(const Ints offsets, tuple_offsets(data.shape, indices, batch));
  const size_t size = dtype_size(data.dtype);
  const int used = batch + static_cast<int>(indices.shape.dim(-1));
  const auto row = static_cast<size_t>(data.shape.elements(used, data.shape.rank())) * size;
  if (row == 0) return {};
  for (size_t n = 0; n < offsets.size(); ++n) {
    std::memcpy(bytes_of(args.outputs[0]) + n * row, bytes_of(data) + static_cast<size_t>(offsets[n]) * size, row);
  }
  return {};
}

// How an update meets the element that is there; integers wrap.
template <typename T>
T combined(std::string_view reduction, T old, T update) {
  if (reduction == "max") return std::max(old, update);
  if (reduction == "min") return std::min(old, update);
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(old);
    const auto b = static_cast<uint64_t>(update);
    return static_cast<T>(reduction == "add" ? a + b : a * b);
  } else {
    return reduction == "add" ? old + update : old * update;
  }
}

template <typename T>
void combine_bytes(std::string_view reduction, std::byte* to, const std::byte* update) {
  T a{};
  T b{};
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, update, sizeof b);
  a = combined(reduction, a, b);
  std::memcpy(to, &a, sizeof a);
}

// Halves meet as floats.
template <float (*kDecode)(uint16_t), uint16_t (*kEncode)(float)>
void combine_halves(std::string_view reduction, std::byte* to, const std::byte* update) {
  uint16_t a = 0;
  uint16_t b = 0;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, update, sizeof b);
  a = kEncode(combined(reduction, kDecode(a), kDecode(b)));
  std::memcpy(to, &a, sizeof a);
}

using Combine = void (*)(std::string_view, std::byte*, const std::byte*);

// nullptr: the type has no sums.
Combine combine_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return combine_bytes<float>;
    case DType::kFloat64:
      return combine_bytes<double>;
    case DType::kFloat16:
      return combine_halves<half_to_float, float_to_half>;
    case DType::kBFloat16:
      return combine_halves<bfloat16_to_float, float_to_bfloat16>;
    case DType::kInt8:
      return combine_bytes<int8_t>;
    case DType::kInt16:
      return combine_bytes<int16_t>;
    case DType::kInt32:
      return combine_bytes<int32_t>;
    case DType::kInt64:
      return combine_bytes<int64_t>;
    case DType::kUInt8:
      return combine_bytes<uint8_t>;
    case DType::kUInt16:
      return combine_bytes<uint16_t>;
    case DType::kUInt32:
      return combine_bytes<uint32_t>;
    case DType::kUInt64:
      return combine_bytes<uint64_t>;
    default:
      return nullptr;
  }
}

struct Combiner {
  std::string reduction;
  Combine combine = nullptr;  // nullptr: plain copy
  size_t size = 1;            // of an element

  void write(std::byte* to, const std::byte* update, size_t count) const {
    if (combine == nullptr) {
      std::memcpy(to, update, count * size);
      return;
    }
    for (size_t i = 0; i < count; ++i) combine(reduction, to + i * size, update + i * size);
  }
};

Result<Combiner> combiner_for(const KernelArgs& args) {
  const DType dtype = args.inputs[0].dtype;
  Combiner made{args.attributes.string_or("reduction", "none"), nullptr, dtype_size(dtype)};
  if (made.reduction == "none") return made;
  if (made.reduction != "add" && made.reduction != "mul" && made.reduction != "max" && made.reduction != "min") {
    return kernel_error(fmt::format("reduction '{}'", made.reduction));
  }
  made.combine = combine_of(dtype);
  if (made.combine == nullptr)
    return kernel_error(fmt::format("reduction '{}' of {} values", made.reduction, dtype_name(dtype)));
  return made;
}

Status prepare_scatter(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_movable(args));
  if (args.inputs[2].dtype != args.inputs[0].dtype)
    return kernel_error("updates of another type than data", ErrorCode::kShape);
  OPENRKNN_CHECK_OK(require_output(args, 0, args.inputs[0].dtype, args.inputs[0].shape));
  if (args.outputs[0].bytes() > 0) std::memcpy(args.outputs[0].data, args.inputs[0].data, args.outputs[0].bytes());
  return {};
}

Status scatter_nd(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(prepare_scatter(args));
  const TensorView& data = args.inputs[0];
  OPENRKNN_CHECK_OK(geometry::check_scatter_nd(data.shape, args.inputs[1].shape, args.inputs[2].shape));
  OPENRKNN_TRY(const Combiner combiner, combiner_for(args));
  OPENRKNN_TRY(const Ints offsets, tuple_offsets(data.shape, args.inputs[1], 0));
  const size_t size = dtype_size(data.dtype);
  const auto used = static_cast<int>(args.inputs[1].shape.dim(-1));
  const auto row = static_cast<size_t>(data.shape.elements(used, data.shape.rank()));
  for (size_t n = 0; n < offsets.size(); ++n) {
    combiner.write(bytes_of(args.outputs[0]) + static_cast<size_t>(offsets[n]) * size,
                   bytes_of(args.inputs[2]) + n * row * size, row);
  }
  return {};
}

Status scatter_elements(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(prepare_scatter(args));
  const TensorView& data = args.inputs[0];
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", 0), data.shape.rank()));
  if (!(args.inputs[1].shape == args.inputs[2].shape))
    return kernel_error("updates and indices differ in shape", ErrorCode::kShape);
  OPENRKNN_TRY(const Combiner combiner, combiner_for(args));
  const size_t size = dtype_size(data.dtype);
  return each_indexed(data.shape, args.inputs[1], axis, [&](size_t n, size_t at) {
    combiner.write(bytes_of(args.outputs[0]) + at * size, bytes_of(args.inputs[2]) + n * size, 1);
  });
}

// Operand 1 written into a copy of operand 0 along an axis, in every sample from its own position on.
Status tensor_scatter(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_movable(args));
  const TensorView& cache = args.inputs[0];
  const TensorView& update = args.inputs[1];
  OPENRKNN_CHECK_OK(require_output(args, 0, cache.dtype, cache.shape));
  if (update.dtype != cache.dtype) return kernel_error("operands of different types", ErrorCode::kShape);
  OPENRKNN_TRY(const int axis, normalize_axis(args.attributes.int_or("axis", -2), cache.shape.rank()));
  OPENRKNN_CHECK_OK(geometry::check_cache_update(cache.shape, update.shape, axis));
  const std::string mode = args.attributes.string_or("mode", "linear");
  if (mode != "linear" && mode != "circular") return kernel_error(fmt::format("mode '{}'", mode));
  Ints starts(static_cast<size_t>(cache.shape[0]), 0);
  if (args.has_input(2)) starts = to_ints(args.inputs[2]);
  if (starts.size() != static_cast<size_t>(cache.shape[0])) return kernel_error("unfit indices", ErrorCode::kShape);
  const int64_t extent = cache.shape[axis];
  const int64_t length = update.shape[axis];
  for (const int64_t start : starts) {
    const int64_t last = mode == "circular" ? extent - 1 : extent - length;
    if (length > 0 && (start < 0 || start > last))
      return kernel_error(fmt::format("{} positions from {} on in an axis of {}", length, start, extent));
  }
  if (cache.bytes() > 0) std::memcpy(args.outputs[0].data, cache.data, cache.bytes());
  if (update.elements() == 0) return {};
  const auto row = static_cast<size_t>(cache.shape.elements(axis + 1, cache.shape.rank())) * dtype_size(cache.dtype);
  const int64_t rows = cache.shape.elements(0, axis);
  for (int64_t i = 0; i < rows * length; ++i) {
    const int64_t outer = i / length;
    const int64_t start = starts[static_cast<size_t>(outer / (rows / cache.shape[0]))];
    const int64_t to = outer * extent + (start + i % length) % extent;
    std::memcpy(bytes_of(args.outputs[0]) + static_cast<size_t>(to) * row,
                bytes_of(update) + static_cast<size_t>(i) * row, row);
  }
  return {};
}

}  // namespace

void register_gather(Registry& registry) {
  registry.add("Gather", gather);
  registry.add("GatherElements", gather_elements);
  registry.add("GatherND", gather_nd);
  registry.add("ScatterND", scatter_nd);
  registry.add("ScatterElements", scatter_elements);
  registry.add("TensorScatter", tensor_scatter);
}

}  // namespace openrknn::cpu
