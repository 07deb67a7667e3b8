// Comparisons, logic and Where under numpy broadcasting.
#include <type_traits>

#include "kernels/broadcast.hpp"
#include "kernels/cpu/support_promote.hpp"

namespace openrknn::cpu {
namespace {

struct EqualOp {
  template <typename T>
  uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};
struct GreaterOp {
  template <typename T>
  uint8_t operator()(T a, T b) const {
    return a > b ? 1 : 0;
  }
};
struct GreaterOrEqualOp {
  template <typename T>
  uint8_t operator()(T a, T b) const {
    return a >= b ? 1 : 0;
  }
};
struct LessOp {
  template <typename T>
  uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};
struct LessOrEqualOp {
  template <typename T>
  uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};
struct AndOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return a != 0 && b != 0 ? 1 : 0; }
};
struct OrOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return a != 0 || b != 0 ? 1 : 0; }
};
struct XorOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return (a != 0) != (b != 0) ? 1 : 0; }
};

Status check_pair(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  if (args.inputs[0].dtype != args.inputs[1].dtype)
    return kernel_error("operands of different types", ErrorCode::kShape);
  OPENRKNN_TRY(const Shape shape, broadcast(args.inputs[0].shape, args.inputs[1].shape));
  return require_output(args, 0, DType::kBool, shape);
}

template <typename Op>
Status compare(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(check_pair(args));
  const DType dtype = args.inputs[0].dtype;
  const DType compute = dtype == DType::kBool ? DType::kInt64 : compute_type(dtype);
  const MutableTensorView& out = args.outputs[0];
  if (compute == DType::kUndefined) return kernel_error(fmt::format("{} values are not compared", dtype_name(dtype)));
  const Promoted a(args.inputs[0], compute);
  const Promoted b(args.inputs[1], compute);
  return with_compute_type(compute, [&](auto tag) -> Status {
    using T = decltype(tag);
    broadcast_binary(out.shape, a.data<T>(), a.view().shape, b.data<T>(), b.view().shape,
                     static_cast<uint8_t*>(out.data), Op{});
    return {};
  });
}

template <typename Op>
Status logic(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(check_pair(args));
  if (args.inputs[0].dtype != DType::kBool)
    return kernel_error(fmt::format("logic of {} values", dtype_name(args.inputs[0].dtype)));
  const TensorView& a = args.inputs[0];
  const TensorView& b = args.inputs[1];
  broadcast_binary(args.outputs[0].shape, static_cast<const uint8_t*>(a.data), a.shape,
                   static_cast<const uint8_t*>(b.data), b.shape, static_cast<uint8_t*>(args.outputs[0].data), Op{});
  return {};
}

Status logical_not(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_output(args, 0, DType::kBool, args.inputs[0].shape));
  if (args.inputs[0].dtype != DType::kBool)
    return kernel_error(fmt::format("Not of {} values", dtype_name(args.inputs[0].dtype)));
  const auto in = args.inputs[0].as<uint8_t>();
  const auto out = args.outputs[0].as<uint8_t>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] == 0 ? 1 : 0;
  return {};
}

// Chooses raw elements, so any dtype will do.
template <typename T>
void select(const TensorView& condition, const TensorView& a, const TensorView& b, const MutableTensorView& out) {
  const auto* c = static_cast<const uint8_t*>(condition.data);
  const auto* x = static_cast<const T*>(a.data);
  const auto* y = static_cast<const T*>(b.data);
  auto* to = static_cast<T*>(out.data);
  for_each_row(broadcast_loops<3>(out.shape, {&condition.shape, &a.shape, &b.shape}),
               [=](int64_t at, const std::array<int64_t, 3>& o, int64_t n, const std::array<int64_t, 3>& s) {
                 for (int64_t i = 0; i < n; ++i) {
                   to[at + i] = c[o[0] + i * s[0]] != 0 ? x[o[1] + i * s[1]] : y[o[2] + i * s[2]];
                 }
               });
}

Status where(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_movable(args, 1));
  const TensorView& a = args.inputs[1];
  const TensorView& b = args.inputs[2];
  if (args.inputs[0].dtype != DType::kBool || a.dtype != b.dtype)
    return kernel_error("operands of unfit types", ErrorCode::kShape);
  OPENRKNN_TRY(const Shape pair, broadcast(a.shape, b.shape));
  OPENRKNN_TRY(const Shape shape, broadcast(args.inputs[0].shape, pair));
  OPENRKNN_CHECK_OK(require_output(args, 0, a.dtype, shape));
  switch (dtype_size(a.dtype)) {
    case 1:
      select<uint8_t>(args.inputs[0], a, b, args.outputs[0]);
      break;
    case 2:
      select<uint16_t>(args.inputs[0], a, b, args.outputs[0]);
      break;
    case 4:
      select<uint32_t>(args.inputs[0], a, b, args.outputs[0]);
      break;
    default:
      select<uint64_t>(args.inputs[0], a, b, args.outputs[0]);
      break;
  }
  return {};
}

}  // namespace

void register_logic(Registry& registry) {
  registry.add("Equal", compare<EqualOp>);
  registry.add("Greater", compare<GreaterOp>);
  registry.add("GreaterOrEqual", compare<GreaterOrEqualOp>);
  registry.add("Less", compare<LessOp>);
  registry.add("LessOrEqual", compare<LessOrEqualOp>);
  registry.add("And", logic<AndOp>);
  registry.add("Or", logic<OrOp>);
  registry.add("Xor", logic<XorOp>);
  registry.add("Not", logical_not);
  registry.add("Where", where);
}

}  // namespace openrknn::cpu
