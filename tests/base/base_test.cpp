#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/checked.hpp"
#include "base/file.hpp"
#include "base/parallel.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace openrknn {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "openrknn-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

TEST(Text, NearNamesAreRanked) {
  const std::vector<std::string> known{"conv1", "conv10", "relu", "Concat"};
  EXPECT_EQ(near_names("conv1", known)[0], "conv1");
  EXPECT_EQ(near_names("cnov1", known)[0], "conv1");
  EXPECT_EQ(near_names("CONCAT", known)[0], "Concat");
  EXPECT_TRUE(near_names("somethingelse", known).empty());
  EXPECT_EQ(near_names("conv", known, 1).size(), 1U);
}

TEST(Text, SmallHelpers) {
  EXPECT_EQ(join_names({"a", "b"}), "a, b");
  EXPECT_EQ(join_names({"a", "b", "c"}, 2), "a, b, ... (3 in all)");
  EXPECT_EQ(file_name_of("/Model/conv:0"), "_Model_conv_0");
  EXPECT_EQ(file_name_of(""), "_");
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(to_lower("ReLU"), "relu");
}

TEST(Checked, ArithmeticThatWouldWrapIsNothing) {
  EXPECT_EQ(*checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_FALSE(checked_mul(int64_t{1} << 32, int64_t{1} << 31).has_value());
  EXPECT_FALSE(checked_mul(INT64_MIN, -1).has_value());
  EXPECT_FALSE(checked_add(INT64_MAX, 1).has_value());
  EXPECT_EQ(*checked_add(INT64_MAX, -1), INT64_MAX - 1);
  EXPECT_EQ(ceil_div(7, 4), 2);
  EXPECT_EQ(align_up(0, 16), 0);
  EXPECT_EQ(align_up(17, 16), 32);
}

Result<int> half_of(int x) {
  if (x % 2 != 0) return Error{ErrorCode::kInvalidArgument, "cannot halve", "x", "it is odd", "give an even number"};
  return x / 2;
}

Result<int> quarter_of(int x) {
  OPENRKNN_TRY(const int half, half_of(x));
  return half_of(half);
}

TEST(Results, ErrorsTravelAndKeepTheirParts) {
  EXPECT_EQ(*quarter_of(8), 2);
  const auto bad = quarter_of(6);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message(), "cannot halve: x: it is odd; give an even number");
  Error further = bad.error();
  EXPECT_EQ(further.within("model.onnx").where, "model.onnx: x");
  EXPECT_EQ((Error{ErrorCode::kIo, "", "here", "", ""}).message(), "here");
  EXPECT_EQ(error_code_name(ErrorCode::kShape), "shape");
}

TEST(Files, WrittenWholeAndReadBack) {
  const Folder folder;
  const std::string path = folder / "a.txt";
  ASSERT_TRUE(write_file_atomically(path, std::string_view("one")).ok());
  ASSERT_TRUE(write_file_atomically(path, std::string_view("second")).ok());
  EXPECT_EQ(*read_text_file(path), "second");
  EXPECT_EQ(folder.entries(), 1U);
  ASSERT_TRUE(write_file_atomically(path, std::string_view()).ok());
  EXPECT_EQ(*read_text_file(path), "");
  EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
}

TEST(Files, ErrorsNameThePathAndTheReason) {
  const Folder folder;
  const auto missing = MappedFile::open(folder / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().where, folder / "none");
  EXPECT_NE(MappedFile::open(folder / ".").error().why.find("directory"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(MappedFile::open(folder / "pipe").error().why.find("regular"), std::string::npos);
  EXPECT_FALSE(write_file_atomically(folder / "none/file", std::string_view("x")).ok());
  ASSERT_TRUE(make_folders(folder / "a/b/c").ok());
  EXPECT_FALSE(write_file_atomically(folder / "a", std::string_view("x")).ok());
  EXPECT_EQ(folder.entries(), 2U);  // no temporary file is left
  EXPECT_FALSE(make_folders(folder / "pipe/x").ok());
}

TEST(Files, MappingsMove) {
  const Folder folder;
  ASSERT_TRUE(write_file_atomically(folder / "a", std::string_view("abc")).ok());
  MappedFile first = *MappedFile::open(folder / "a");
  const MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().size(), 3U);
  EXPECT_EQ(static_cast<char>(second.bytes()[2]), 'c');
}

TEST(Files, ChecksumIsTheKnownOne) {
  EXPECT_EQ(checksum({}), 0x2D06800538D394C2U);  // XXH3's published value for no bytes
  const char text[] = "a";
  const char other[] = "b";
  EXPECT_NE(checksum(std::as_bytes(std::span(text))), checksum(std::as_bytes(std::span(other))));
}

TEST(Parallel, EveryIndexOnceForAnyThreadCount) {
  for (const int threads : {1, 2, 4, 0}) {
    set_thread_count(threads);
    for (const int64_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallel_for(count, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& s : seen) ASSERT_EQ(s.load(), 1);
    }
  }
  set_thread_count(0);
}

TEST(Parallel, LoopsMayNest) {
  std::atomic<int64_t> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(100, 10, [&](int64_t b, int64_t e) { sum += e - b; });
    }
  });
  EXPECT_EQ(sum.load(), 800);
}

}  // namespace
}  // namespace openrknn
