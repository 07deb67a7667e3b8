#include "npu/compile.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "npu/lowering.hpp"

namespace openrknn::npu {

opt::Capabilities capabilities(const target::Target& target) {
  opt::Capabilities c;
  c.fuse_residual = target.numerics.fused_residual;
  c.pool_kernel_max = target.limit("pool.kernel.max").value;
  // Chains of pooling windows step by their own size, so the stride binds too.
  c.depthwise_kernel_max =
      std::min(target.limit("depthwise.kernel.max").value, target.limit("depthwise.stride.max").value);
  c.conv_kernel_max = target.limit("conv.kernel.max").value;
  c.deconv_strides.clear();
  const bool power_of_two = target.limit("deconv.stride.power_of_two").value != 0;
  for (int64_t s = 1; s <= target.limit("deconv.stride.max").value; ++s) {
    if (!power_of_two || (s & (s - 1)) == 0) c.deconv_strides.push_back(s);
  }
  return c;
}

Result<model::Program> compile(const Graph& graph, const quant::Placement& placement, const target::Target& target,
                               const CompileOptions& options) {
  OPENRKNN_CHECK_OK(quant::check_buildable(graph, placement, target));
  for (const auto& [id, placed] : placement.nodes) {
    if (!placed.warning.empty())
      log_warning("{}: node '{}': {}", graph.source_file, graph.node(id).name, placed.warning);
  }
  auto program = Lowering(graph, placement, target, options).run();
  if (!program.ok() && program.error().where.find(graph.source_file) == std::string::npos)
    program.error().within(graph.source_file);
  return program;
}

}  // namespace openrknn::npu
