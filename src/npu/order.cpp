#include "npu/order.hpp"

#include <deque>
#include <map>

namespace openrknn::npu {

Result<std::vector<NodeId>> order_nodes(const Graph& graph, const std::string& compute_order) {
  if (compute_order != "WidthFirst" && compute_order != "DepthFirst") {
    return Error{ErrorCode::kInvalidArgument, "unknown compute order", compute_order, "",
                 "use WidthFirst or DepthFirst"};
  }
  const bool depth_first = compute_order == "DepthFirst";
  OPENRKNN_TRY(const auto topological, graph.topological_order());  // also proves that there is no cycle
  std::map<NodeId, int> waiting;
  std::deque<NodeId> ready;
  for (const NodeId id : topological) {
    int count = 0;
    for (const ValueId v : graph.node(id).inputs) count += v.valid() && graph.value(v).producer.valid() ? 1 : 0;
    waiting[id] = count;
    if (count == 0) ready.push_back(id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = depth_first ? ready.back() : ready.front();
    depth_first ? ready.pop_back() : ready.pop_front();
    order.push_back(id);
    std::vector<NodeId> freed;
    for (const ValueId v : graph.node(id).outputs) {
      if (!v.valid()) continue;
      for (const Use& use : graph.value(v).users) {
        if (--waiting[use.node] == 0) freed.push_back(use.node);
      }
    }
    if (depth_first) {
      ready.insert(ready.end(), freed.rbegin(), freed.rend());
    } else {
      ready.insert(ready.end(), freed.begin(), freed.end());
    }
  }
  return order;
}

}  // namespace openrknn::npu
