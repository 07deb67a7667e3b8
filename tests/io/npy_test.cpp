#include "io/npy.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "support/temp_folder.hpp"

namespace openrknn::io {
namespace {

using test_support::TempFolder;

// A version 1.0 file around a header dictionary.
std::string npy(const std::string& dictionary, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size() & 0xFF);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary + data;
}

Result<Tensor> parse(const std::string& bytes) {
  return parse_npy(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.npy");
}

template <typename T>
std::vector<T> values(const Tensor& t) {
  return {t.as<T>().begin(), t.as<T>().end()};
}

TEST(Npy, ReadsFortranOrderAndBigEndian) {
  const auto t = parse(
      npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12)));
  ASSERT_TRUE(t.ok()) << t.error().message();
  EXPECT_EQ(t->dtype(), DType::kInt16);
  EXPECT_EQ(t->shape(), (Shape{2, 3}));
  EXPECT_EQ(values<int16_t>(*t), (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  const auto scalar = parse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}\n", "\x07"));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->shape().rank(), 0);
  EXPECT_EQ(values<uint8_t>(*scalar), std::vector<uint8_t>{7});
  const auto empty = parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}\n", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->elements(), 0);
}

TEST(Npy, ReadsVersionTwo) {
  const std::string dictionary = "{'shape': (2,), 'fortran_order': False, 'descr': '<i4'}\n";
  std::string bytes = std::string("\x93NUMPY\x02\0", 8);
  bytes += static_cast<char>(dictionary.size());
  bytes += std::string(3, '\0') + dictionary + std::string("\1\0\0\0\xff\xff\xff\xff", 8);
  const auto t = parse(bytes);
  ASSERT_TRUE(t.ok()) << t.error().message();
  EXPECT_EQ(values<int32_t>(*t), (std::vector<int32_t>{1, -1}));
}

TEST(Npy, WritesWhatItReads) {
  TempFolder folder;
  const std::vector<Shape> shapes{Shape{}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 4}, Shape{0}};
  for (const Shape& shape : shapes) {
    std::vector<float> data(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) * 0.37F - 1;
    const Tensor t = Tensor::from(shape, data);
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt8, DType::kInt64, DType::kBool}) {
      const Tensor wanted = cast(t.view(), dtype);
      const std::string path = folder.file("t.npy");
      ASSERT_TRUE(write_npy(path, wanted.view()).ok());
      const auto back = read_npy(path);
      ASSERT_TRUE(back.ok()) << back.error().message();
      EXPECT_EQ(back->dtype(), dtype);
      EXPECT_EQ(back->shape(), shape);
      EXPECT_EQ(std::memcmp(back->data(), wanted.data(), wanted.bytes()), 0);
    }
  }
  // Data start at a multiple of 64 bytes, as the format asks for.
  std::ifstream file(folder.write("x", ""));
  ASSERT_TRUE(write_npy(folder.file("a.npy"), Tensor::ints({1, 2}).view()).ok());
  std::ifstream in(folder.file("a.npy"), std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ((all.size() - 16) % 64, 0U);
}

TEST(Npy, WidensWhatTheFormatLacks) {
  TempFolder folder;
  const Tensor t = cast(Tensor::from(Shape{2}, std::vector<float>{1.5F, -2}).view(), DType::kBFloat16);
  ASSERT_TRUE(write_npy(folder.file("b.npy"), t.view()).ok());
  const auto back = read_npy(folder.file("b.npy"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->dtype(), DType::kFloat32);
  EXPECT_EQ(values<float>(*back), (std::vector<float>{1.5F, -2}));
}

TEST(Npy, RefusesDamagedFiles) {
  const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}\n", std::string(16, 'x'));
  ASSERT_TRUE(parse(good).ok());
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(parse(good.substr(0, length)).ok()) << length;
  EXPECT_FALSE(parse(good + "x").ok());
  for (const char* dictionary : {"{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
                                 "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
                                 "{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}",
                                 "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,)}",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"}) {
    const auto t = parse(npy(dictionary, std::string(16, '\0')));
    ASSERT_FALSE(t.ok()) << dictionary;
    EXPECT_NE(t.error().message().find("test.npy"), std::string::npos);
  }
}

}  // namespace
}  // namespace openrknn::io
