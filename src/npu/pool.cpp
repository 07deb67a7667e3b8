#include <algorithm>

#include "kernels/window.hpp"
#include "npu/lowering.hpp"
#include "npu/tiling.hpp"

namespace openrknn::npu {
namespace {

// The window in two dimensions; the end pads are those that the result's extent needs (ceil_mode).
Result<model::Pool> read_pool(const Graph& graph, const Node& node) {
  const Shape& in = *graph.value(node.inputs[0]).shape;
  const Shape& out = *graph.value(node.outputs[0]).shape;
  const auto extents = in.dims().subspan(2);
  const bool global = node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool";
  model::Pool pool;
  pool.average = node.op == "AveragePool" || node.op == "GlobalAveragePool";
  const auto kernel = node.attributes.ints_or("kernel_shape", {});
  OPENRKNN_TRY(const auto axes,
               window_axes(node.attributes, extents, global ? extents : std::span<const int64_t>(kernel)));
  const size_t first = axes.size() == 1 ? 1 : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t to = first + i;
    const int64_t last = out[static_cast<int>(i) + 2] - 1;
    const int64_t needed = last * axes[i].stride + axes[i].kernel - axes[i].in - axes[i].pad_begin;
    pool.kernel[to] = static_cast<int32_t>(axes[i].kernel);
    pool.stride[to] = static_cast<int32_t>(axes[i].stride);
    pool.pad[to] = static_cast<int32_t>(axes[i].pad_begin);
    pool.pad[to + 2] = static_cast<int32_t>(std::max<int64_t>(0, needed));
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
  OPENRKNN_TRY(task.pool, read_pool(l.graph(), node));
  if (format == Format::kInt8) {
    task.pool->pad_value = task.pool->average ? l.tensor(x).quant->zero_point() : -128;
    if (!(*l.tensor(x).quant == *l.tensor(y).quant))
      return l.fail(id, "a pool keeps its input's scale, but its result has another one");
  }
  task.tiles = tile_pool(l.target(), l.options(), *task.pool, l.tensor(x), l.tensor(y));
  l.emit(std::move(task));
  return {};
}

}  // namespace openrknn::npu
