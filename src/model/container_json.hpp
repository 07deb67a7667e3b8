// The description of a Program as JSON text: everything but the bytes of the weights. Keys: docs/FORMAT.md.
#pragma once

#include <string>
#include <string_view>

#include "model/program.hpp"

namespace openrknn::model {

std::string describe(const Program& program);  // deterministic
Result<Program> parse_description(std::string_view text);

}  // namespace openrknn::model
