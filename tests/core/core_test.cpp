#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>

#include "base/half.hpp"
#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/quant_params.hpp"
#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace openrknn {
namespace {

constexpr DType kAll[] = {DType::kFloat32,        DType::kFloat64,    DType::kFloat16,        DType::kBFloat16,
                          DType::kInt8,           DType::kInt16,      DType::kInt32,          DType::kInt64,
                          DType::kUInt8,          DType::kUInt16,     DType::kUInt32,         DType::kUInt64,
                          DType::kBool,           DType::kInt4,       DType::kUInt4,          DType::kFloat8E4M3FN,
                          DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kString};

TEST(DTypes, NamesAndNumbersAreUniqueAndReadBack) {
  std::set<int64_t> numbers;
  for (const DType d : kAll) {
    EXPECT_EQ(*dtype_from_name(dtype_name(d)), d);
    EXPECT_EQ(*dtype_from_onnx_number(onnx_number(d)), d);
    EXPECT_TRUE(numbers.insert(onnx_number(d)).second) << dtype_name(d);
    EXPECT_FALSE(is_float(d) && is_integer(d));
  }
  EXPECT_FALSE(dtype_from_name("floot32").has_value());
  EXPECT_FALSE(dtype_from_onnx_number(0).has_value());
  EXPECT_FALSE(dtype_from_onnx_number(999).has_value());
  EXPECT_EQ(onnx_number(DType::kFloat32), 1);
  EXPECT_EQ(onnx_number(DType::kInt64), 7);
  EXPECT_EQ(dtype_min(DType::kInt4), -8);
  EXPECT_EQ(dtype_max(DType::kUInt16), 65535);
  EXPECT_TRUE(is_signed_integer(DType::kInt4));
  EXPECT_FALSE(is_signed_integer(DType::kUInt8));
  EXPECT_FALSE(is_integer(DType::kBool));
}

// The value of a half from its definition, in double.
double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const double sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
  const int mantissa = h & 0x3FF;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryHalfWidensExactlyAndReadsBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float f = half_to_float(h);
    const double expected = half_value(h);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f)) << i;
      ASSERT_TRUE(std::isnan(half_value(float_to_half(f)))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(f), expected) << i;
    ASSERT_EQ(std::signbit(f), (h & 0x8000) != 0) << i;
    ASSERT_EQ(float_to_half(f), h);
  }
}

// Between every two neighbouring halves: the midpoint goes to the even one, its float neighbours to the nearer one.
TEST(Half, EveryMidpointRoundsToEven) {
  const float inf = std::numeric_limits<float>::infinity();
  for (uint32_t i = 0; i < 0x7C00; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    // Above the largest half the next step would be 65536.
    const double top = high == 0x7C00 ? 65536.0 : half_value(high);
    const auto middle = static_cast<float>((half_value(low) + top) / 2.0);
    ASSERT_EQ(static_cast<double>(middle), (half_value(low) + top) / 2.0);
    ASSERT_EQ(float_to_half(middle), (low & 1) == 0 ? low : high) << i;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0F)), low) << i;
    ASSERT_EQ(float_to_half(std::nextafter(middle, inf)), high) << i;
    ASSERT_EQ(float_to_half(-middle), (low & 1) == 0 ? low | 0x8000 : high | 0x8000) << i;
  }
  EXPECT_EQ(float_to_half(inf), 0x7C00);
  EXPECT_EQ(float_to_half(-inf), 0xFC00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(BFloat16, EveryValueReadsBackAndMidpointsRoundToEven) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto b = static_cast<uint16_t>(i);
    const float f = bfloat16_to_float(b);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(f))));
      continue;
    }
    ASSERT_EQ(float_to_bfloat16(f), b);
    if (std::isinf(f)) continue;
    const float middle = std::bit_cast<float>((i << 16) | 0x8000U);
    ASSERT_EQ(float_to_bfloat16(middle), (b & 1) == 0 ? b : b + 1);
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>((i << 16) | 0x7FFFU)), b);
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>((i << 16) | 0x8001U)), b + 1);
  }
}

