// Register-tile kernels of the fp32 products, one table per instruction set. Included by files that are compiled with
// flags of their own: nothing here may pull inline code of the standard library into them.
#pragma once

#include <stdint.h>

namespace openrknn {

// A tile of a convolution, channels x pixels: y[i * ldy + p] = clamp(bias[i] + sum over l, in order, of
// w[l * channels + i] * x[offsets[l] + p] + residual[i * ldy + p]), 0 <= i < channels <= rows and
// 0 <= p < n <= vectors * width; the bounds as in GemmKernels::clamp.
struct ChannelTile {
  int channels;
  bool in_place;  // x ends with the last pixel; otherwise it is read in whole vectors
  int64_t n, k;
  const float* x;
  const int64_t* offsets;
  const float* w;
  const float* bias;
  const float* residual;  // may be null
  float low, high;
  float* y;
  int64_t ldy;
  // Not null, and in place: the pixels are left there too, row l at copy[l * vectors * width], in whole vectors.
  float* copy;
};

// Rows of a plane of a depthwise convolution with a kernel of side `side` (3 or 5) and equal steps of 1 or 2:
// out[i * out_w + x] = clamp(bias + sum over r, t < side, in order, of
// in[i * step + r - pad_y][x * step + t - pad_x] * weights[r * side + t]) for first <= i < first + rows and
// 0 <= x < out_w, with zeros outside of the plane; the bounds as in GemmKernels::clamp.
struct DepthPlane {
  int side, step;
  int64_t in_h, in_w, out_w;
  int64_t first, rows;
  int64_t pad_y, pad_x;
  const float* in;
  const float* zeros;  // in_w of them
  const float* weights;
  float bias, low, high;
  float* out;
};

enum class Combine { kAdd, kSubtract, kMultiply, kDivide };

struct GemmKernels {
  const char* isa;  // that these are compiled for
  int rows;         // largest tile height
  int width;        // floats a vector
  int vectors;      // largest tile width in vectors

  // A tile of rows x (vectors * width): c[i][j] = start + sum over l, in order, of a[i][l] * b[l][j]: one chain of
  // fused multiply-adds per element. The chain starts from bias[i], or goes on from c when bias is null.
  void (*tile)(int rows, int vectors, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
               int64_t ldc, const float* bias);

  // out[x] = bias + sum over t, in order, of weights[t] * inputs[t][x], 0 <= x < n. Operands are read and results
  // written in whole vectors: all arrays extend to the next multiple of 4 vectors.
  void (*taps)(int64_t n, int64_t taps, const float* const* inputs, const float* weights, float bias, float* out);

  void (*depth_plane)(const DepthPlane& plane);

  // A tile of a convolution, pixels x channels: c[j * ldc + i] = bias[j] + sum over l, in order, of
  // x[offsets[l] + i] * w[l * n + j] for 0 <= i < pixels <= rows and 0 <= j < n = vectors * width; one chain of fused
  // multiply-adds per element. `rows` floats of each row of c are written: those from `pixels` on hold anything.
  void (*pixel_tile)(int pixels, int vectors, int64_t k, const float* x, const int64_t* offsets, const float* w,
                     const float* bias, float* c, int64_t ldc);

  void (*channel_tile)(const ChannelTile& tile);

  // to[i] = from[start + i * step], zeros outside of [0, extent); 0 <= i < count, step >= 1.
  void (*line)(const float* from, int64_t extent, int64_t start, int64_t step, int64_t count, float* to);

  // The same for `rows` lines, from_pitch and to_pitch floats apart.
  void (*lines)(const float* from, int64_t from_pitch, int64_t rows, int64_t extent, int64_t start, int64_t step,
                int64_t count, float* to, int64_t to_pitch);

  // to[i] = x < low ? low : x > high ? high : x with x = from[i] + residual[i], or from[i] when residual is null.
  // The upper bound wins when they cross; NaN stays. from == to is allowed.
  void (*clamp)(int64_t n, const float* from, const float* residual, float low, float high, float* to);

  // to[i] = from[i] * factor + term in double, each step rounded, and once more to float.
  void (*scale)(int64_t n, const float* from, double factor, double term, float* to);

  // The sum of n floats in double, in 16 lanes: element i to lane i % 16, lanes then added pairwise (i and i + 8, i and
  // i + 4, ...).
  double (*sum)(int64_t n, const float* x);

  // A row of a pool: to[i] = the largest of lines[r][i * step + t], r < rows and t < taps in this order; the first of
  // equal ones, and NaN never. Lines are read in whole vectors: they extend `step` times to[]'s next multiple of a
  // vector, and taps - 1 more. Steps of 1 or 2.
  void (*max_row)(int64_t n, int64_t step, int64_t rows, int64_t taps, const float* const* lines, float* to);

  // to[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; to may be a or b.
  void (*combine)(Combine op, int64_t n, const float* a, int64_t a_step, const float* b, int64_t b_step, float* to);
};

const GemmKernels& gemm_kernels_scalar();
#if defined(__x86_64__)
const GemmKernels& gemm_kernels_avx2();
const GemmKernels& gemm_kernels_avx512();
#endif

}  // namespace openrknn
