#include "io/feed.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "io/dataset.hpp"
#include "io/npy.hpp"
#include "support/temp_folder.hpp"

namespace openrknn::io {
namespace {

using test_support::TempFolder;

// 2 x 1 pixels: RGB 1,2,3 and 4,5,6.
std::string tiny_bmp() {
  const std::string header("BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x18\0", 30);
  return header + std::string(24, '\0') + std::string("\3\2\1\6\5\4\0\0", 8);
}

template <typename T>
std::vector<T> values(const Tensor& t) {
  return {t.as<T>().begin(), t.as<T>().end()};
}

std::string message(const Result<Tensor>& result) { return result.ok() ? "" : result.error().message(); }

TEST(Feed, LaysPicturesOut) {
  TempFolder folder;
  const std::string path = folder.write("p.bmp", tiny_bmp());
  const auto nchw = load_input(path, {"x", DType::kFloat32, Shape{2, 3, 1, 2}, false, false});
  ASSERT_TRUE(nchw.ok()) << message(nchw);
  EXPECT_EQ(values<float>(*nchw), (std::vector<float>{1, 4, 2, 5, 3, 6, 1, 4, 2, 5, 3, 6}));  // the batch repeats it
  const auto nhwc = load_input(path, {"x", DType::kUInt8, Shape{1, 1, 2, 3}, true, true});
  ASSERT_TRUE(nhwc.ok()) << message(nhwc);
  EXPECT_EQ(values<uint8_t>(*nhwc), (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
  const auto grey = load_input(path, {"x", DType::kFloat32, Shape{1, 1, 1, 2}, false, false});
  ASSERT_TRUE(grey.ok()) << message(grey);
  EXPECT_EQ(values<float>(*grey), (std::vector<float>{2, 5}));
}

TEST(Feed, RefusesPicturesForOtherInputs) {
  TempFolder folder;
  const std::string path = folder.write("p.bmp", tiny_bmp());
  EXPECT_NE(message(load_input(path, {"x", DType::kFloat32, Shape{1, 4, 1, 2}, false, false})).find("4 channels"),
            std::string::npos);
  EXPECT_NE(message(load_input(path, {"x", DType::kFloat32, Shape{1, 6}, false, false})).find("[1, 6]"),
            std::string::npos);
  EXPECT_NE(message(load_input(path, {"x", DType::kInt8, Shape{1, 3, 1, 2}, false, false})).find("int8"),
            std::string::npos);
}

TEST(Feed, ConvertsArraysWithoutLoss) {
  TempFolder folder;
  const std::string path = folder.file("a.npy");
  const InputSpec spec{"x", DType::kFloat32, Shape{3}, false, false};
  ASSERT_TRUE(write_npy(path, Tensor::ints({1, -2, 1 << 24}).view()).ok());
  const auto from_ints = load_input(path, spec);
  ASSERT_TRUE(from_ints.ok()) << message(from_ints);
  EXPECT_EQ(values<float>(*from_ints), (std::vector<float>{1, -2, 16777216}));
  ASSERT_TRUE(write_npy(path, Tensor::from(Shape{3}, std::vector<double>{0.1, 2, 3}).view()).ok());
  EXPECT_TRUE(load_input(path, spec).ok());  // float64 to float32 rounds
  ASSERT_TRUE(write_npy(path, Tensor::ints({1, 2, (1 << 24) + 1}).view()).ok());
  const auto lossy = load_input(path, spec);
  ASSERT_FALSE(lossy.ok());
  EXPECT_NE(message(lossy).find("int64"), std::string::npos);
  EXPECT_NE(message(lossy).find("float32"), std::string::npos);
  ASSERT_TRUE(write_npy(path, Tensor::from(Shape{3}, std::vector<float>{0.5F, 1, 2}).view()).ok());
  EXPECT_FALSE(load_input(path, {"x", DType::kInt32, Shape{3}, false, false}).ok());
}

TEST(Feed, NamesBothShapes) {
  TempFolder folder;
  const std::string path = folder.file("a.npy");
  ASSERT_TRUE(write_npy(path, Tensor(DType::kUInt8, Shape{1, 4, 4, 3}).view()).ok());
  const std::string text = message(load_input(path, {"image", DType::kFloat32, Shape{1, 3, 4, 4}, false, false}));
  for (const char* part : {"image", "a.npy", "[1, 4, 4, 3]", "uint8", "[1, 3, 4, 4]", "float32", "NCHW"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Dataset, ReadsLists) {
  TempFolder folder;
  const std::string a = folder.write("a.npy", "x");
  folder.write("b.jpg", "x");
  const auto samples = read_dataset(folder.write("list.txt", "# pictures\n\na.npy  ./b.jpg\r\n\t" + a + " b.jpg"), 2);
  ASSERT_TRUE(samples.ok()) << samples.error().message();
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[0].line, 3);
  EXPECT_EQ((*samples)[0].files, (std::vector<std::string>{a, folder.file("./b.jpg")}));
  EXPECT_EQ((*samples)[1].line, 4);
  EXPECT_EQ((*samples)[1].files[0], a);
}

TEST(Dataset, ReportsAllThatIsWrong) {
  TempFolder folder;
  folder.write("a.npy", "x");
  const auto missing = read_dataset(folder.write("l1.txt", "a.npy\ngone1.npy\n\ngone2.npy\n"), 1);
  ASSERT_FALSE(missing.ok());
  for (const char* part : {"line 2", "gone1.npy", "line 4", "gone2.npy"})
    EXPECT_NE(missing.error().message().find(part), std::string::npos);
  const auto uneven = read_dataset(folder.write("l2.txt", "a.npy a.npy\na.npy\n"), 2);
  ASSERT_FALSE(uneven.ok());
  EXPECT_NE(uneven.error().message().find("line 2 (1)"), std::string::npos);
  EXPECT_FALSE(read_dataset(folder.write("l3.txt", "# nothing\n\n"), 1).ok());
  EXPECT_FALSE(read_dataset(folder.file("nolist.txt"), 1).ok());
}

}  // namespace
}  // namespace openrknn::io
