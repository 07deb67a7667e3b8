#include "npu/lowering.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/half.hpp"
#include "model/codec.hpp"
#include "npu/buffers.hpp"
#include "npu/order.hpp"
#include "quant/rules.hpp"
#include "quant/weights.hpp"

namespace openrknn::npu {
namespace {

constexpr int64_t kBlobAlignment = 64;

std::string_view format_suffix(Format f) {
  switch (f) {
    case Format::kInt8:
      return "__int8";
    case Format::kFloat16:
      return "__float16";
    default:
      return "__float32";
  }
}

DType stored_dtype(const Value& v, Format f) {
  switch (f) {
    case Format::kInt8:
      return DType::kInt8;
    case Format::kFloat16:
      return DType::kFloat16;
    case Format::kFloat32:
      return DType::kFloat32;
    case Format::kRaw:
      return v.dtype;
  }
  return v.dtype;
}

bool on_npu(Format f) { return f == Format::kInt8 || f == Format::kFloat16; }

// Leading dims of 1, up to `rank`.
Shape padded_shape(const Shape& s, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(0, rank - s.rank())), 1);
  dims.insert(dims.end(), s.dims().begin(), s.dims().end());
  return Shape::make(dims).value();
}

}  // namespace

Lowering::Lowering(const Graph& graph, const quant::Placement& placement, const target::Target& target,
                   const CompileOptions& options)
    : graph_(graph), placement_(placement), target_(target), options_(options) {
  program_.target = target.name;
  program_.profile = target.numerics;
  program_.dtype = options.dtype;
  program_.cbuf_bytes = target.cbuf.bytes();
  program_.cbuf_bank_bytes = target.cbuf.bank_bytes;
  program_.custom_string = options.custom_string;
  program_.provenance = options.provenance;
}

const target::Lanes& Lowering::lanes(DType dtype) const { return target_.lanes.at(std::string(dtype_name(dtype))); }

Error Lowering::fail(NodeId id, std::string why) const {
  const Node& n = graph_.node(id);
  return Error{ErrorCode::kUnsupported, "cannot compile the node",
               fmt::format("{}: node '{}' ({})", graph_.source_file, n.name, n.op), std::move(why), ""};
}

int Lowering::new_tensor(model::TensorDesc desc) {
  program_.tensors.push_back(std::move(desc));
  inside_.emplace_back();
  return static_cast<int>(program_.tensors.size()) - 1;
}

model::TensorDesc Lowering::describe(ValueId id, Format format) const {
  const Value& v = graph_.value(id);
  model::TensorDesc t;
  t.name = v.name;
  t.aliases = v.aliases;
  t.dtype = stored_dtype(v, format);
  t.shape = *v.shape;
  t.layout = model::Layout::kPlain;
  if (on_npu(format)) {
    if (t.shape.rank() <= 4) t.layout = model::Layout::kNC1HWC2;
    t.cube = model::cube_of(t.shape);
    t.c2 = lanes(t.dtype).c2;
  }
  if (format == Format::kInt8) t.quant = v.quant;
  return t;
}

int Lowering::add_blob(std::span<const std::byte> bytes) {
  const auto offset = static_cast<int64_t>(weights_.size());
  weights_.insert(weights_.end(), bytes.begin(), bytes.end());
  weights_.resize(static_cast<size_t>(align_up(static_cast<int64_t>(weights_.size()), kBlobAlignment)));
  program_.blobs.push_back({offset, static_cast<int64_t>(bytes.size())});
  return static_cast<int>(program_.blobs.size()) - 1;
}

int Lowering::plain_constant(const std::string& name, const Tensor& data) {
  model::TensorDesc t;
  t.name = name;
  t.dtype = data.dtype();
  t.shape = data.shape();
  t.layout = model::Layout::kPlain;
  t.constant = add_blob({static_cast<const std::byte*>(data.data()), data.bytes()});
  return new_tensor(std::move(t));
}

Result<int> Lowering::constant_operand(ValueId id, Format format, int rank) {
  const Tensor& data = *graph_.constant(id);
  if (!on_npu(format)) return plain_constant(graph_.value(id).name, data);
  model::TensorDesc t = describe(id, format);
  t.name += format_suffix(format);
  t.shape = padded_shape(data.shape(), rank);
  t.cube = model::cube_of(t.shape);
  Tensor raw(t.dtype, t.shape);
  const auto values = to_doubles(data.view());
  if (format == Format::kInt8) {
    if (!t.quant) return Error{ErrorCode::kInternal, "a constant has no quantization parameters", t.name, "", ""};
    auto q = raw.mutable_as<int8_t>();
    for (size_t i = 0; i < values.size(); ++i)
      q[i] = quant::quantize_value(static_cast<float>(values[i]), t.quant->scale(), t.quant->zero_point());
  } else {
    auto h = raw.mutable_as<uint16_t>();
    // What is finite stays so: the -1e9 of a mask as minus infinity would make NaN of a row that it fills.
    constexpr double kHalfMax = 65504;
    for (size_t i = 0; i < values.size(); ++i) {
      const double v = std::isfinite(values[i]) ? std::clamp(values[i], -kHalfMax, kHalfMax) : values[i];
      h[i] = float_to_half(static_cast<float>(v));
    }
  }
  if (t.layout == model::Layout::kPlain) {
    t.constant = add_blob({static_cast<const std::byte*>(raw.data()), raw.bytes()});
    return new_tensor(std::move(t));
  }
  std::vector<std::byte> packed(static_cast<size_t>(model::set_dense_strides(t, target_.plane_pixel_align, 1)));
  model::pack_tensor(t, raw.data(), packed.data());
  t.constant = add_blob(packed);
  return new_tensor(std::move(t));
}