TEST(Shapes, CheckedWhenTheyComeFromFiles) {
  const std::vector<int64_t> good{2, 0, 3};
  EXPECT_EQ(Shape::make(good)->elements(), 0);
  EXPECT_EQ((Shape{}).elements(), 1);
  const std::vector<int64_t> negative{2, -1};
  EXPECT_NE(Shape::make(negative).error().why.find("negative"), std::string::npos);
  const std::vector<int64_t> deep(9, 1);
  EXPECT_NE(Shape::make(deep).error().why.find("9 dimensions"), std::string::npos);
  // An extent of 0 must not hide an overflow of the others.
  const std::vector<int64_t> huge{int64_t{1} << 40, int64_t{1} << 40, 0};
  EXPECT_NE(Shape::make(huge).error().why.find("overflows"), std::string::npos);
}

TEST(Shapes, StridesAxesAndText) {
  const Shape s{2, 3, 4};
  const auto strides = s.strides();
  EXPECT_EQ((std::vector<int64_t>(strides.begin(), strides.begin() + 3)), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(s.elements(1, 3), 12);
  EXPECT_EQ(s.dim(-1), 4);
  EXPECT_EQ(s.to_string(), "[2, 3, 4]");
  EXPECT_FALSE(s == (Shape{2, 3}));
  EXPECT_EQ(*normalize_axis(-3, 3), 0);
  EXPECT_FALSE(normalize_axis(3, 3).ok());
  EXPECT_FALSE(normalize_axis(-4, 3).ok());
  EXPECT_FALSE(normalize_axis(0, 0).ok());
}

TEST(Shapes, Broadcasting) {
  EXPECT_EQ(*broadcast(Shape{2, 1, 3}, Shape{4, 1}), (Shape{2, 4, 3}));
  EXPECT_EQ(*broadcast(Shape{}, Shape{5}), (Shape{5}));
  EXPECT_EQ(*broadcast(Shape{0}, Shape{1}), (Shape{0}));
  EXPECT_FALSE(broadcast(Shape{0}, Shape{2}).ok());
  EXPECT_NE(broadcast(Shape{2, 3}, Shape{2, 4}).error().where.find("[2, 3] and [2, 4]"), std::string::npos);
}

TEST(Tensors, CopyOnWriteSharesUntilWritten) {
  Tensor a = Tensor::from<float>(Shape{2}, std::vector<float>{1, 2});
  const Tensor b = a;
  const Tensor row = a.reshaped(Shape{1, 2});
  EXPECT_EQ(b.data(), a.data());
  a.mutable_as<float>()[0] = 9;
  EXPECT_NE(b.data(), a.data());
  EXPECT_EQ(b.as<float>()[0], 1.0F);
  EXPECT_EQ(row.as<float>()[0], 1.0F);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0U);
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor(DType::kFloat32, Shape{3}).as<float>()[2], 0.0F);
}

TEST(Tensors, AnAllocationThatFailsIsAnError) {
  const std::vector<int64_t> dims{int64_t{1} << 50};
  const auto t = Tensor::make(DType::kInt8, *Shape::make(dims));
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(t.error().code, ErrorCode::kResource);
}

