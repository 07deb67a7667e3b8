// Operators about shapes, constants and types; mostly folded before a build.
#include <algorithm>
#include <cmath>

#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_shape(const InferInput& in) {
  const int64_t rank = in.shape(0).rank();
  const auto position = [rank](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + rank : p, 0, rank); };
  const int64_t start = position(in.attributes.int_or("start", 0));
  const int64_t end = position(in.attributes.int_or("end", rank));
  return one(DType::kInt64, Shape{std::max<int64_t>(end - start, 0)});
}

Types infer_size(const InferInput&) { return one(DType::kInt64, Shape{}); }

Types infer_constant(const InferInput& in) {
  const Attributes& a = in.attributes;
  if (const auto* v = a.get<Tensor>("value")) return one(v->dtype(), v->shape());
  if (a.has("value_float")) return one(DType::kFloat32, Shape{});
  if (a.has("value_int")) return one(DType::kInt64, Shape{});
  if (const auto* v = a.get<std::vector<float>>("value_floats"))
    return one(DType::kFloat32, Shape{static_cast<int64_t>(v->size())});
  if (const auto* v = a.get<std::vector<int64_t>>("value_ints"))
    return one(DType::kInt64, Shape{static_cast<int64_t>(v->size())});
  return infer_error("value", "the constant has no numeric value");
}

Types infer_constant_of_shape(const InferInput& in) {
  const auto* value = in.attributes.get<Tensor>("value");
  if (value != nullptr && value->elements() != 1) return infer_error("value", "it is no scalar");
  const DType dtype = value == nullptr ? DType::kFloat32 : value->dtype();
  if (!known(in, 0)) return one(dtype, std::nullopt);
  return computed(dtype, Shape::make(*in.ints(0)));
}

// ceil((limit - start) / delta), at least 0; exact for integers.
Result<int64_t> range_length(const InferInput& in) {
  constexpr int64_t kLongest = int64_t{1} << 40;
  for (size_t i = 0; i < 3; ++i) {
    if (in.shape(i).elements() != 1) return infer_error(fmt::format("operand {}", i), "it is no scalar");
  }
  if (is_integer(in.dtype(0))) {
    const int64_t delta = (*in.ints(2))[0];
    int64_t span = 0;
    if (delta == 0 || __builtin_sub_overflow((*in.ints(1))[0], (*in.ints(0))[0], &span))
      return infer_error("delta", "the range has no end");
    if ((span > 0) != (delta > 0) || span == 0) return int64_t{0};
    return span / delta + (span % delta != 0 ? 1 : 0);
  }
  const auto value = [&](size_t i) { return to_doubles(in.constants[i]->view())[0]; };
  const double length = std::ceil((value(1) - value(0)) / value(2));
  if (!(length < static_cast<double>(kLongest))) return infer_error("delta", "the range has no end");
  return std::max<int64_t>(0, static_cast<int64_t>(std::max(length, 0.0)));
}

Types infer_range(const InferInput& in) {
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 1));
  OPENRKNN_CHECK_OK(same_dtype(in, 0, 2));
  for (size_t i = 0; i < 3; ++i) {
    if (!known(in, i)) return one(in.dtype(0), std::nullopt);
  }
  OPENRKNN_TRY(const int64_t length, range_length(in));
  return computed(in.dtype(0), Shape::make(std::vector<int64_t>{length}));
}

Types infer_cast(const InferInput& in) {
  const int64_t number = in.attributes.int_or("to", 0);
  const auto dtype = dtype_from_onnx_number(number);
  if (!dtype || *dtype == DType::kString)
    return infer_error("to", fmt::format("type number {} is not supported", number));
  return one(*dtype, in.shape(0));
}

Types infer_cast_like(const InferInput& in) { return one(in.dtype(1), in.shape(0)); }

Types infer_bit_cast(const InferInput& in) {
  const auto dtype = dtype_from_onnx_number(in.attributes.int_or("to", 0));
  if (!dtype || dtype_size(*dtype) == 0 || dtype_size(*dtype) != dtype_size(in.dtype(0))) {
    return infer_error(
        "attribute 'to'",
        fmt::format("{} has not the size of {}", dtype ? dtype_name(*dtype) : "that type", dtype_name(in.dtype(0))));
  }
  return one(*dtype, in.shape(0));
}

Types infer_eye_like(const InferInput& in) {
  if (in.shape(0).rank() != 2) return infer_error("operand 0", fmt::format("rank {}, not 2", in.shape(0).rank()));
  const auto dtype = dtype_from_onnx_number(in.attributes.int_or("dtype", onnx_number(in.dtype(0))));
  if (!dtype || dtype_size(*dtype) == 0 || (is_float(*dtype) && dtype_size(*dtype) == 1) || *dtype == DType::kInt4 ||
      *dtype == DType::kUInt4)
    return infer_error("attribute 'dtype'", "the type is not supported");
  return one(*dtype, in.shape(0));
}

OpDef def(std::string_view name, int inputs, Infer infer, std::string_view doc, std::vector<AttrSpec> attributes = {}) {
  return {.name = name,
          .op_class = OpClass::kShape,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .attributes = std::move(attributes),
          .infer = infer,
          .doc = doc};
}

}  // namespace

void register_shape(Registry& registry) {
  registry.add(
      def("Shape", 1, infer_shape, "The extents of the operand, from axis `start` to before `end`",
          {{"start", AttrKind::kInt, false, "default 0"}, {"end", AttrKind::kInt, false, "default: the rank"}}));
  registry.add(def("Size", 1, infer_size, "The number of elements"));
  registry.add(def("Constant", 0, infer_constant, "A value given by one attribute",
                   {{"value", AttrKind::kTensor, false, "a tensor"},
                    {"value_float", AttrKind::kFloat, false, "a float32 scalar"},
                    {"value_int", AttrKind::kInt, false, "an int64 scalar"},
                    {"value_floats", AttrKind::kFloats, false, "a float32 vector"},
                    {"value_ints", AttrKind::kInts, false, "an int64 vector"}}));
  registry.add(def("ConstantOfShape", 1, infer_constant_of_shape, "One value repeated over the shape in input 0",
                   {{"value", AttrKind::kTensor, false, "one element; default float32 0"}}));
  registry.add(def("Range", 3, infer_range, "start, start + delta, ... before limit"));
  registry.add(def("Cast", 1, infer_cast, "Converts the elements: float to integer truncates and saturates",
                   {{"to", AttrKind::kInt, true, "number of the type in ONNX's TensorProto.DataType"},
                    {"saturate", AttrKind::kInt, false, "for 8-bit floats; unused"}}));
  registry.add(def("CastLike", 2, infer_cast_like, "Converts the elements to the type of input 1",
                   {{"saturate", AttrKind::kInt, false, "for 8-bit floats; unused"}}));
  registry.add(def("EyeLike", 1, infer_eye_like, "Ones on a diagonal of a matrix as large as the operand, else zeros",
                   {{"dtype", AttrKind::kInt, false, "ONNX number of the result's type, default that of the operand"},
                    {"k", AttrKind::kInt, false, "diagonal, above the main one when positive; default 0"}}));
  registry.add(def("BitCast", 1, infer_bit_cast, "The bits of the elements as another type of the same size",
                   {{"to", AttrKind::kInt, true, "number of the type in ONNX's TensorProto.DataType"}}));
}

}  // namespace openrknn::ops