Result<int> Lowering::operand(ValueId id, Format format, int rank) {
  const auto found = stored_.find({id, format});
  if (found != stored_.end() &&
      (rank == 0 || tensor(found->second).shape.rank() == rank || graph_.constant(id) == nullptr))
    return found->second;
  if (graph_.constant(id) != nullptr) {
    OPENRKNN_TRY(const int made, constant_operand(id, format, rank));
    stored_[{id, format}] = made;
    return made;
  }
  const auto origin = made_in_.find(id);
  if (origin == made_in_.end())
    return Error{ErrorCode::kInternal, "a value is read before it exists", graph_.value(id).name, "", ""};
  const int from = stored_.at({id, origin->second});
  if (format == Format::kRaw) return from;
  if (format == Format::kInt8 && !graph_.value(id).quant) {
    return Error{ErrorCode::kInternal, "a value has no quantization parameters", graph_.value(id).name,
                 "it is read in int8", ""};
  }
  return convert(from, id, format);
}

int Lowering::convert(int from, ValueId value, Format format) {
  model::TensorDesc desc = describe(value, format);
  desc.name += format_suffix(format);
  desc.aliases.clear();
  const int to = new_tensor(std::move(desc));
  model::Task task;
  task.name = tensor(to).name;
  task.kind = model::TaskKind::kConvert;
  task.op = "exDataConvert";
  const bool npu = tensor(from).layout != model::Layout::kPlain && tensor(to).layout != model::Layout::kPlain;
  task.engine = npu ? model::Engine::kNpu : model::Engine::kCpu;
  if (!npu) task.reason = "conversion beside a CPU task (npu.dtypes)";
  task.inputs = {from};
  task.outputs = {to};
  emit(std::move(task));
  stored_[{value, format}] = to;
  return to;
}

Result<int> Lowering::result(ValueId id, Format format) {
  if (format == Format::kInt8 && !graph_.value(id).quant) {
    return Error{ErrorCode::kInternal, "a value has no quantization parameters", graph_.value(id).name,
                 "its producer computes in int8", ""};
  }
  const int t = new_tensor(describe(id, format));
  stored_[{id, format}] = t;
  made_in_[id] = format;
  return t;
}

bool Lowering::place_inside(int child, int parent, int64_t planes) {
  const model::TensorDesc& c = tensor(child);
  const model::TensorDesc& p = tensor(parent);
  if (is_view(child) || c.constant != model::kNone || p.constant != model::kNone || c.layout != p.layout ||
      c.dtype != p.dtype)
    return false;
  for (int r = parent; r != model::kNone; r = inside_[static_cast<size_t>(r)].parent) {
    if (r == child) return false;
  }
  if (c.layout == model::Layout::kNC1HWC2) {
    const bool same_plane = c.c2 == p.c2 && c.cube.n == p.cube.n && c.cube.h == p.cube.h && c.cube.w == p.cube.w;
    if (!same_plane || planes + ceil_div(c.cube.c, c.c2) > ceil_div(p.cube.c, p.c2)) return false;
  } else if (planes != 0 || c.layout != model::Layout::kPlain || c.shape.elements() != p.shape.elements()) {
    return false;
  }
  inside_[static_cast<size_t>(child)] = {parent, planes};
  return true;
}

int Lowering::channel_view(int parent, int64_t first_channel, int64_t channels, const std::string& name) {
  model::TensorDesc t = tensor(parent);
  t.name = name;
  t.aliases.clear();
  t.cube.c = channels;
  if (t.shape.rank() >= 2) t.shape.set(1, channels);
  const int view = new_tensor(std::move(t));
  inside_[static_cast<size_t>(view)] = {parent, first_channel / tensor(parent).c2};
  return view;
}

model::Task Lowering::task_for(NodeId id, model::TaskKind kind, std::string op) const {
  const Node& node = graph_.node(id);
  const quant::NodePlacement& p = placement_.at(id);
  model::Task task;
  for (const ValueId v : node.outputs) {
    if (v.valid()) {
      task.name = graph_.value(v).name;
      break;
    }
  }
  task.kind = kind;
  task.op = std::move(op);
  task.engine = p.engine == quant::Engine::kNpu ? model::Engine::kNpu : model::Engine::kCpu;
  task.source = node.source.nodes.empty() ? std::vector<std::string>{node.name} : node.source.nodes;
  if (p.engine == quant::Engine::kCpu) task.reason = p.limit + ": " + p.reason;
  return task;
}

