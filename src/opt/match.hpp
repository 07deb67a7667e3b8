// Questions that rules ask of a graph, and the loop that runs a rule to its fixed point.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "opt/pass.hpp"
#include "opt/patch.hpp"

namespace openrknn::opt {

// What a rule gets: the graph to look at, and commit() to change it.
class Rewriter {
 public:
  Rewriter(Graph& graph, PassContext& context, std::string_view rule) : graph_(graph), context_(context), rule_(rule) {}

  const Graph& graph() const { return graph_; }
  const Capabilities& capabilities() const { return context_.capabilities; }
  // Applies the patch if it fits and the log allows it; false: the graph is unchanged.
  Result<bool> commit(const Patch& patch);

 private:
  Graph& graph_;
  PassContext& context_;
  std::string_view rule_;
};

// Looks at one node; true when it rewrote something there.
using Rule = Result<bool> (*)(Rewriter&, NodeId);

enum class Visit : uint8_t {
  kForward,
  // For rules that merge a chain into its last node: from the end each merge takes a long piece of nodes that have not
  // merged yet, from the front every merge would carry the names of all before it (quadratic).
  kBackward,
};

// Offers every node to the rule in topological order (or backwards), again and again until nothing changes.
Result<int> apply_rule(Graph& graph, PassContext& context, std::string_view name, Rule rule,
                       Visit visit = Visit::kForward);

// --- operands
const Node* producer(const Graph& graph, ValueId value);
// The producer when it is the named operator, else nullptr.
const Node* producer(const Graph& graph, ValueId value, std::string_view op);
// The only reader of the node's single result when it is no graph output, else an invalid id.
NodeId only_reader(const Graph& graph, ValueId value);
bool single_use(const Graph& graph, ValueId value);
ValueId input_of(const Node& node, size_t slot);  // invalid when absent
// Rank, extents; an unknown shape counts as rank 0 with no elements: use known() first.
bool known(const Graph& graph, ValueId value);
const Shape& shape_of(const Graph& graph, ValueId value);
bool is_float32(const Graph& graph, ValueId value);
// The one element of a constant float32 tensor.
std::optional<float> scalar(const Graph& graph, ValueId value);
// The operand of a square, x * x or x ^ 2; invalid when the value is none.
ValueId squared_operand(const Graph& graph, ValueId value);
// Integers of a constant operand.
std::optional<std::vector<int64_t>> ints(const Graph& graph, ValueId value);
// A constant that under broadcasting to `result` varies along `axis` only: one value per index of that axis.
std::optional<std::vector<double>> along_axis(const Graph& graph, ValueId constant, const Shape& result, int axis);
// Axes of a reduction, given by operand `slot`; all when absent (unless noop_with_empty_axes); sorted, non-negative.
std::optional<std::vector<int>> axes_of(const Graph& graph, const Node& node, size_t slot);
bool has_activation(const Node& node);

// --- windows of convolutions and pools
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;
  size_t rank() const { return kernel.size(); }
  bool no_pads() const;
  bool pointwise() const;  // kernel 1, stride 1, no padding
};
// nullopt when the padding is implicit (auto_pad) or the attributes contradict each other.
std::optional<Window> window_of(const Node& node, std::vector<int64_t> kernel);
void store_pads(Attributes& attributes, const Window& window);

// A Conv or ConvTranspose with constant float32 weights and constant or absent bias, nothing fused behind it.
struct PlainConv {
  NodeId id;
  bool transposed = false;
  int64_t group = 1, in_channels = 0, out_channels = 0;
  const Tensor* weights = nullptr;  // [M, C/g, k...], transposed: [C, M/g, k...]
  std::vector<double> bias;         // one per output channel
};
std::optional<PlainConv> plain_conv(const Graph& graph, NodeId id);
// The value's producer as PlainConv, when the value is read once only.
std::optional<PlainConv> plain_conv_before(const Graph& graph, ValueId value);
// Attributes of a convolution of the given kernel, stride = stride, no padding.
Attributes conv_attributes(const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides, int64_t group);
Tensor floats(const Shape& shape, const std::vector<double>& values);
Tensor filled(const Shape& shape, float value);

}  // namespace openrknn::opt
