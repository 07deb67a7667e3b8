// Tokens of the text form of a Graph, with their places for messages.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace openrknn::text {

enum class Token { kEnd, kWord, kNumber, kString, kValue, kMark };

class Lexer {
 public:
  Lexer(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  // Moves to the next token. Errors: a character that begins no token, a string that does not end.
  Status advance();
  Token token() const { return token_; }
  // A word, number or mark as written; a string or value name with its escapes resolved.
  const std::string& text() const { return value_; }
  bool is_mark(char c) const { return token_ == Token::kMark && value_[0] == c; }
  bool is_word(std::string_view word) const { return token_ == Token::kWord && value_ == word; }
  // An error at the current token: "expected `wanted`, found ...".
  Error expected(std::string_view wanted) const;
  Error fail(std::string why) const;

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blank();
  void step();
  Status read_string();

  std::string_view text_;
  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
  int token_line_ = 1;
  int token_column_ = 1;
  Token token_ = Token::kEnd;
  std::string value_;
};

}  // namespace openrknn::text
