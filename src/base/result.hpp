// Errors are values. A function that can fail returns Result<T>; the error says what failed, where, why and what to do.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace openrknn {

enum class ErrorCode { kInvalidArgument, kNotFound, kIo, kFormat, kUnsupported, kShape, kResource, kInternal };

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;   // what could not be done: "cannot read the calibration list"
  std::string where;  // file, node, tensor or argument: "dataset.txt line 3"
  std::string why;    // the reason, with the values met and the values expected
  std::string hint;   // what the user can do next

  // "what: where: why; hint" on one line, empty parts left out.
  std::string message() const;
  // The same error seen from further out: puts `prefix` before `where` ("model.onnx: " + node).
  Error& within(const std::string& prefix);
};

std::string_view error_code_name(ErrorCode code);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace openrknn

#define OPENRKNN_CONCAT_INNER(a, b) a##b
#define OPENRKNN_CONCAT(a, b) OPENRKNN_CONCAT_INNER(a, b)

// Leaves the function with the error of `expr` (a Result), if it has one.
#define OPENRKNN_CHECK_OK(expr)                                                               \
  do {                                                                                        \
    if (auto openrknn_status = (expr); !openrknn_status.ok()) return openrknn_status.error(); \
  } while (false)

// OPENRKNN_TRY(auto x, f()): x is the value of f(), or the function is left with its error.
#define OPENRKNN_TRY(lhs, expr) OPENRKNN_TRY_IMPL(OPENRKNN_CONCAT(openrknn_result_, __LINE__), lhs, expr)
#define OPENRKNN_TRY_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.error();      \
  lhs = std::move(tmp).value()