// Pictures of 1, 3 or 4 channels that only convolutions read stay packed as the application gives them
// (sdk.md 8.2).
bool Lowering::packed_input(ValueId id, Format format) const {
  const Value& v = graph_.value(id);
  if (v.shape->rank() != 4 || v.users.empty() || graph_.is_output(id)) return false;
  const int64_t c = (*v.shape)[1];
  if (c != 1 && c != 3 && c != 4) return false;
  return std::all_of(v.users.begin(), v.users.end(), [&](const Use& use) {
    const Node& n = graph_.node(use.node);
    const quant::NodePlacement& p = placement_.at(use.node);
    return n.op == "Conv" && use.slot == 0 && n.attributes.int_or("group", 1) == 1 && p.format == format &&
           p.engine == quant::Engine::kNpu;
  });
}

Status Lowering::add_inputs() {
  for (const ValueId id : graph_.inputs()) {
    const Value& v = graph_.value(id);
    Format format = is_float(v.dtype) ? Format::kFloat32 : Format::kRaw;
    if (is_float(v.dtype)) {
      for (const Use& use : v.users) {
        const Format f = placement_.at(use.node).format;
        if (f == Format::kInt8 || (f == Format::kFloat16 && format != Format::kInt8)) format = f;
      }
    }
    const auto asked = placement_.inputs.find(id);
    if (asked != placement_.inputs.end() && is_float(v.dtype)) format = asked->second;
    model::TensorDesc t = describe(id, format);
    if (on_npu(format) && packed_input(id, format)) t.layout = model::Layout::kNHWC;
    model::Port port;
    port.name = v.name;
    port.source_dtype = v.dtype;
    port.source_shape = *v.shape;
    port.tensor = new_tensor(std::move(t));
    const auto norm = options_.normalization.find(v.name);
    if (norm != options_.normalization.end()) {
      port.mean = norm->second.mean;
      port.std_dev = norm->second.std_dev;
      const auto count = static_cast<int64_t>(std::max(port.mean.size(), port.std_dev.size()));
      const int last = v.shape->rank() - 1;
      port.channel_axis = v.shape->rank() > 1 && (*v.shape)[1] != count && (*v.shape)[last] == count
                              ? last
                              : std::min(1, std::max(last, 0));
    }
    stored_[{id, format}] = port.tensor;
    made_in_[id] = format;
    program_.inputs.push_back(std::move(port));
  }
  return {};
}

Status Lowering::add_outputs() {
  for (const ValueId id : graph_.outputs()) {
    const Value& v = graph_.value(id);
    model::Port port;
    port.name = v.name;
    port.source_dtype = v.dtype;
    port.source_shape = *v.shape;
    if (graph_.constant(id) != nullptr) {  // a result that does not depend on the inputs is copied out
      OPENRKNN_TRY(const int from, operand(id, Format::kRaw));
      model::TensorDesc t = tensor(from);
      t.name = v.name;
      t.constant = model::kNone;
      port.tensor = new_tensor(std::move(t));
      model::Task task;
      task.name = v.name;
      task.kind = model::TaskKind::kMove;
      task.op = "Identity";
      task.engine = model::Engine::kCpu;
      task.reason = "npu.ops: a constant result";
      task.inputs = {from};
      task.outputs = {port.tensor};
      emit(std::move(task));
    } else {
      port.tensor = stored_.at({id, made_in_.at(id)});
    }
    program_.outputs.push_back(std::move(port));
  }
  return {};
}

Status Lowering::lower_node(NodeId id) {
  const Node& node = graph_.node(id);
  const quant::NodePlacement& p = placement_.at(id);
  // Moving raw elements needs no float numbers, whichever engine does it.
  const bool moves = on_npu(p.format) && quant::is_movement(node.op);
  if (p.engine == quant::Engine::kCpu && !moves) return lower_cpu(*this, id);
  if (node.op == "Conv" || node.op == "ConvTranspose") return lower_conv(*this, id);
  if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "GlobalMaxPool" || node.op == "GlobalAveragePool")
    return lower_pool(*this, id);
  if (node.op == "Concat") return lower_concat(*this, id);
  if (quant::is_movement(node.op)) return lower_movement(*this, id);
  if (node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div" || node.op == "Max" ||
      node.op == "Min")
    return lower_elementwise(*this, id);
  if (quant::is_npu_activation(node.op)) return lower_activation(*this, id);
  if (node.op == "MatMul") return lower_matmul(*this, id);
  return lower_modelled(*this, id);
}

Result<model::Program> Lowering::run() {
  OPENRKNN_CHECK_OK(add_inputs());
  OPENRKNN_TRY(const auto order, order_nodes(graph_, options_.compute_order));
  for (const NodeId id : order) OPENRKNN_CHECK_OK(lower_node(id));
  OPENRKNN_CHECK_OK(add_outputs());
  OPENRKNN_CHECK_OK(BufferPlanner(*this).run());
  program_.weights = std::make_shared<const model::WeightStore>(std::move(weights_));
  OPENRKNN_CHECK_OK(model::validate(program_));
  return std::move(program_);
}

}  // namespace openrknn::npu
