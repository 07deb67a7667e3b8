#include "kernels/npu/weight_sums.hpp"

#include <algorithm>
#include <cstdlib>

namespace openrknn::npu {
namespace {

constexpr int64_t kPiece = 1 << 22;  // of so many bytes the sums fit 32 bits

uint8_t flipped(int8_t w) { return static_cast<uint8_t>(w) ^ 0x80U; }  // w + 128

// Sums of absolute differences of bytes, which processors have an instruction for.
uint32_t distances(const int8_t* weights, int64_t count, uint8_t from) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(std::abs(flipped(weights[i]) - from));
  return sum;
}

}  // namespace

void WeightSums::add(const int8_t* weights, int64_t count, int32_t minus_zero) {
  const int64_t from = int64_t{128} - minus_zero;  // w + minus_zero = (w + 128) - from
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t n = std::min(kPiece, count - first);
    const int64_t sum = int64_t{distances(weights + first, n, 0)} - n * from;
    int64_t absolute = std::abs(sum);  // where all have one sign
    if (from > 0 && from < 256) absolute = distances(weights + first, n, static_cast<uint8_t>(from));
    positive += (absolute + sum) / 2;
    negative += (sum - absolute) / 2;
  }
}

}  // namespace openrknn::npu
