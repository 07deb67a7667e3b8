// The program itself, run as a user runs it.
#pragma once

#include <sys/wait.h>

#include "support.hpp"

namespace openrknn::toolkit {

struct Done {
  int status = -1;  // exit status; 128 + n for signal n
  std::string out, err;
};

inline std::string quoted(const std::string& text) {
  std::string q = "'";
  for (const char c : text) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

// `prefix` may set variables or limit the time; `out` takes the place of the file that gets stdout.
inline Done openrknn(const std::vector<std::string>& arguments, const std::string& prefix = "",
                     const std::string& out = "") {
  const TempFolder capture;
  std::string command = prefix + " " + quoted(OPENRKNN_CLI);
  for (const auto& a : arguments) command += " " + quoted(a);
  command += (out.empty() ? " >" + quoted(capture.file("out")) : out) + " 2>" + quoted(capture.file("err"));
  const int raw = std::system(command.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw), read_file(capture.file("out")),
          read_file(capture.file("err"))};
}

// One line on stderr that starts with "error:" (warnings may stand before it) and holds all of `parts`.
inline void expect_failure(const Done& done, const std::vector<std::string>& parts) {
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_EQ(done.out, "");
  const size_t at = done.err.find("error: ");
  ASSERT_NE(at, std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("error: ", at + 1), std::string::npos) << "more than one error: " << done.err;
  EXPECT_EQ(done.err.find('\n', at), done.err.size() - 1) << "the error is the last line: " << done.err;
  EXPECT_EQ(done.err.find(": : "), std::string::npos) << "an empty part: " << done.err;
  for (const auto& part : parts)
    EXPECT_NE(done.err.find(part), std::string::npos) << "\"" << part << "\" not in: " << done.err;
}

class Cli : public testing::Test {
 protected:
  Done build(const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"build", model, "-o", folder_.file("out.rknn"), "--target", "rk3588"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return openrknn(arguments);
  }
  void expect_no_program() { EXPECT_FALSE(std::filesystem::exists(folder_.file("out.rknn"))); }

  TempFolder folder_;
};

}  // namespace openrknn::toolkit
