// Input planes copied with their padding and parted by stride phase, a band of output rows at a time: every tap reads
// contiguous floats, and kernels know neither borders nor strides.
#pragma once

#include <utility>
#include <vector>

#include "kernels/conv_plan.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {

// Rows of an input plane: `rows` of them, rows_step apart from y on, and `count` elements of each, step apart from x
// on; zeros outside of the plane.
struct PlaneRows {
  int64_t y, rows_step, rows;
  int64_t x, step, count;
};
void copy_rows(const GemmKernels& kernels, const WindowAxis& h, const WindowAxis& w, const float* plane,
               const PlaneRows& rows, float* to, int64_t to_pitch);

struct ConvPlanes {
  WindowAxis h, w;
  int64_t pitch = 0;       // floats from one row of a phase plane to the next
  int64_t extra_rows = 0;  // rows of a phase plane beyond the output's
  int64_t band = 0;        // output rows at a time
  int64_t bands = 0;
  std::vector<std::pair<int64_t, int64_t>> phases;  // those that some tap reads
  struct Tap {
    size_t phase;
    int64_t row, column;
  };
  std::vector<Tap> taps;  // in kernel order

  int64_t phase_floats() const { return (band + extra_rows) * pitch; }
  int64_t floats() const { return static_cast<int64_t>(phases.size()) * phase_floats(); }  // of one input channel
  int64_t offset(const Tap& tap) const {
    return static_cast<int64_t>(tap.phase) * phase_floats() + tap.row * pitch + tap.column;
  }
  // What output rows [first, first + rows) read of one input channel.
  void copy(const GemmKernels& kernels, const float* plane, int64_t first, int64_t rows, float* to) const;
};

// The outermost axis is of extent 1 and does nothing.
bool is_planar(const ConvPlan& plan);

// Without bands: the caller sets `band` with set_band.
ConvPlanes conv_planes(const ConvPlan& plan);
void set_band(ConvPlanes& planes, int64_t rows);

constexpr int64_t kBandFloats = 98304;  // copied input of a band: less than half of the second cache
constexpr int64_t kBandPixels = 512;    // bounds the sums of a band
// Bands of equal heights of rows whose input, of `channels` channels, fits the second cache.
void choose_band(ConvPlanes& planes, int64_t channels);
// The least band fits the scratch in reason; others go the general way.
bool fits_band(const ConvPlan& plan);

// One tap that moves nothing: output pixels are input pixels.
bool is_pointwise(const ConvPlan& plan);

// At least n, and no two of many rows so far apart share few sets of the first cache.
int64_t spread_pitch(int64_t n);
// Floats from one input channel of a band to the next, and the offset of each tap of each channel.
inline int64_t channel_pitch(const ConvPlanes& planes) { return spread_pitch(planes.floats()); }
std::vector<int64_t> tap_offsets(const ConvPlanes& planes, int64_t channels);

}  // namespace openrknn::cpu
