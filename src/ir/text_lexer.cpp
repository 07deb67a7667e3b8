#include "ir/text_lexer.hpp"

#include <fmt/core.h>

#include <cctype>

namespace openrknn::text {
namespace {

bool is_name_char(char c) {
  constexpr std::string_view kOthers = "_.-/#$@";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != std::string_view::npos;
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void Lexer::step() {
  if (peek() == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  ++at_;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
      step();
    } else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && peek() != '\n') step();
    } else {
      return;
    }
  }
}

Status Lexer::read_string() {
  step();  // the opening quote
  while (peek() != '"') {
    if (at_ >= text_.size() || peek() == '\n') return fail("a string does not end on its line");
    if (peek() != '\\') {
      value_ += peek();
      step();
      continue;
    }
    step();
    const char escape = peek();
    if (escape == 'n') {
      value_ += '\n';
    } else if (escape == '"' || escape == '\\') {
      value_ += escape;
    } else if (escape == 'x' && at_ + 2 < text_.size() && hex_digit(text_[at_ + 1]) >= 0 &&
               hex_digit(text_[at_ + 2]) >= 0) {
      value_ += static_cast<char>(hex_digit(text_[at_ + 1]) * 16 + hex_digit(text_[at_ + 2]));
      step();
      step();
    } else {
      return fail("an unknown escape in a string");
    }
    step();
  }
  step();
  return {};
}

Status Lexer::advance() {
  skip_blank();
  token_line_ = line_;
  token_column_ = column_;
  value_.clear();
  if (at_ >= text_.size()) {
    token_ = Token::kEnd;
    return {};
  }
  const char c = peek();
  const auto take = [&](auto&& belongs) {
    while (at_ < text_.size() && belongs(peek())) {
      value_ += peek();
      step();
    }
  };
  if (c == '"') {
    token_ = Token::kString;
    return read_string();
  }
  if (c == '%') {
    token_ = Token::kValue;
    step();
    if (peek() == '"') {
      OPENRKNN_CHECK_OK(read_string());
    } else {
      take(is_name_char);
    }
    if (value_.empty()) return fail("a name is missing after %");
    return {};
  }
  if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+') {
    token_ = Token::kNumber;
    value_ += c;
    step();
    take([](char d) { return is_word_char(d) || d == '-' || d == '+'; });
    return {};
  }
  if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
    token_ = Token::kWord;
    take(is_word_char);
    return {};
  }
  constexpr std::string_view kMarks = "{}()[]<>=,:?";
  if (kMarks.find(c) == std::string_view::npos) return fail(fmt::format("'{}' begins nothing", c));
  token_ = Token::kMark;
  value_ = c;
  step();
  return {};
}

Error Lexer::fail(std::string why) const {
  return Error{ErrorCode::kFormat, "cannot parse the graph",
               fmt::format("{} line {} column {}", source_, token_line_, token_column_), std::move(why), ""};
}

Error Lexer::expected(std::string_view wanted) const {
  const std::string found = token_ == Token::kEnd ? "the end" : "'" + value_ + "'";
  return fail(fmt::format("{} expected, {} found", wanted, found));
}

}  // namespace openrknn::text
