// Every storage of ONNX tensors.
#include <gtest/gtest.h>

#include <cmath>

#include "base/half.hpp"
#include "import/onnx_tensor.hpp"
#include "model_file.hpp"

namespace openrknn::import {
namespace {

constexpr int64_t kBudget = 1 << 20;

Result<Tensor> read(const pb::TensorProto& proto, const std::string& model_path = "model.onnx") {
  TensorReader reader(model_path, kBudget);
  return reader.read(proto, "t");
}
pb::TensorProto proto(int type, const std::vector<int64_t>& dims) {
  pb::TensorProto t;
  t.set_data_type(type);
  for (const int64_t d : dims) t.add_dims(d);
  return t;
}
template <typename T>
std::vector<T> values(const Result<Tensor>& t) {
  return {t->as<T>().begin(), t->as<T>().end()};
}
std::string message(const Result<Tensor>& t) { return t.ok() ? "" : t.error().message(); }

template <typename T>
void expect_raw(int type, DType dtype, const std::vector<T>& data) {
  auto t = proto(type, {static_cast<int64_t>(data.size())});
  t.set_raw_data(data.data(), data.size() * sizeof(T));
  const auto read_back = read(t);
  ASSERT_TRUE(read_back.ok()) << message(read_back);
  EXPECT_EQ(read_back->dtype(), dtype);
  EXPECT_EQ(values<T>(read_back), data);
}

TEST(OnnxTensor, RawData) {
  expect_raw<float>(1, DType::kFloat32, {1.5F, -2});
  expect_raw<uint8_t>(2, DType::kUInt8, {1, 255});
  expect_raw<int8_t>(3, DType::kInt8, {-1, 127});
  expect_raw<uint16_t>(4, DType::kUInt16, {65535});
  expect_raw<int16_t>(5, DType::kInt16, {-32768});
  expect_raw<int32_t>(6, DType::kInt32, {INT32_MIN});
  expect_raw<int64_t>(7, DType::kInt64, {INT64_MIN, 5});
  expect_raw<uint32_t>(12, DType::kUInt32, {UINT32_MAX});
  expect_raw<uint64_t>(13, DType::kUInt64, {UINT64_MAX});
}

TEST(OnnxTensor, TypedFields) {
  auto bytes = proto(3, {3});
  for (const int v : {-128, 0, 127}) bytes.add_int32_data(v);
  EXPECT_EQ(values<int8_t>(read(bytes)), (std::vector<int8_t>{-128, 0, 127}));
  auto bools = proto(9, {2});
  bools.add_int32_data(0);
  bools.add_int32_data(7);
  EXPECT_EQ(values<uint8_t>(read(bools)), (std::vector<uint8_t>{0, 1}));
  auto wide = proto(12, {1});
  wide.add_uint64_data(4000000000U);
  EXPECT_EQ(values<uint32_t>(read(wide)), std::vector<uint32_t>{4000000000U});
}

TEST(OnnxTensor, OtherFloatsBecomeFloat32) {
  auto halves = proto(10, {2});
  for (const float v : {0.1F, -3.0F}) halves.add_int32_data(float_to_half(v));
  EXPECT_EQ(values<float>(read(halves)), (std::vector<float>{half_to_float(float_to_half(0.1F)), -3}));
  auto brain = proto(16, {1});
  const uint16_t bits = float_to_bfloat16(1.5F);
  brain.set_raw_data(&bits, 2);
  EXPECT_EQ(values<float>(read(brain)), std::vector<float>{1.5F});
  auto doubles = proto(11, {2});
  doubles.add_double_data(0.1);
  doubles.add_double_data(1e300);
  const auto t = read(doubles);
  EXPECT_EQ(t->as<float>()[0], 0.1F);
  EXPECT_TRUE(std::isinf(t->as<float>()[1]));
  EXPECT_TRUE(has_non_finite(*t));
}

TEST(OnnxTensor, FourBits) {
  auto t = proto(22, {3});
  t.set_raw_data(std::string("\xF1\x08", 2));
  EXPECT_EQ(values<int8_t>(read(t)), (std::vector<int8_t>{1, -1, -8}));
  t.set_data_type(21);
  EXPECT_EQ(values<uint8_t>(read(t)), (std::vector<uint8_t>{1, 15, 8}));
}

TEST(OnnxTensor, Sparse) {
  pb::SparseTensorProto sparse;
  sparse.add_dims(2);
  sparse.add_dims(3);
  ModelBuilder::set_floats(*sparse.mutable_values(), "s", {2}, {5, 6});
  ModelBuilder::set_ints(*sparse.mutable_indices(), "", {2}, {1, 5});
  TensorReader reader("model.onnx", kBudget);
  EXPECT_EQ(values<float>(reader.read_sparse(sparse, "s")), (std::vector<float>{0, 5, 0, 0, 0, 6}));
  sparse.clear_indices();
  ModelBuilder::set_ints(*sparse.mutable_indices(), "", {2, 2}, {0, 2, 1, 0});
  EXPECT_EQ(values<float>(reader.read_sparse(sparse, "s")), (std::vector<float>{0, 0, 5, 6, 0, 0}));
  sparse.mutable_indices()->set_int64_data(2, 2);
  EXPECT_FALSE(reader.read_sparse(sparse, "s").ok());
}

TEST(OnnxTensor, SizesMustFit) {
  auto t = proto(1, {2, 2});
  t.set_raw_data(std::string(12, 'x'));
  EXPECT_NE(message(read(t)).find("needs 16 bytes"), std::string::npos);
  t.clear_raw_data();
  t.add_float_data(1);
  EXPECT_NE(message(read(t)).find("4 elements"), std::string::npos);
  EXPECT_NE(message(read(proto(8, {1}))).find("string"), std::string::npos);
  EXPECT_NE(message(read(proto(14, {1}))).find("complex64"), std::string::npos);
  EXPECT_NE(message(read(proto(99, {1}))).find("99"), std::string::npos);
  EXPECT_NE(message(read(proto(1, {1 << 20}))).find("budget"), std::string::npos);
}

pb::TensorProto external(const std::string& location, const std::string& offset = "", const std::string& length = "") {
  auto t = proto(6, {2});
  t.set_data_location(1);
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"location", location}, {"offset", offset}, {"length", length}}) {
    if (value.empty()) continue;
    auto* pair = t.add_external_data();
    pair->set_key(key);
    pair->set_value(value);
  }
  return t;
}

