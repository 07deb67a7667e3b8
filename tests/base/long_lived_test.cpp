#include "base/long_lived.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace openrknn {
namespace {

TEST(LongLived, PiecesAreAlignedAndApart) {
  const std::vector<size_t> sizes{0, 1, 63, 64, 65, 1000, 70000, 1 << 20, (1 << 20) + 1, 3 << 20, 40 << 20};
  std::vector<unsigned char*> pieces;
  for (const size_t size : sizes) {
    auto* piece = static_cast<unsigned char*>(allocate_long_lived(size));
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0U) << size;
    std::memset(piece, static_cast<int>(pieces.size() + 1), size);
    pieces.push_back(piece);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t at = 0; at < sizes[i]; at += 61) ASSERT_EQ(pieces[i][at], i + 1) << sizes[i];
    if (sizes[i] > 0) {
      EXPECT_EQ(pieces[i][sizes[i] - 1], i + 1);
    }
  }
  for (size_t i = 0; i < pieces.size(); i += 2) free_long_lived(pieces[i]);
  for (size_t i = 1; i < pieces.size(); i += 2) free_long_lived(pieces[i]);
  free_long_lived(nullptr);
}

TEST(LongLived, RefusesWhatCannotBe) {
  EXPECT_THROW(allocate_long_lived(SIZE_MAX - 5), std::bad_alloc);
  EXPECT_THROW(allocate_long_lived(SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW(LongLived<uint64_t>().allocate(SIZE_MAX / 2), std::bad_alloc);
}

TEST(LongLived, ServesVectorsOfSeveralThreads) {
  const auto work = [](int seed) {
    for (int round = 0; round < 50; ++round) {
      std::vector<int, LongLived<int>> values;
      values.resize(static_cast<size_t>(1000 + 40000 * (round % 3)));
      for (int& v : values) v = seed;
      const auto copy = values;
      for (const int v : copy) ASSERT_EQ(v, seed);
      values.assign(20000, 7);
      EXPECT_EQ(values.back(), 7);
    }
  };
  std::thread other(work, 1);
  work(2);
  other.join();
}

}  // namespace
}  // namespace openrknn
