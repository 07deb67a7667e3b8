// Resize that repeats each element an integer number of times is a depthwise transposed convolution with ones.
// Linear interpolation stays: its border would need the edge repeated, which a convolution does not do.
#include <algorithm>

#include "ops/evaluate.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// Strides of the engine whose product is the factor, largest first; empty when there are none.
std::vector<int64_t> steps(int64_t factor, const std::vector<int64_t>& strides) {
  std::vector<int64_t> sorted = strides;
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<int64_t> result;
  int64_t rest = factor;
  for (const int64_t s : sorted) {
    if (s < 2) continue;
    for (; rest % s == 0; rest /= s) result.push_back(s);
  }
  if (rest != 1) return {};
  return result;
}

// Whether the node repeats elements: asked of the operator itself, on a picture of one channel that counts its pixels.
// That covers every coordinate and rounding mode.
bool repeats_elements(const Graph& graph, const Node& node, const std::vector<int64_t>& scale) {
  const Shape& from = shape_of(graph, node.inputs[0]);
  const int64_t width = from[from.rank() - 1];
  const int64_t height = from.rank() == 4 ? from[2] : 1;
  if (height * width >= (int64_t{1} << 24)) return false;
  Tensor ramp(DType::kFloat32, from.rank() == 4 ? Shape{1, 1, height, width} : Shape{1, 1, width});
  const auto values = ramp.mutable_as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<Tensor> inputs{ramp};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Tensor* operand = graph.constant(node.inputs[i]);
    if (node.inputs[i].valid() && operand == nullptr) return false;
    inputs.push_back(operand != nullptr ? *operand : Tensor());
  }
  if (inputs.size() > 3 && inputs[3].defined() && inputs[3].elements() == from.rank()) {
    auto sizes = to_ints(inputs[3].view());
    sizes[0] = sizes[1] = 1;
    inputs[3] = Tensor::ints(sizes);
  }
  const auto resized = ops::evaluate("Resize", node.attributes, inputs, 1);
  if (!resized.ok()) return false;
  const int64_t scale_x = scale.back();
  const int64_t scale_y = from.rank() == 4 ? scale[0] : 1;
  if ((*resized)[0].elements() != height * scale_y * width * scale_x) return false;
  const auto got = (*resized)[0].as<float>();
  for (int64_t y = 0; y < height * scale_y; ++y) {
    for (int64_t x = 0; x < width * scale_x; ++x) {
      const int64_t source = y / scale_y * width + x / scale_x;
      if (got[static_cast<size_t>(y * width * scale_x + x)] != static_cast<float>(source)) return false;
    }
  }
  return true;
}

Result<bool> to_conv_transpose(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Resize" || !rewriter.capabilities().lower_to_conv) return false;
  const ValueId x = node.inputs[0];
  if (!known(graph, x) || !known(graph, node.outputs[0]) || !is_float32(graph, x)) return false;
  const Shape& from = shape_of(graph, x);
  const Shape& to = shape_of(graph, node.outputs[0]);
  if ((from.rank() != 3 && from.rank() != 4) || from[0] != to[0] || from[1] != to[1] || from.elements() == 0)
    return false;
  std::vector<int64_t> scale;
  std::vector<std::vector<int64_t>> plan;
  size_t stages = 0;
  for (int i = 2; i < from.rank(); ++i) {
    if (to[i] % from[i] != 0) return false;
    scale.push_back(to[i] / from[i]);
    plan.push_back(steps(scale.back(), rewriter.capabilities().deconv_strides));
    if (plan.back().empty() && scale.back() != 1) return false;
    stages = std::max(stages, plan.back().size());
  }
  if (stages == 0 || !repeats_elements(graph, node, scale)) return false;
  Patch patch(graph);
  ValueId y = x;
  for (size_t stage = 0; stage < stages; ++stage) {
    std::vector<int64_t> kernel;
    for (const auto& axis : plan) kernel.push_back(stage < axis.size() ? axis[stage] : 1);
    const Shape shape = kernel.size() == 1 ? Shape{from[1], 1, kernel[0]} : Shape{from[1], 1, kernel[0], kernel[1]};
    const ValueId w = patch.constant(filled(shape, 1.0F), graph.value(node.outputs[0]).name + "_repeat");
    y = patch.add("ConvTranspose", {y, w}, conv_attributes(kernel, kernel, from[1]));
  }
  patch.replace(node.outputs[0], y);
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_resize_to_deconv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_resize_to_deconv", to_conv_transpose);
}

}  // namespace openrknn::opt
