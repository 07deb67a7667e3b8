// Products with constant matrices become 1x1 convolutions, the form that the NPU computes.
#include <algorithm>

#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

// [K, N] (or [N, K] when `transposed`) as the weights [N, K, 1...] of a convolution, times `factor`.
Tensor conv_weights(const Tensor& matrix, bool transposed, size_t spatial, double factor) {
  const int64_t k = matrix.shape()[transposed ? 1 : 0];
  const int64_t n = matrix.shape()[transposed ? 0 : 1];
  Tensor weights(DType::kFloat32, spatial == 1 ? Shape{n, k, 1} : Shape{n, k, 1, 1});
  const auto from = matrix.as<float>();
  const auto to = weights.mutable_as<float>();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < k; ++c) {
      const auto at = static_cast<size_t>(transposed ? i * k + c : c * n + i);
      to[static_cast<size_t>(i * k + c)] = static_cast<float>(static_cast<double>(from[at]) * factor);
    }
  }
  return weights;
}

const Tensor* matrix(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.constant(value);
  const bool fits =
      tensor != nullptr && tensor->dtype() == DType::kFloat32 && tensor->shape().rank() == 2 && tensor->elements() > 0;
  return fits ? tensor : nullptr;
}

// alpha * A * B + beta * C with A not transposed, B and C constant, C one value per column.
Result<bool> gemm(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Gemm" || !rewriter.capabilities().lower_to_conv) return false;
  if (node.attributes.int_or("transA", 0) != 0 || !known(graph, node.inputs[0]) || !known(graph, node.outputs[0])) {
    return false;
  }
  const Tensor* b = matrix(graph, node.inputs[1]);
  if (b == nullptr || !is_float32(graph, node.inputs[0]) || graph.constant(node.inputs[0]) != nullptr) return false;
  const Shape& from = shape_of(graph, node.inputs[0]);
  const Shape& to = shape_of(graph, node.outputs[0]);
  if (from.rank() != 2 || from.elements() == 0) return false;
  std::optional<std::vector<double>> bias;
  if (const ValueId c = input_of(node, 2); c.valid()) {
    bias = along_axis(graph, c, to, 1);
    if (!bias) return false;
    for (double& v : *bias) v *= static_cast<double>(node.attributes.float_or("beta", 1.0F));
  }
  const bool transposed = node.attributes.int_or("transB", 0) != 0;
  const double alpha = static_cast<double>(node.attributes.float_or("alpha", 1.0F));
  Patch patch(graph);
  std::vector<ValueId> inputs{patch.reshape(node.inputs[0], Shape{from[0], from[1], 1, 1}),
                              patch.constant(conv_weights(*b, transposed, 2, alpha), graph.value(node.inputs[1]).name)};
  if (bias) inputs.push_back(patch.constant(floats(Shape{to[1]}, *bias), graph.value(node.inputs[2]).name));
  const ValueId y = patch.add("Conv", inputs, conv_attributes({1, 1}, {1, 1}, 1));
  patch.replace(node.outputs[0], patch.reshape(y, to));
  return rewriter.commit(patch);
}

// Axes of x brought to [batch, K, rest...] and back.
struct Orders {
  std::vector<int64_t> in, out;
};
Orders channel_last_orders(int rank) {
  if (rank == 3) return {{0, 2, 1}, {0, 2, 1}};
  return {{0, 3, 1, 2}, {0, 2, 3, 1}};
}

