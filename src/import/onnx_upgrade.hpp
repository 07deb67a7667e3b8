// Operators of old opsets in the newest opset's meaning.
#pragma once

#include "import/graph_builder.hpp"

namespace openrknn::import {

// The newest opset of ONNX's own domain whose operators were checked against this table.
constexpr int64_t kOldestOpset = 7;  // older files are read, with a warning
constexpr int64_t kNewestOpset = 26;

// Rewrites `draft` from its opset's meaning to the newest; may put helper nodes and constants before it.
// An operand whose shape is needed and not known is an error.
Status upgrade(NodeDraft& draft, GraphBuilder& builder);

// Whether older opsets have the operator in another form, or under this name.
bool has_upgrade(std::string_view op);

}  // namespace openrknn::import
