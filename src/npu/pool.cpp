#include <algorithm>

#include "npu/lowering.hpp"
#include "npu/tiling.hpp"

namespace openrknn::npu {
namespace {

// The window in two dimensions; pads of ceil_mode and auto_pad follow from the shapes.
model::Pool read_pool(const Graph& graph, const Node& node) {
  const Shape& in = *graph.value(node.inputs[0]).shape;
  const Shape& out = *graph.value(node.outputs[0]).shape;
  const int spatial = in.rank() - 2;
  const bool global = node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool";
  model::Pool pool;
  pool.average = node.op == "AveragePool" || node.op == "GlobalAveragePool";
  const std::vector<int64_t> ones(static_cast<size_t>(spatial), 1);
  const auto kernel = node.attributes.ints_or("kernel_shape", ones);
  const auto strides = node.attributes.ints_or("strides", ones);
  const auto pads = node.attributes.ints_or("pads", std::vector<int64_t>(static_cast<size_t>(2 * spatial), 0));
  const std::string auto_pad = node.attributes.string_or("auto_pad", "NOTSET");
  for (int i = 0; i < spatial; ++i) {
    const auto s = static_cast<size_t>(i);
    const size_t axis = spatial == 1 ? 1 : s;
    const int64_t k = global ? in[i + 2] : kernel[s];
    const int64_t stride = global ? 1 : strides[s];
    const int64_t needed = std::max<int64_t>(0, (out[i + 2] - 1) * stride + k - in[i + 2]);
    int64_t low = global || auto_pad == "VALID" ? 0 : pads[s];
    if (auto_pad == "SAME_UPPER") low = needed / 2;
    if (auto_pad == "SAME_LOWER") low = (needed + 1) / 2;
    pool.kernel[axis] = static_cast<int32_t>(k);
    pool.stride[axis] = static_cast<int32_t>(stride);
    pool.pad[axis] = static_cast<int32_t>(low);
    pool.pad[axis + 2] = static_cast<int32_t>(std::max<int64_t>(0, needed - low));
  }
  return pool;
}

}  // namespace

Status lower_pool(Lowering& l, NodeId id) {
  const Node& node = l.graph().node(id);
  const Format format = l.placement(id).format;
  OPENRKNN_TRY(const int x, l.operand(node.inputs[0], format));
  OPENRKNN_TRY(const int y, l.result(node.outputs[0], format));
  model::Task task = l.task_for(id, model::TaskKind::kPool, node.op);
  task.inputs = {x};
  task.outputs = {y};
  task.pool = read_pool(l.graph(), node);
  if (format == Format::kInt8) {
    task.pool->pad_value = task.pool->average ? l.tensor(x).quant->zero_point() : -128;
    if (!(*l.tensor(x).quant == *l.tensor(y).quant))
      return l.fail(id, "a pool keeps its input's scale, but its result has another one");
  }
  task.tiles = tile_pool(l.options(), *task.pool, l.tensor(x), l.tensor(y));
  l.emit(std::move(task));
  return {};
}

}  // namespace openrknn::npu
