#include "kernels/transpose.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace openrknn {
namespace {

// Every shape around the tiles' sides, rows wider than the matrix; what lies between rows stays.
TEST(Transpose, MovesEveryElementAndNothingElse) {
  std::mt19937 rng(1);
  for (const int64_t size : {1, 2, 4, 8}) {
    for (int round = 0; round < 300; ++round) {
      const bool picture = round % 5 == 2;
      const auto rows = picture ? 3 : static_cast<int64_t>(1 + rng() % (round % 10 == 0 ? 150 : 40));
      const auto columns = static_cast<int64_t>(1 + rng() % (round % 10 == 1 ? 150 : 40));
      const int64_t from_step = (columns + static_cast<int64_t>(rng() % 3)) * size;
      const int64_t to_step = (rows + static_cast<int64_t>(rng() % 3 * (picture ? rng() % 2 : 1))) * size;
      std::vector<uint8_t> from(static_cast<size_t>(rows * from_step - (from_step - columns * size)));
      for (uint8_t& x : from) x = static_cast<uint8_t>(rng());
      std::vector<uint8_t> to(static_cast<size_t>(columns * to_step), 0xA5), want = to;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c)
          std::memcpy(want.data() + c * to_step + r * size, from.data() + r * from_step + c * size,
                      static_cast<size_t>(size));
      }
      transpose_matrix(from.data(), from_step, rows, columns, to.data(), to_step, static_cast<size_t>(size));
      ASSERT_EQ(to, want) << rows << " x " << columns << " of " << size << " bytes";
    }
  }
}

}  // namespace
}  // namespace openrknn
