// Einsum that is a permutation or a batch of matrix products, in the operators that the NPU has.
#include <algorithm>

#include "kernels/einsum_plan.hpp"
#include "opt/match.hpp"
#include "opt/rules.hpp"

namespace openrknn::opt {

namespace {

using Indices = std::vector<int>;

bool has(const Indices& indices, int index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

// The operand's axes are different indices of full extent, so that it can be permuted as it stands.
bool is_plain(const EinsumPlan& plan, size_t operand, const Shape& shape) {
  const Indices& indices = plan.operands[operand];
  for (size_t i = 0; i < indices.size(); ++i) {
    if (shape[static_cast<int>(i)] != plan.extents[static_cast<size_t>(indices[i])]) return false;
    if (std::count(indices.begin(), indices.end(), indices[i]) != 1) return false;
  }
  return true;
}

ValueId permuted(Patch& patch, ValueId value, const Indices& from, const Indices& to) {
  if (from == to) return value;
  std::vector<int64_t> perm;
  for (const int index : to) perm.push_back(std::find(from.begin(), from.end(), index) - from.begin());
  return patch.transpose(value, std::move(perm));
}

Indices joined(std::initializer_list<Indices> parts) {
  Indices all;
  for (const Indices& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The roles of the indices in a product of two operands.
struct Roles {
  Indices batch, rows, columns, sums;
};

// nullopt when an index is summed that only one operand has.
std::optional<Roles> roles_of(const EinsumPlan& plan) {
  Roles roles;
  for (const int index : plan.operands[0]) {
    const bool shared = has(plan.operands[1], index);
    const bool kept = has(plan.output, index);
    if (!shared && !kept) return std::nullopt;
    (shared ? (kept ? roles.batch : roles.sums) : roles.rows).push_back(index);
  }
  for (const int index : plan.operands[1]) {
    if (has(plan.operands[0], index)) continue;
    if (!has(plan.output, index)) return std::nullopt;
    roles.columns.push_back(index);
  }
  return roles;
}

class Extents {
 public:
  explicit Extents(const EinsumPlan& plan) : plan_(plan) {}
  std::vector<int64_t> of(const Indices& indices) const {
    std::vector<int64_t> extents;
    for (const int index : indices) extents.push_back(plan_.extents[static_cast<size_t>(index)]);
    return extents;
  }
  int64_t product(const Indices& indices) const {
    int64_t all = 1;
    for (const int64_t extent : of(indices)) all *= extent;
    return all;
  }
  // The batch axes as they are, then one axis for each group.
  Result<Shape> grouped(const Indices& batch, const Indices& first, const Indices& second) const {
    std::vector<int64_t> dims = of(batch);
    dims.push_back(product(first));
    dims.push_back(product(second));
    return Shape::make(dims);
  }

 private:
  const EinsumPlan& plan_;
};

Result<bool> product(Rewriter& rewriter, const Node& node, const EinsumPlan& plan) {
  const auto roles = roles_of(plan);
  if (!roles || roles->sums.empty() || plan.shape.elements() == 0) return false;
  const Extents extents(plan);
  const auto left = extents.grouped(roles->batch, roles->rows, roles->sums);
  const auto right = extents.grouped(roles->batch, roles->sums, roles->columns);
  const Indices order = joined({roles->batch, roles->rows, roles->columns});
  const auto whole = Shape::make(extents.of(order));
  if (!left.ok() || !right.ok() || !whole.ok() || left->elements() == 0) return false;
  Patch patch(rewriter.graph());
  const ValueId a = permuted(patch, node.inputs[0], plan.operands[0], joined({roles->batch, roles->rows, roles->sums}));
  const ValueId b =
      permuted(patch, node.inputs[1], plan.operands[1], joined({roles->batch, roles->sums, roles->columns}));
  const ValueId y = patch.add("MatMul", {patch.reshape(a, *left), patch.reshape(b, *right)});
  patch.replace(node.outputs[0], permuted(patch, patch.reshape(y, *whole), order, plan.output));
  return rewriter.commit(patch);
}

Result<bool> einsum(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (node.op != "Einsum" || node.inputs.empty() || node.inputs.size() > 2) return false;
  std::vector<Shape> shapes;
  for (const ValueId input : node.inputs) {
    if (!known(graph, input) || !is_float32(graph, input)) return false;
    shapes.push_back(shape_of(graph, input));
  }
  const auto plan = einsum_plan(node.attributes.string_or("equation", ""), shapes);
  if (!plan.ok()) return false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!is_plain(*plan, i, shapes[i])) return false;
  }
  if (shapes.size() == 2) return product(rewriter, node, *plan);
  if (plan->output.size() != plan->operands[0].size()) return false;
  Patch patch(graph);
  const ValueId y = permuted(patch, node.inputs[0], plan->operands[0], plan->output);
  patch.replace(node.outputs[0], y == node.inputs[0] ? patch.add("Identity", {y}) : y);
  return rewriter.commit(patch);
}

}  // namespace

Result<int> convert_einsum(Graph& graph, PassContext& context) {
  return apply_rule(graph, context, "convert_einsum", einsum);
}

}  // namespace openrknn::opt
