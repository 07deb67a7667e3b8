// Quantization operators: rounding and ranges, which scale meets which element, exact sums, what is refused.
// tests/python/test_operators.py compares them with onnxruntime.
#include <cmath>
#include <limits>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;

template <typename T>
Tensor tensor(const Shape& shape, const std::vector<T>& values) {
  return Tensor::from(shape, values);
}

TEST(Quantize, RoundsToEvenAndSaturates) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = floats({8}, {0.25F, 0.75F, -0.25F, 1e30F, -1e30F, kInf, -kInf, std::nanf("")});
  const Tensor y = run("QuantizeLinear", {x, Tensor::scalar(0.5F), Tensor::scalar(int8_t{3})});
  EXPECT_EQ(values<int8_t>(y), (std::vector<int8_t>{3, 5, 3, 127, -128, 127, -128, 3}));
  const Tensor four = cast(Tensor::scalar(int8_t{0}).view(), DType::kInt4);
  const Tensor z = run("QuantizeLinear", {floats({3}, {-100.0F, 1.0F, 100.0F}), Tensor::scalar(0.5F), four});
  EXPECT_EQ(z.dtype(), DType::kInt4);
  EXPECT_EQ(to_ints(z.view()), (I{-8, 2, 7}));
  // 0 / 0 of a scale of 0 is the zero point as well.
  EXPECT_EQ(values<uint8_t>(run("QuantizeLinear", {floats({2}, {0.0F, 1.0F}), Tensor::scalar(0.0F)})),
            (std::vector<uint8_t>{0, 255}));
}

TEST(Quantize, ScalesPerTensorAxisAndBlock) {
  const Tensor x = tensor<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto back = [&](const Tensor& scale, const Attributes& attrs) {
    return values(run("DequantizeLinear", {x, scale}, attrs));
  };
  EXPECT_EQ(back(Tensor::scalar(2.0F), {}), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(back(floats({3}, {1, 10, 100}), {}), (std::vector<float>{1, 20, 300, 4, 50, 600}));
  EXPECT_EQ(back(floats({2}, {1, 10}), attributes({{"axis", int64_t{-2}}})), (std::vector<float>{1, 2, 3, 40, 50, 60}));
  EXPECT_EQ(back(floats({2, 2}, {1, 10, 100, 1000}), attributes({{"block_size", int64_t{2}}})),
            (std::vector<float>{1, 2, 30, 400, 500, 6000}));
  const Tensor wide =
      run("DequantizeLinear", {tensor<int32_t>({1}, {INT32_MIN}), Tensor::scalar(1.0F), Tensor::scalar(INT32_MAX)});
  EXPECT_EQ(values(wide), (std::vector<float>{-4294967295.0F}));
}

TEST(Quantize, DynamicTakesTheRangeWithZero) {
  const auto results = run_all("DynamicQuantizeLinear", {floats({3}, {0.5F, 1.0F, 2.55F})}, {}, 3);
  EXPECT_EQ(values<uint8_t>(results[0]), (std::vector<uint8_t>{50, 100, 255}));
  EXPECT_EQ(values(results[1]), (std::vector<float>{2.55F / 255.0F}));
  EXPECT_EQ(values<uint8_t>(results[2]), (std::vector<uint8_t>{0}));
  EXPECT_EQ(values(run_all("DynamicQuantizeLinear", {floats({0}, {})}, {}, 3)[1]), (std::vector<float>{1.0F}));
}

// 300 products of 255 * 255 are more than a float counts; the odd one at the end would be lost.
TEST(Integer, SumsAreExact) {
  std::vector<uint8_t> a(301, 255), b(301, 255);
  a.back() = b.back() = 1;
  const Tensor product = run("MatMulInteger", {tensor<uint8_t>({1, 301}, a), tensor<uint8_t>({301, 1}, b)});
  EXPECT_EQ(values<int32_t>(product), (std::vector<int32_t>{300 * 255 * 255 + 1}));
  const Tensor conv = run("ConvInteger", {tensor<uint8_t>({1, 301, 1}, a), tensor<uint8_t>({1, 301, 1}, b)});
  EXPECT_EQ(values<int32_t>(conv), (std::vector<int32_t>{300 * 255 * 255 + 1}));
}

TEST(Integer, PaddingIsTheZeroPoint) {
  const Tensor x = tensor<uint8_t>({1, 1, 2}, {11, 12});
  const Tensor w = tensor<int8_t>({1, 1, 3}, {1, 2, 3});
  const Tensor y = run("ConvInteger", {x, w, Tensor::scalar(uint8_t{10})}, attributes({{"pads", I{1, 1}}}));
  EXPECT_EQ(values<int32_t>(y), (std::vector<int32_t>{8, 5}));
}

TEST(Integer, ZeroPointsOfRowsAndColumns) {
  const Tensor a = tensor<uint8_t>({2, 2}, {1, 2, 3, 4}), b = tensor<uint8_t>({2, 2}, {5, 6, 7, 8});
  const Tensor y = run("MatMulInteger", {a, b, tensor<uint8_t>({2}, {1, 2}), tensor<uint8_t>({1, 2}, {5, 6})});
  EXPECT_EQ(values<int32_t>(y), (std::vector<int32_t>{2, 2, 4, 4}));
}

TEST(Integer, LinearResultsAreRequantized) {
  const Tensor a = tensor<int8_t>({1, 2}, {10, 20}), b = tensor<int8_t>({2, 2}, {1, -100, 2, -100});
  const Tensor half = Tensor::scalar(0.5F), one = Tensor::scalar(1.0F), zero = Tensor::scalar(int8_t{0});
  const Tensor y = run("QLinearMatMul", {a, half, zero, b, one, zero, one, Tensor::scalar(int8_t{-1})});
  EXPECT_EQ(values<int8_t>(y), (std::vector<int8_t>{24, -128}));
}

TEST(Quantize, Refuses) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), one = Tensor::scalar(1.0F);
  const Tensor eight = cast(Tensor::scalar(0.0F).view(), DType::kUInt8);
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const Attributes wide = attributes({{"output_dtype", onnx_number(DType::kFloat8E4M3FN)}});
  EXPECT_TRUE(has(error_of("QuantizeLinear", {x, one}, wide), "quantization to float8e4m3fn is not supported"));
  EXPECT_TRUE(has(error_of("QuantizeLinear", {x, floats({2}, {1, 1})}), "scales [2] for axis 1 of [2, 3]"));
  EXPECT_TRUE(has(error_of("QuantizeLinear", {x, floats({3}, {1, 1, 1}), eight}), "zero points"));
  EXPECT_TRUE(has(error_of("QuantizeLinear", {x, one}, attributes({{"block_size", int64_t{-1}}})), "block_size"));
  EXPECT_TRUE(has(error_of("DequantizeLinear", {x, one}), "quantized values of float32"));
  EXPECT_TRUE(has(error_of("MatMulInteger", {x, x}), "float32 values, int8 or uint8 are supported"));
  const Tensor q = tensor<uint8_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(has(error_of("MatMulInteger", {q, q, tensor<uint8_t>({3}, {1, 2, 3})}), "parameters [3] for the rows"));
  EXPECT_TRUE(has(error_of("MatMulInteger", {q, q, Tensor::scalar(int8_t{1})}), "operand 2"));
}

}  // namespace
}  // namespace openrknn::ops::test