TEST(OnnxTensor, ExternalData) {
  TempFolder folder;
  const std::string model = folder.file("m.onnx");
  folder.write("w.bin", std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12));
  EXPECT_EQ(values<int32_t>(read(external("w.bin"), model)), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(values<int32_t>(read(external("./w.bin", "4", "8"), model)), (std::vector<int32_t>{2, 3}));
  EXPECT_NE(message(read(external("w.bin", "8"), model)).find("cut short"), std::string::npos);
  EXPECT_NE(message(read(external("w.bin", "99999999999999"), model)).find("cut short"), std::string::npos);
  EXPECT_FALSE(read(external("w.bin", "-4"), model).ok());
  EXPECT_FALSE(read(external("w.bin", "abc"), model).ok());
  EXPECT_FALSE(read(external("w.bin", "0", "4"), model).ok());
  EXPECT_NE(message(read(external("gone.bin"), model)).find("not there"), std::string::npos);
  EXPECT_FALSE(read(external(""), model).ok());
}

TEST(OnnxTensor, ExternalDataStayInTheFolder) {
  TempFolder outside;
  const std::string secret = outside.write("secret.bin", std::string(8, 'x'));
  TempFolder folder;
  const std::string model = folder.file("m.onnx");
  std::filesystem::create_symlink(secret, folder.file("link.bin"));
  std::filesystem::create_directory(folder.file("sub"));
  std::filesystem::create_symlink(folder.write("own.bin", std::string(8, '\1')), folder.file("sub/inside.bin"));
  for (const std::string& location :
       {secret, "../" + std::filesystem::path(secret).parent_path().filename().string() + "/secret.bin",
        std::string("sub/../../x"), std::string("link.bin")}) {
    EXPECT_NE(message(read(external(location), model)).find("outside"), std::string::npos) << location;
  }
  EXPECT_TRUE(read(external("sub/inside.bin"), model).ok());
}

}  // namespace
}  // namespace openrknn::import
