// RoiAlign and MaxRoiPool: pools over regions given in the coordinates of the picture.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/spatial_plan.hpp"

namespace openrknn::cpu {
namespace {

// Four neighbours of a point and their weights; all zero outside the map.
struct Point {
  std::array<int64_t, 4> at{};
  std::array<double, 4> weight{};
};

// A coordinate between two elements: the lower one, the upper one, and how far the point is from the lower one.
struct Between {
  int64_t low;
  int64_t high;
  double distance;
};

Between between(double x, int64_t extent) {
  const double inside = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(inside);
  if (low >= extent - 1) return {extent - 1, extent - 1, 0.0};
  return {low, low + 1, inside - static_cast<double>(low)};
}

Point point_at(double y, double x, int64_t height, int64_t width) {
  Point p;
  const bool inside = y >= -1.0 && y <= static_cast<double>(height) && x >= -1.0 && x <= static_cast<double>(width);
  if (!inside) return p;
  const Between v = between(y, height);
  const Between h = between(x, width);
  p.at = {v.low * width + h.low, v.low * width + h.high, v.high * width + h.low, v.high * width + h.high};
  p.weight = {(1.0 - v.distance) * (1.0 - h.distance), (1.0 - v.distance) * h.distance, v.distance * (1.0 - h.distance),
              v.distance * h.distance};
  return p;
}

struct AlignSettings {
  double scale;
  double shift;  // half a pixel, or nothing
  int64_t ratio;
  bool average;
};

Result<AlignSettings> read_align_settings(const Attributes& attributes) {
  const std::string mode = attributes.string_or("mode", "avg");
  const std::string coordinates = attributes.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") return kernel_error(fmt::format("mode '{}' is not avg or max", mode));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return kernel_error(
        fmt::format("coordinate_transformation_mode '{}' is not half_pixel or output_half_pixel", coordinates));
  }
  const int64_t ratio = attributes.int_or("sampling_ratio", 0);
  return AlignSettings{attributes.float_or("spatial_scale", 1.0F), coordinates == "half_pixel" ? 0.5 : 0.0, ratio,
                       mode == "avg"};
}

// One region along one axis: where it starts, the extent of a bin, samples in a bin.
struct Bins {
  double start;
  double extent;
  int64_t samples;
};

Result<Bins> bins_of(const AlignSettings& s, double begin, double end, int64_t count) {
  constexpr int64_t kMostSamples = 4096;  // a bin; more is a damaged region
  const double start = begin * s.scale - s.shift;
  double extent = end * s.scale - s.shift - start;
  if (s.shift == 0.0) extent = std::max(extent, 1.0);
  const double bin = extent / static_cast<double>(count);
  if (!(std::fabs(start) < 1e15) || !(bin <= static_cast<double>(kMostSamples)) || s.ratio > kMostSamples)
    return kernel_error(fmt::format("a region from {} to {} in {} bins", begin, end, count));
  return Bins{start, bin, s.ratio > 0 ? s.ratio : static_cast<int64_t>(std::max(0.0, std::ceil(bin)))};
}

// Where sample `k` of bin `i` lies.
double sample_position(const Bins& bins, int64_t i, int64_t k) {
  const double part = (static_cast<double>(k) + 0.5) / static_cast<double>(bins.samples);
  return bins.start + (static_cast<double>(i) + part) * bins.extent;
}

// The points of every bin of a region, bin after bin.
std::vector<Point> region_points(const Bins& v, const Bins& h, const Shape& out, const Shape& map) {
  std::vector<Point> points;
  for (int64_t row = 0; row < out[2]; ++row) {
    for (int64_t column = 0; column < out[3]; ++column) {
      for (int64_t i = 0; i < v.samples; ++i) {
        const double y = sample_position(v, row, i);
        for (int64_t j = 0; j < h.samples; ++j)
          points.push_back(point_at(y, sample_position(h, column, j), map[2], map[3]));
      }
    }
  }
  return points;
}

// Mean of the points' values, or the largest of their weighted neighbours (which is what ONNX's data have).
template <typename T>
double pool_points(const T* plane, const Point* points, int64_t count, bool average) {
  double result = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    std::array<double, 4> terms{};
    for (size_t k = 0; k < 4; ++k) terms[k] = points[i].weight[k] * static_cast<double>(plane[points[i].at[k]]);
    const double most = std::max(std::max(terms[0], terms[1]), std::max(terms[2], terms[3]));
    if (average) {
      result += terms[0] + terms[1] + terms[2] + terms[3];
    } else {
      result = i == 0 ? most : std::max(result, most);
    }
  }
  return average ? result / static_cast<double>(std::max<int64_t>(count, 1)) : result;
}

