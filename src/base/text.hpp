// Text helpers for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace openrknn {

// The names of `known` closest to `name` by edit distance, best first, at most `count`; far ones are left out.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known, size_t count = 3);
// "a, b, c"; after `limit` items ", ... (N in all)".
std::string join_names(const std::vector<std::string>& names, size_t limit = 12);
// Characters outside [A-Za-z0-9_.-] become '_'.
std::string file_name_of(std::string_view tensor_name);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);

}  // namespace openrknn
