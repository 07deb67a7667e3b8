// Which nodes of an ONNX node list are needed, and in what order they can run.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "onnx.pb.h"

namespace openrknn::import {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using NameSet = std::set<std::string, std::less<>>;

// The node's own name, or operator and first output.
std::string label_of(const onnx::NodeProto& node);
// Names the node reads, those of its subgraphs included (only what they do not define themselves).
std::vector<std::string> reads_of(const onnx::NodeProto& node);
// Tensor name -> index of the node that produces it. Error when two nodes produce one tensor.
Result<std::map<std::string, int, std::less<>>> producers_of(const NodeList& nodes);
// The nodes that `wanted` tensors need, in an order in which operands come first, ties as in the file. Tensors of
// `given` need no node. Error for a cycle, naming a node on it.
Result<std::vector<int>> order_nodes(const NodeList& nodes, const std::vector<std::string>& wanted,
                                     const NameSet& given);

}  // namespace openrknn::import