TEST(Tensors, CastFollowsItsRules) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>(
      Shape{7}, std::vector<float>{-1.9F, 1.9F, 1e20F, -1e20F, inf, -inf, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(to_ints(cast(x.view(), DType::kInt16).view()),
            (std::vector<int64_t>{-1, 1, 32767, -32768, 32767, -32768, 0}));
  EXPECT_EQ(to_ints(cast(x.view(), DType::kUInt8).view()), (std::vector<int64_t>{0, 1, 255, 0, 255, 0, 0}));
  EXPECT_EQ(to_ints(cast(x.view(), DType::kInt64).view())[2], INT64_MAX);
  EXPECT_EQ(to_ints(cast(x.view(), DType::kBool).view()), (std::vector<int64_t>(7, 1)));
  EXPECT_EQ(to_ints(cast(Tensor::ints({300, -1}).view(), DType::kUInt8).view()), (std::vector<int64_t>{44, 255}));
  EXPECT_EQ(to_doubles(cast(Tensor::ints({65519, 65520}).view(), DType::kFloat16).view()),
            (std::vector<double>{65504, static_cast<double>(inf)}));
}

TEST(Tensors, CastsThatLoseNothingReadBack) {
  std::mt19937 random(1);
  std::vector<int64_t> values(500);
  for (const DType d : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16, DType::kUInt32}) {
    std::uniform_int_distribution<int64_t> all(dtype_min(d), dtype_max(d));
    for (int64_t& v : values) v = all(random);
    const Tensor narrow = cast(Tensor::ints(values).view(), d);
    EXPECT_EQ(to_ints(narrow.view()), values) << dtype_name(d);
    EXPECT_EQ(to_ints(cast(narrow.view(), DType::kFloat64).view()), values) << dtype_name(d);
  }
}

TEST(Quant, ParametersOfARange) {
  const QuantParams p = asymmetric_params(DType::kInt8, -1.0, 3.0);
  EXPECT_FLOAT_EQ(p.scale(), 4.0F / 255.0F);
  EXPECT_EQ(p.zero_point(), -64);  // -128 + 63.75
  EXPECT_EQ(asymmetric_params(DType::kInt8, 1.0, 3.0).zero_point(), -128);
  EXPECT_EQ(asymmetric_params(DType::kInt8, -3.0, -1.0).zero_point(), 127);
  EXPECT_FLOAT_EQ(asymmetric_params(DType::kInt8, 0.0, 0.0).scale(), 2.0F / 255.0F);
  EXPECT_EQ(asymmetric_params(DType::kUInt8, -1.0, 1.0).zero_point(), 128);
  EXPECT_GT(asymmetric_params(DType::kInt8, 0.0, 1e-300).scale(), 0.0F);
}

TEST(Quant, ValidationNamesTheFault) {
  const Shape shape{4, 2, 3, 3};
  QuantParams p = QuantParams::per_tensor(DType::kInt8, 0.5F, 3);
  EXPECT_TRUE(p.validate(shape).ok());
  p.zero_points[0] = 128;
  EXPECT_NE(p.validate(shape).error().why.find("128"), std::string::npos);
  p = QuantParams::per_tensor(DType::kInt8, 0.0F, 0);
  EXPECT_FALSE(p.validate(shape).ok());
  p.scales[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(p.validate(shape).ok());
  p = {DType::kInt8, Granularity::kChannel, 0, 0, {1, 1, 1}, {0, 0, 0}};
  EXPECT_NE(p.validate(shape).error().why.find("4 expected"), std::string::npos);
  p.axis = 4;
  EXPECT_FALSE(p.validate(shape).ok());
  p = {DType::kInt4, Granularity::kGroup, 0, 32, std::vector<float>(8, 1.0F), std::vector<int32_t>(8, 0)};
  EXPECT_TRUE(p.validate(Shape{4, 33}).ok());
  EXPECT_FALSE(p.validate(Shape{4, 65}).ok());
}

TEST(Attrs, TypedReadsFallBack) {
  Attributes a;
  a.set("i", 3);
  a.set("s", "text");
  a.set("f", 0.5F);
  EXPECT_EQ(a.int_or("i", 0), 3);
  EXPECT_EQ(a.int_or("f", 7), 7);
  EXPECT_EQ(a.string_or("s", ""), "text");
  EXPECT_EQ(a.float_or("f", 0), 0.5F);
  a.erase("f");
  a.erase("f");
  EXPECT_FALSE(a.has("f"));
  a.set("i", 4);
  EXPECT_EQ(a.int_or("i", 0), 4);
}

}  // namespace
}  // namespace openrknn
