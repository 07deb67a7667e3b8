// Reading and writing parts of tensors in every form they have in memory.
#include "sim/view.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace openrknn::sim {
namespace {

// A row-major tensor and one in NHWC with the same elements, and a part of both.
class Pair {
 public:
  Pair(DType dtype, const model::Cube& k) {
    tensor_.dtype = dtype;
    tensor_.shape = Shape{k.n, k.c, k.h, k.w};
    tensor_.cube = k;
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    const int64_t elements = k.n * k.c * k.h * k.w;
    lines_.resize(static_cast<size_t>(elements * size));
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i] = static_cast<std::byte>(i * 7 + i / 251);
    pixels_.resize(lines_.size());
    plain = row_major_view(tensor_, lines_.data());
    dense = dense_view(tensor_, pixels_.data());
    from_plain(dense, lines_.data());
  }

  // Rows `stride` elements apart, in front of bytes that must stay.
  std::vector<std::byte> gathered(const View& v, const Part& p, int64_t stride) const {
    std::vector<std::byte> out(static_cast<size_t>((p.ws * stride + 1) * v.size), std::byte{0x5A});
    gather(v, p, out.data(), stride);
    return out;
  }

  std::vector<std::byte> lines() const { return lines_; }
  View plain, dense;

 private:
  model::TensorDesc tensor_;
  std::vector<std::byte> lines_, pixels_;
};

TEST(View, PartsOfLinesAndOfPixelsAreTheSame) {
  std::mt19937 random(7);
  const auto up_to = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 2000; ++i) {
    const DType dtype = i % 3 == 0 ? DType::kInt8 : i % 3 == 1 ? DType::kFloat16 : DType::kFloat32;
    const model::Cube k{1 + up_to(2), 1 + up_to(80), 1 + up_to(3), 1 + up_to(40)};
    const Pair pair(dtype, k);
    Part p{up_to(k.n), up_to(k.h), up_to(k.w), 0, up_to(k.c), 0};
    p.ws = k.w == 1 ? 1 : 1 + up_to(k.w - p.w);
    p.cs = 1 + up_to(k.c - p.c);
    const int64_t stride = p.cs + up_to(4);
    const auto pixels = pair.gathered(pair.dense, p, stride);
    ASSERT_EQ(pixels, pair.gathered(pair.plain, p, stride)) << i;

    Pair other(dtype, k);
    for (const View& v : {other.plain, other.dense}) {
      const std::vector<std::byte> none(static_cast<size_t>(p.ws * stride * v.size));
      scatter(v, p, none.data(), stride);
      scatter(v, p, pixels.data(), stride);
      std::vector<std::byte> back(pair.lines().size());
      to_plain(v, back.data());
      ASSERT_EQ(back, pair.lines()) << i;
    }
  }
}

}  // namespace
}  // namespace openrknn::sim
