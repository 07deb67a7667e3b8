// Operators of onnxruntime's own domain, com.microsoft, as graphs of ONNX's operators.
#pragma once

#include <string_view>

#include "import/graph_builder.hpp"

namespace openrknn::import {

bool is_contrib(std::string_view domain, std::string_view op);
// Emits the operators that `draft` stands for. Values of the draft's outputs; invalid ones where the name is empty.
Result<std::vector<ValueId>> expand_contrib(const NodeDraft& draft, GraphBuilder& builder);

}  // namespace openrknn::import
