// Products with a right matrix that stays: it is packed once, in panels of a tile's width, [panel][k][columns of the
// panel] with zeros behind the last column. Every element is one chain of fused multiply-adds over k in ascending order
// from zero, as in gemm.hpp: the bits are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm_kernels.hpp"

namespace openrknn {

class PackedMatrix {
 public:
  // Element (l, j) of the k x n matrix lies at data[l * row_step + j * column_step].
  PackedMatrix(const float* data, int64_t k, int64_t n, int64_t row_step, int64_t column_step);

  // c [m][n] = a [m][k] * matrix, rows lda and ldc apart; then, unless null, `row` (n values) is added to every row.
  struct Product {
    int64_t m = 0;
    const float* a = nullptr;
    int64_t lda = 0;
    float* c = nullptr;
    int64_t ldc = 0;
    const float* row = nullptr;
  };
  void multiply(const Product& product) const;

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }

 private:
  struct Panel {
    int64_t first;  // column
    int vectors;
  };
  void multiply_panel(const Product& product, const Panel& panel, int64_t begin, int64_t end) const;

  const GemmKernels& kernels_;
  int64_t k_, n_;
  std::vector<Panel> panels_;
  std::vector<float> floats_;
};

}  // namespace openrknn
