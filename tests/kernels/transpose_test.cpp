#include "kernels/transpose.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/property.hpp"

namespace openrknn {
namespace {

using namespace testing;

// Every shape around the tiles' sides, rows wider than the matrix; what lies between rows stays.
const Property kTranspose({"transpose_matrix"}, 1000);
TEST(Transpose, MovesEveryElementAndNothingElse) {
  Memory memory;
  for (Cases cases(kTranspose, "any"); cases.next();) {
    memory.reset();
    Rng& rng = cases.rng();
    const int64_t size = int64_t{1} << pick(rng, 0, 3);
    const bool picture = one_in(rng, 5);
    const int64_t rows = picture ? 3 : any_extent(rng, one_in(rng, 10) ? 150 : 40);
    const int64_t columns = any_extent(rng, one_in(rng, 10) ? 150 : 40);
    const int64_t from_step = (columns + pick(rng, 0, 2)) * size;
    const int64_t to_step = (rows + (picture && one_in(rng, 2) ? 0 : pick(rng, 0, 2))) * size;
    std::vector<uint8_t> from(static_cast<size_t>(rows == 0 ? 0 : (rows - 1) * from_step + columns * size));
    for (uint8_t& x : from) x = static_cast<uint8_t>(rng());
    std::vector<uint8_t> want(static_cast<size_t>(columns == 0 ? 0 : (columns - 1) * to_step + rows * size), 0xA5);
    const auto to = memory.copy(rng, want);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(want.data() + c * to_step + r * size, from.data() + r * from_step + c * size,
                    static_cast<size_t>(size));
    }
    transpose_matrix(memory.copy(rng, from).data(), from_step, rows, columns, to.data(), to_step,
                     static_cast<size_t>(size));
    ASSERT_TRUE(same_values(to, want)) << rows << " x " << columns << " of " << size << " bytes";
  }
}

}  // namespace
}  // namespace openrknn
