#include "base/result.hpp"

#include <string_view>

namespace openrknn {

std::string Error::message() const {
  std::string text = what;
  const auto append = [&text](std::string_view separator, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += part;
  };
  append(": ", where);
  append(": ", why);
  append("; ", hint);
  return text;
}

Error& Error::within(const std::string& prefix) {
  where = where.empty() ? prefix : prefix + ": " + where;
  return *this;
}

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kIo:
      return "input/output";
    case ErrorCode::kFormat:
      return "format";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kShape:
      return "shape";
    case ErrorCode::kResource:
      return "resource";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace openrknn
