// What one task may say: operands of the right number and kind, parameters in the range that the arithmetic is exact
// for.
#include <algorithm>
#include <array>
#include <string_view>

#include "base/checked.hpp"
#include "model/codec.hpp"
#include "model/validate.hpp"

namespace openrknn::model {
namespace {

constexpr int64_t kMaxExtent = 1 << 16;    // of kernels, strides, pads, dilations, groups
constexpr int64_t kMaxProducts = 1 << 17;  // of one int8 accumulator of 32 bits
constexpr int64_t kMaxChannels = 1 << 24;
constexpr int64_t kMaxGroup = 1024;  // of kernels or channels in a weight cube
constexpr int64_t kMaxWeights = int64_t{1} << 40;
constexpr int32_t kMaxShift = 54;  // keeps every shifted product inside 63 bits
constexpr int64_t kTableBytes = 2 * 513 * 2;

class Checker {
 public:
  Checker(const Program& p, const Task& t) : p_(p), t_(t) {}
  Status run();

 private:
  Error fail(std::string why) const { return invalid(t_.name, std::move(why)); }
  bool blob_exists(int id) const { return id >= 0 && static_cast<size_t>(id) < p_.blobs.size(); }
  bool blob_is(int id, int64_t size) const { return blob_exists(id) && p_.blobs[static_cast<size_t>(id)].size == size; }
  const TensorDesc& in(size_t i) const { return p_.tensor(t_.inputs[i]); }
  const TensorDesc& out() const { return p_.tensor(t_.outputs[0]); }
  bool integer() const { return out().dtype == DType::kInt8; }

  Status indices() const;
  Status arity(size_t least, size_t most) const;
  Status numeric(const TensorDesc& t) const;
  Status requant() const;
  Status operands(size_t count) const;
  Status activation(int64_t channels) const;
  Status conv() const;
  Status conv_numbers(const Convolution& c) const;
  Status conv_shapes(const Convolution& c) const;
  Status conv_blobs(const Convolution& c) const;
  Status pool() const;
  Status elementwise() const;
  Status single() const;
  Status concat() const;
  Status convert() const;
  Status matmul() const;

