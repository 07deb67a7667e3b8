// Options set by name and text, for the C ABI: the names of the command line.
#pragma once

#include <string>
#include <string_view>

#include "openrknn/toolkit.hpp"

namespace openrknn::facade {

struct TextOptions {
  toolkit::LoadOptions load;
  toolkit::Config config;
  toolkit::RunOptions run;
};

// An unknown name or a text that does not fit is an error that says what is expected.
toolkit::Status set_option(TextOptions& options, std::string_view name, const std::string& text);

}  // namespace openrknn::facade
