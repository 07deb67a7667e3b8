#include <fmt/core.h>

#include <algorithm>

#include "analysis/inspect.hpp"
#include "npu/compile.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"
#include "quant/embedded.hpp"
#include "quant/placement.hpp"
#include "target/target.hpp"

namespace openrknn::analysis {
namespace {

int64_t element_bytes(DType dtype, quant::Format format) {
  if (!is_float(dtype)) return static_cast<int64_t>(dtype_size(dtype));
  switch (format) {
    case quant::Format::kInt8:
      return 1;
    case quant::Format::kFloat16:
      return 2;
    default:
      return static_cast<int64_t>(dtype_size(dtype));
  }
}

int64_t node_bytes(const Graph& graph, const Node& node, quant::Format format) {
  int64_t bytes = 0;
  for (const auto* ids : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *ids) {
      if (!id.valid() || !graph.value(id).shape) continue;
      bytes += graph.value(id).shape->elements() * element_bytes(graph.value(id).dtype, format);
    }
  }
  return bytes;
}

std::string source_name(const Node& node) { return node.source.nodes.empty() ? node.name : node.source.nodes.back(); }

void summarize(toolkit::PreflightReport& report) {
  int64_t npu = 0;
  int64_t macs = 0;
  int64_t npu_macs = 0;
  for (const auto& node : report.nodes) {
    macs += node.macs;
    if (node.engine != "npu") continue;
    ++npu;
    npu_macs += node.macs;
  }
  const double share = macs == 0 ? 100.0 : 100.0 * static_cast<double>(npu_macs) / static_cast<double>(macs);
  report.summary =
      fmt::format("{}: {} of {} nodes and {:.2f} % of the multiply-adds on the NPU; {}", report.target, npu,
                  report.nodes.size(), share,
                  report.buildable ? "can be built"
                                   : fmt::format("cannot be built, {} node(s) in the way", report.unsupported.size()));
}

}  // namespace

Result<toolkit::PreflightReport> preflight(const Graph& source, const std::string& target_name,
                                           const std::string& dtype) {
  OPENRKNN_TRY(const target::Target* target, target::find(target_name));
  Graph graph = source;
  OPENRKNN_CHECK_OK(quant::absorb_quantization(graph, dtype != "fp16"));
  opt::OptimizeOptions options;
  options.capabilities = npu::capabilities(*target);
  options.check_golden = false;
  OPENRKNN_CHECK_OK(opt::optimize(graph, options));
  quant::PlacementOptions placement_options;
  placement_options.dtype = !dtype.empty()                                       ? dtype
                            : target->supports("w8a8") || target->dtypes.empty() ? "w8a8"
                                                                                 : target->dtypes.front();
  OPENRKNN_TRY(const quant::Placement placement, quant::place(graph, *target, placement_options));
  OPENRKNN_TRY(const std::vector<NodeId> order, graph.topological_order());

  toolkit::PreflightReport report;
  report.target = target->name;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const quant::NodePlacement& placed = placement.at(id);
    const std::string& blocked = placed.obstacle;
    toolkit::PreflightNode row;
    row.name = node.name;
    row.op = node.op;
    row.engine = !blocked.empty() ? "none" : placed.engine == quant::Engine::kNpu ? "npu" : "cpu";
    row.reason = placed.reason + (placed.warning.empty() ? "" : "; " + placed.warning);
    row.limit = placed.limit;
    row.macs = ops::macs(graph, id);
    row.bytes = node_bytes(graph, node, placed.format);
    report.nodes.push_back(std::move(row));
    if (!blocked.empty())
      report.unsupported.push_back(fmt::format("{} \"{}\": {}", node.op, source_name(node), blocked));
  }
  report.buildable = report.unsupported.empty();
  summarize(report);
  return report;
}

}  // namespace openrknn::analysis