  const Program& p_;
  const Task& t_;
};

bool between(int64_t x, int64_t low, int64_t high) { return x >= low && x <= high; }

Status Checker::indices() const {
  const bool optional = t_.kind == TaskKind::kCpu || t_.kind == TaskKind::kModelled || t_.kind == TaskKind::kMove;
  for (const auto* list : {&t_.inputs, &t_.outputs}) {
    for (const int id : *list) {
      const bool absent = id == kNone && optional;
      if (!absent && (id < 0 || static_cast<size_t>(id) >= p_.tensors.size()))
        return fail(fmt::format("tensor {} does not exist", id));
    }
  }
  if (t_.outputs.empty() || t_.outputs[0] == kNone) return fail("it has no result");
  return {};
}

Status Checker::arity(size_t least, size_t most) const {
  if (t_.inputs.size() >= least && t_.inputs.size() <= most && t_.outputs.size() == 1) return {};
  return fail(fmt::format("{} operands and {} results", t_.inputs.size(), t_.outputs.size()));
}

// A tensor that NPU arithmetic works on: a cube of int8 with one scale, or of halves, of the result's type.
Status Checker::numeric(const TensorDesc& t) const {
  if (t.layout == Layout::kPlain) return fail("tensor '" + t.name + "' is not in a layout of the NPU");
  if (t.dtype != DType::kInt8 && t.dtype != DType::kFloat16)
    return fail(fmt::format("tensor '{}' is {}", t.name, dtype_name(t.dtype)));
  if (t.dtype != out().dtype) return fail("tensor '" + t.name + "' has another element type than the result");
  if (t.dtype == DType::kInt8 && (!t.quant || t.quant->granularity != Granularity::kTensor))
    return fail("int8 tensor '" + t.name + "' has no scale of its own");
  return {};
}

Status Checker::requant() const {
  if (!t_.requant) return fail("it has no requantization constants");
  const Requant& r = *t_.requant;
  const bool shifts = between(r.channel_shift, 0, kMaxShift) && between(r.channel_shift_negative, 0, kMaxShift) &&
                      between(r.shift, 0, kMaxShift);
  if (!shifts || !between(r.multiplier, INT16_MIN, INT16_MAX) || !between(r.zero_point, -128, 127))
    return fail("requantization constants out of range");
  return {};
}

Status Checker::operands(size_t count) const {
  if (t_.operands.size() != count)
    return fail(fmt::format("{} operand constants instead of {}", t_.operands.size(), count));
  for (const Operand& o : t_.operands) {
    if (!between(o.offset, -65536, 65536) || !between(o.shift, 0, kMaxShift))
      return fail("operand constants out of range");
  }
  return {};
}

Status Checker::activation(int64_t channels) const {
  const Activation& a = t_.activation;
  // The machine looks both up, whatever the kind.
  for (const int id : {a.table, a.slopes}) {
    if (id != kNone && !blob_exists(id))
      return fail(fmt::format("its activation names a blob {} that is not there", id));
  }
  if (a.kind == ActivationKind::kTable) {
    const bool scales = between(a.index_scale, INT16_MIN, INT16_MAX) && between(a.index_shift, 0, kMaxShift);
    if (!blob_is(a.table, kTableBytes) || !scales) return fail("the look-up table or its index scale is not usable");
  }
  if (a.kind == ActivationKind::kFunction) {
    constexpr std::array kFunctions = {"Sigmoid", "Tanh", "HardSigmoid", "Elu", "Softplus"};
    const bool known = std::find(kFunctions.begin(), kFunctions.end(), a.function) != kFunctions.end();
    if (integer() || !known) return fail(fmt::format("'{}' is no function of a float16 task", a.function));
  }
  if (a.kind == ActivationKind::kPRelu) {
    const int64_t size = integer() ? 2 : 4;
    const bool count = a.slope_count == 1 || a.slope_count == channels;
    if (!count || !blob_is(a.slopes, a.slope_count * size) || !between(a.slope_shift, 0, kMaxShift))
      return fail("the slopes do not match the channels");
  }
  if (a.kind == ActivationKind::kClamp && a.min > a.max) return fail("the clamp's limits are crossed");
  return {};
}

Status Checker::conv_numbers(const Convolution& c) const {
  for (const int i : {0, 1}) {
    const auto axis = static_cast<size_t>(i);
    if (!between(c.kernel[axis], 1, kMaxExtent) || !between(c.stride[axis], 1, kMaxExtent) ||
        !between(c.dilation[axis], 1, kMaxExtent))
      return fail("kernel, stride or dilation out of range");
  }
  if (std::any_of(c.pad.begin(), c.pad.end(), [](int32_t x) { return !between(x, 0, kMaxExtent); }))
    return fail("padding out of range");
  if (!between(c.kernel_group, 1, kMaxGroup) || !between(c.channel_group, 1, kMaxGroup))
    return fail("weight groups out of range");
  if (!between(c.in_channels, 1, kMaxChannels) || !between(c.out_channels, 1, kMaxChannels))
    return fail("channels out of range");
  if (integer() ? !between(c.pad_value, -128, 127) : c.pad_value != 0)
    return fail(fmt::format("padding value {}", c.pad_value));
  const int64_t inputs = c.mode == ConvMode::kDepthwise ? 1 : c.in_channels;
  const auto products = checked_mul(int64_t{c.kernel[0]} * c.kernel[1], inputs);
  const auto weights = products ? checked_mul(*products, c.out_channels) : std::nullopt;
  if (!weights || *weights > kMaxWeights) return fail("its weights are larger than any memory");
  if (integer() && *products >= kMaxProducts)
    return fail(fmt::format("more than {} products for one result: the accumulator could overflow", kMaxProducts - 1));
  return {};
}

// The extent of the result along one axis, as far as ONNX lets it be chosen.
bool extent_fits(const Convolution& c, size_t axis, int64_t in, int64_t out) {
  const int64_t pads = int64_t{c.pad[axis]} + c.pad[axis + 2];
  const int64_t span = (int64_t{c.kernel[axis]} - 1) * c.dilation[axis] + 1;
  const int64_t stride = c.stride[axis];
  if (!c.transposed) return in + pads >= span && out == (in + pads - span) / stride + 1;
  const int64_t least = (in - 1) * stride + span - pads;
  return out >= 1 && out >= least && out < least + std::max<int64_t>(stride, c.dilation[axis]);
}

Status Checker::conv_shapes(const Convolution& c) const {
  const Cube& x = in(0).cube;
  const Cube& y = out().cube;
  if (x.n != y.n || x.c != c.in_channels || y.c != c.out_channels)
    return fail("its channels or images are not those of its tensors");
  if (c.mode == ConvMode::kDepthwise && c.in_channels != c.out_channels)
    return fail("a depthwise convolution with different channel counts");
  if (!extent_fits(c, 0, x.h, y.h) || !extent_fits(c, 1, x.w, y.w)) {
    return fail(fmt::format("a result of {}x{} does not follow from {}x{}", y.h, y.w, x.h, x.w));
  }
  if (t_.inputs.size() == 2 && !(in(1).cube == y)) return fail("the residual has another shape than the result");
  return {};
}

Status Checker::conv_blobs(const Convolution& c) const {
  if (c.weight_dtype != out().dtype) return fail(fmt::format("weights are {}", dtype_name(c.weight_dtype)));
  if (!blob_is(c.weights, packed_weight_bytes(c)))
    return fail(fmt::format("the weights do not have the {} bytes of their cube", packed_weight_bytes(c)));
  if (!integer()) {
    const bool bias = c.params == kNone || blob_is(c.params, int64_t{4} * c.out_channels);
    return bias ? Status{} : fail("the bias does not match the channels");
  }
  if (!blob_is(c.params, packed_param_bytes(p_.profile, c.out_channels)))
    return fail("the parameter stream does not match the channels");
  const auto counts = c.weight_quant ? c.weight_quant->zero_points.size() : 0;
  if (counts != 1 && counts != static_cast<size_t>(c.out_channels))
    return fail("the weights' scales do not match the channels");
  return {};
}

Status Checker::conv() const {
  OPENRKNN_CHECK_OK(arity(1, 2));
  if (!t_.conv) return fail("it has no convolution");
  for (size_t i = 0; i < t_.inputs.size(); ++i) OPENRKNN_CHECK_OK(numeric(in(i)));
  OPENRKNN_CHECK_OK(numeric(out()));
  OPENRKNN_CHECK_OK(conv_numbers(*t_.conv));
  OPENRKNN_CHECK_OK(conv_shapes(*t_.conv));
  OPENRKNN_CHECK_OK(conv_blobs(*t_.conv));
  OPENRKNN_CHECK_OK(activation(t_.conv->out_channels));
  if (!integer()) return {};
  OPENRKNN_CHECK_OK(requant());
  return operands(t_.inputs.size() - 1);
}

Status Checker::pool() const {
  OPENRKNN_CHECK_OK(arity(1, 1));
  if (!t_.pool) return fail("it has no pooling window");
  OPENRKNN_CHECK_OK(numeric(in(0)));
  OPENRKNN_CHECK_OK(numeric(out()));
  const Pool& k = *t_.pool;
  const Cube& x = in(0).cube;
  const Cube& y = out().cube;
  if (x.n != y.n || x.c != y.c) return fail("it changes the channels or images");
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    const bool small = between(k.kernel[axis], 1, 256) && between(k.stride[axis], 1, kMaxExtent) &&
                       between(k.pad[axis], 0, kMaxExtent) && between(k.pad[axis + 2], 0, kMaxExtent);
    if (!small) return fail("kernel, stride or padding out of range");
    const int64_t room = (axis == 0 ? x.h : x.w) + k.pad[axis] + k.pad[axis + 2] - k.kernel[axis];
    if (room < 0 || (axis == 0 ? y.h : y.w) > room / k.stride[axis] + 1)
      return fail("its windows leave the padded input");
  }
  if (integer() && (in(0).quant->scales != out().quant->scales || in(0).quant->zero_points != out().quant->zero_points))
    return fail("pooling cannot change the scale");
  if (!between(k.pad_value, -128, 127)) return fail(fmt::format("padding value {}", k.pad_value));
  return {};
}

Status Checker::elementwise() const {
  constexpr std::array<std::string_view, 6> kOps{"Add", "Sub", "Mul", "Div", "Max", "Min"};
  OPENRKNN_CHECK_OK(arity(2, 2));
  if (std::find(kOps.begin(), kOps.end(), t_.op) == kOps.end()) return fail("unknown elementwise operator " + t_.op);
  OPENRKNN_CHECK_OK(numeric(out()));
  const Cube& y = out().cube;
  for (size_t i = 0; i < 2; ++i) {
    OPENRKNN_CHECK_OK(numeric(in(i)));
    const Cube& x = in(i).cube;
    const auto fits = [](int64_t a, int64_t b) { return a == b || a == 1; };
    if (!fits(x.n, y.n) || !fits(x.c, y.c) || !fits(x.h, y.h) || !fits(x.w, y.w))
      return fail("operand '" + in(i).name + "' does not broadcast to the result");
  }
  OPENRKNN_CHECK_OK(activation(y.c));
  if (!integer()) return {};
  if (t_.op == "Div") return fail("Div has no integer form");
  OPENRKNN_CHECK_OK(requant());
  return operands(2);
}

Status Checker::single() const {
  OPENRKNN_CHECK_OK(arity(1, 1));
  OPENRKNN_CHECK_OK(numeric(in(0)));
  OPENRKNN_CHECK_OK(numeric(out()));
  if (!(in(0).cube == out().cube)) return fail("operand and result differ in shape");
  OPENRKNN_CHECK_OK(activation(out().cube.c));
  return integer() ? requant() : Status{};
}

Status Checker::concat() const {
  OPENRKNN_CHECK_OK(arity(1, SIZE_MAX));
  const Shape& y = out().shape;
  auto axis = normalize_axis(t_.attributes.int_or("axis", 1), y.rank());
  if (!axis.ok()) return fail(axis.error().message());
  int64_t total = 0;
  for (size_t i = 0; i < t_.inputs.size(); ++i) {
    const Shape& x = in(i).shape;
    bool fits = x.rank() == y.rank() && in(i).dtype == out().dtype;
    for (int d = 0; fits && d < y.rank(); ++d) fits = d == *axis || x[d] == y[d];
    if (!fits) return fail("operand '" + in(i).name + "' does not fit the result");
    total += x[*axis];
  }
  if (total != y[*axis]) return fail("the operands do not fill the result");
  if (!integer() || t_.in_place) return {};
  if (!out().quant) return fail("the result has no scale");
  return t_.operands.empty() ? Status{} : operands(t_.inputs.size());
}

Status Checker::convert() const {
  OPENRKNN_CHECK_OK(arity(1, 1));
  if (in(0).shape.elements() != out().shape.elements()) return fail("it changes the number of elements");
  for (const TensorDesc* t : {&in(0), &out()}) {
    if (t->quant && t->quant->granularity != Granularity::kTensor)
      return fail("tensor '" + t->name + "' has more than one scale");
    if (!is_float(t->dtype) && !is_integer(t->dtype) && t->dtype != DType::kBool)
      return fail("tensor '" + t->name + "' is not a number");
  }
  return {};
}

// Extents are checked by who computes the product.
Status Checker::matmul() const {
  OPENRKNN_CHECK_OK(arity(2, 2));
  for (const TensorDesc* t : {&in(0), &in(1), &out()}) {
    if (t->dtype != DType::kFloat16) return fail(fmt::format("tensor '{}' is {}", t->name, dtype_name(t->dtype)));
  }
  return {};
}

Status Checker::run() {
  OPENRKNN_CHECK_OK(indices());
  if (t_.macs < 0) return fail("a negative count of operations");
  switch (t_.kind) {
    case TaskKind::kConv:
      return conv();
    case TaskKind::kPool:
      return pool();
    case TaskKind::kElementwise:
      return elementwise();
    case TaskKind::kActivation:
      return single();
    case TaskKind::kConcat:
      return concat();
    case TaskKind::kConvert:
      return convert();
    case TaskKind::kMatMul:
      return matmul();
    case TaskKind::kMove:
    case TaskKind::kModelled:
      break;
    case TaskKind::kCpu:
      for (const auto* list : {&t_.inputs, &t_.outputs}) {
        for (const int id : *list) {
          if (id != kNone && p_.tensor(id).layout != Layout::kPlain)
            return fail("CPU operand '" + p_.tensor(id).name + "' is not row-major");
        }
      }
      break;
  }
  return t_.op.empty() ? fail("it names no operator") : Status{};
}

}  // namespace

Status validate_task(const Program& program, const Task& task) { return Checker(program, task).run(); }

}  // namespace openrknn::model
