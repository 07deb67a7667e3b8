#include "import/onnx_order.hpp"

#include <fmt/core.h>

#include <queue>

namespace openrknn::import {
namespace {

void add_reads(const onnx::NodeProto& node, const NameSet& defined, std::vector<std::string>& reads);

void add_reads_of_graph(const onnx::GraphProto& graph, NameSet defined, std::vector<std::string>& reads) {
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& node : graph.node()) defined.insert(node.output().begin(), node.output().end());
  for (const auto& node : graph.node()) add_reads(node, defined, reads);
  for (const auto& output : graph.output()) {
    if (!defined.contains(output.name())) reads.push_back(output.name());
  }
}

void add_reads(const onnx::NodeProto& node, const NameSet& defined, std::vector<std::string>& reads) {
  for (const auto& name : node.input()) {
    if (!name.empty() && !defined.contains(name)) reads.push_back(name);
  }
  for (const auto& attribute : node.attribute()) {  // depth is bounded by the protobuf parser's limit on nesting
    if (attribute.has_g()) add_reads_of_graph(attribute.g(), defined, reads);
    for (const auto& graph : attribute.graphs()) add_reads_of_graph(graph, defined, reads);
  }
}

}  // namespace

std::string label_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const auto& output : node.output()) {
    if (!output.empty()) return fmt::format("{}:{}", node.op_type(), output);
  }
  return node.op_type();
}

std::vector<std::string> reads_of(const onnx::NodeProto& node) {
  std::vector<std::string> reads;
  add_reads(node, {}, reads);
  return reads;
}

Result<std::map<std::string, int, std::less<>>> producers_of(const NodeList& nodes) {
  std::map<std::string, int, std::less<>> producers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const auto& name : nodes[i].output()) {
      if (name.empty()) continue;
      const auto [at, is_new] = producers.emplace(name, i);
      if (!is_new) {
        return Error{
            ErrorCode::kFormat, "the model is malformed", fmt::format("tensor '{}'", name),
            fmt::format("two nodes produce it: '{}' and '{}'", label_of(nodes[at->second]), label_of(nodes[i])),
            "repair the model"};
      }
    }
  }
  return producers;
}

Result<std::vector<int>> order_nodes(const NodeList& nodes, const std::vector<std::string>& wanted,
                                     const NameSet& given) {
  OPENRKNN_TRY(const auto producers, producers_of(nodes));
  const auto producer = [&](const std::string& name) {
    const auto it = producers.find(name);
    return it == producers.end() || given.contains(name) ? -1 : it->second;
  };
  const auto count = static_cast<size_t>(nodes.size());
  std::vector<std::vector<int>> users(count);
  std::vector<int> waiting(count, 0);
  std::vector<bool> needed(count, false);
  std::vector<int> open;
  const auto need = [&](int index) {
    if (index < 0 || needed[static_cast<size_t>(index)]) return;
    needed[static_cast<size_t>(index)] = true;
    open.push_back(index);
  };
  for (const auto& name : wanted) need(producer(name));
  size_t total = 0;
  while (!open.empty()) {
    const int index = open.back();
    open.pop_back();
    ++total;
    for (const auto& name : reads_of(nodes[index])) {
      const int from = producer(name);
      if (from < 0) continue;
      users[static_cast<size_t>(from)].push_back(index);
      ++waiting[static_cast<size_t>(index)];
      need(from);
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (needed[i] && waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int index = ready.top();
    ready.pop();
    order.push_back(index);
    for (const int user : users[static_cast<size_t>(index)]) {
      if (--waiting[static_cast<size_t>(user)] == 0) ready.push(user);
    }
  }
  if (order.size() == total) return order;
  for (size_t i = 0; i < count; ++i) {
    if (needed[i] && waiting[i] > 0) {
      const auto& node = nodes[static_cast<int>(i)];
      return Error{ErrorCode::kFormat, "the model is malformed",
                   fmt::format("node '{}' ({})", label_of(node), node.op_type()),
                   "the node waits for its own result: the graph has a cycle", "repair the model"};
    }
  }
  return order;
}

}  // namespace openrknn::import