// x [.., K] times a constant [K, N], with the bias that is added next when nothing else reads the product.
Result<bool> right_constant(Rewriter& rewriter, const Node& node, const Tensor& b) {
  const Graph& graph = rewriter.graph();
  const Shape& from = shape_of(graph, node.inputs[0]);
  const int rank = from.rank();
  if (rank < 2 || rank > 4 || from.elements() == 0) return false;
  ValueId result = node.outputs[0];
  const Shape to = shape_of(graph, result);
  std::optional<std::vector<double>> bias;
  std::string bias_name;
  if (const NodeId reader = only_reader(graph, result); reader.valid() && graph.node(reader).op == "Add") {
    const Node& add = graph.node(reader);
    const ValueId other = add.inputs[add.inputs[0] == result ? 1 : 0];
    if (!has_activation(add) && shape_of(graph, add.outputs[0]) == to && known(graph, other)) {
      bias = along_axis(graph, other, to, rank - 1);
      if (bias) {
        bias_name = graph.value(other).name;
        result = add.outputs[0];
      }
    }
  }
  Patch patch(graph);
  const size_t spatial = rank == 3 ? 1 : 2;
  const auto orders = channel_last_orders(rank);
  const ValueId x = rank == 2 ? patch.reshape(node.inputs[0], Shape{from[0], from[1], 1, 1})
                              : patch.transpose(node.inputs[0], orders.in);
  std::vector<ValueId> inputs{x,
                              patch.constant(conv_weights(b, false, spatial, 1.0), graph.value(node.inputs[1]).name)};
  if (bias) inputs.push_back(patch.constant(floats(Shape{b.shape()[1]}, *bias), bias_name));
  const std::vector<int64_t> ones(spatial, 1);
  const ValueId y = patch.add("Conv", inputs, conv_attributes(ones, ones, 1));
  patch.replace(result, rank == 2 ? patch.reshape(y, to) : patch.transpose(y, orders.out));
  return rewriter.commit(patch);
}

Result<bool> matmul(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "MatMul" || !rewriter.capabilities().lower_to_conv) return false;
  if (!known(graph, node.inputs[0]) || !known(graph, node.inputs[1]) || !is_float32(graph, node.outputs[0]))
    return false;
  const Tensor* left = matrix(graph, node.inputs[0]);
  const Tensor* right = matrix(graph, node.inputs[1]);
  if (right != nullptr && graph.constant(node.inputs[0]) == nullptr) return right_constant(rewriter, node, *right);
  // A constant [M, K] times x [B, K, N] is a 1-D convolution as it stands.
  const Shape& x = shape_of(graph, node.inputs[1]);
  if (left == nullptr || x.rank() != 3 || x.elements() == 0 || graph.constant(node.inputs[1]) != nullptr) return false;
  Patch patch(graph);
  const ValueId w = patch.constant(conv_weights(*left, true, 1, 1.0), graph.value(node.inputs[0]).name);
  patch.replace(node.outputs[0], patch.add("Conv", {node.inputs[1], w}, conv_attributes({1}, {1}, 1)));
  return rewriter.commit(patch);
}

// A 1x1 convolution of a flattened picture [N, C * H * W, 1, 1] is a convolution with an HxW kernel of the picture.
Result<bool> reshape_into_conv(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Conv") return false;
  const Node* before = producer(graph, node.inputs[0], "Reshape");
  const Tensor* weights = graph.constant(node.inputs[1]);
  if (before == nullptr || weights == nullptr || weights->dtype() != DType::kFloat32) return false;
  if (node.attributes.int_or("group", 1) != 1 || !known(graph, before->inputs[0])) return false;
  const Shape& from = shape_of(graph, before->inputs[0]);
  const Shape& flat = shape_of(graph, node.inputs[0]);
  if (from.rank() != 4 || flat.rank() != 4 || flat[2] != 1 || flat[3] != 1 || from[0] != flat[0]) return false;
  const int64_t limit = rewriter.capabilities().conv_kernel_max;
  if (from[2] * from[3] == 1 || from[2] > limit || from[3] > limit) return false;
  const auto window = window_of(node, {weights->shape().dims().begin() + 2, weights->shape().dims().end()});
  if (!window || !window->pointwise()) return false;
  Attributes attributes = node.attributes;
  attributes.set("kernel_shape", std::vector<int64_t>{from[2], from[3]});
  const Shape shape{weights->shape()[0], from[1], from[2], from[3]};
  Patch patch(graph);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = before->inputs[0];
  inputs[1] = patch.constant(weights->reshaped(shape), graph.value(node.inputs[1]).name);
  patch.replace(node.outputs[0], patch.add("Conv", inputs, std::move(attributes)));
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_gemm_to_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_gemm_to_conv", gemm);
}
Result<int> convert_matmul_to_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_matmul_to_conv", matmul);
}
Result<int> fuse_reshape_into_conv(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "fuse_reshape_into_conv", reshape_into_conv);
}

}  // namespace openrknn::opt