Status roi_align(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(const Shape out, roi_align_shape(args.attributes, x.shape, args.inputs[1].shape, args.inputs[2].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, out));
  OPENRKNN_TRY(const AlignSettings settings, read_align_settings(args.attributes));
  if (out.elements() == 0) return {};
  const auto rois = to_doubles(args.inputs[1]);
  const auto batch = to_ints(args.inputs[2]);
  const int64_t plane = x.shape[2] * x.shape[3];
  constexpr int64_t kMostPoints = int64_t{1} << 22;  // of a region
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    const int64_t bins = out[2] * out[3];
    for (int64_t r = 0; r < out[0]; ++r) {
      const int64_t sample = batch[static_cast<size_t>(r)];
      if (sample < 0 || sample >= x.shape[0] || plane == 0)
        return kernel_error(fmt::format("region {} lies in sample {} of {}", r, sample, x.shape.to_string()));
      const double* box = rois.data() + r * 4;
      OPENRKNN_TRY(const Bins horizontal, bins_of(settings, box[0], box[2], out[3]));
      OPENRKNN_TRY(const Bins vertical, bins_of(settings, box[1], box[3], out[2]));
      const int64_t count = horizontal.samples * vertical.samples;
      if (count > kMostPoints / bins) return kernel_error(fmt::format("region {} has too many samples", r));
      const std::vector<Point> points = region_points(vertical, horizontal, out, x.shape);
      const T* map = operand.data<T>() + sample * out[1] * plane;
      parallel_for(out[1], 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t b = 0; b < bins; ++b) {
            to[(r * out[1] + c) * bins + b] =
                static_cast<T>(pool_points(map + c * plane, points.data() + b * count, count, settings.average));
          }
        }
      });
    }
    return {};
  });
}

struct Range {
  int64_t first;
  int64_t last;  // one past
};

// The elements of bin `i` of `count` over the region from `start` to `end`, both rounded and included.
Range bin_range(int64_t start, int64_t end, int64_t i, int64_t count, int64_t extent) {
  const double bin = static_cast<double>(std::max<int64_t>(end - start + 1, 1)) / static_cast<double>(count);
  const auto first = static_cast<int64_t>(std::floor(static_cast<double>(i) * bin)) + start;
  const auto last = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * bin)) + start;
  return {std::clamp<int64_t>(first, 0, extent), std::clamp<int64_t>(last, 0, extent)};
}

Status max_roi_pool(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(const Shape out, max_roi_pool_shape(args.attributes, x.shape, args.inputs[1].shape));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, out));
  if (out.elements() == 0) return {};
  const double scale = args.attributes.float_or("spatial_scale", 1.0F);
  const auto rois = to_doubles(args.inputs[1]);
  const int64_t plane = x.shape[2] * x.shape[3];
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    for (int64_t r = 0; r < out[0]; ++r) {
      std::array<int64_t, 4> box{};
      for (size_t k = 0; k < 4; ++k) {
        const double at = std::round(rois[static_cast<size_t>(r) * 5 + 1 + k] * scale);
        if (!(std::fabs(at) < 1e9)) return kernel_error(fmt::format("region {} reaches to {}", r, at));
        box[k] = static_cast<int64_t>(at);
      }
      const double sample = rois[static_cast<size_t>(r) * 5];
      if (!(sample >= 0.0 && sample < static_cast<double>(x.shape[0])))
        return kernel_error(fmt::format("region {} lies in sample {} of {}", r, sample, x.shape.to_string()));
      const T* map = operand.data<T>() + static_cast<int64_t>(sample) * out[1] * plane;
      for (int64_t i = 0; i < out[1] * out[2] * out[3]; ++i) {
        const Range rows = bin_range(box[1], box[3], i / out[3] % out[2], out[2], x.shape[2]);
        const Range columns = bin_range(box[0], box[2], i % out[3], out[3], x.shape[3]);
        const T* from = map + i / (out[2] * out[3]) * plane;
        const bool empty = rows.first >= rows.last || columns.first >= columns.last;
        T most = empty ? T{0} : from[rows.first * x.shape[3] + columns.first];
        for (int64_t y = rows.first; y < rows.last; ++y) {
          for (int64_t c = columns.first; c < columns.last; ++c) most = std::max(most, from[y * x.shape[3] + c]);
        }
        to[r * out[1] * out[2] * out[3] + i] = most;
      }
    }
    return {};
  });
}

}  // namespace

void register_roi(Registry& registry) {
  registry.add("RoiAlign", roi_align);
  registry.add("MaxRoiPool", max_roi_pool);
}

}  // namespace openrknn::cpu
