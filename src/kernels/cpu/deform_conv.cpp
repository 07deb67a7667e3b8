// DeformConv: a convolution whose taps are moved by offsets, as a matrix product over rows that are sampled on demand.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/cpu/support_promote.hpp"
#include "kernels/gemm.hpp"
#include "kernels/spatial_plan.hpp"

namespace openrknn::cpu {
namespace {

struct Operands {
  const float* x;
  const float* weights;
  const float* offset;
  const float* bias;  // may be null
  const float* mask;  // may be null
};

// The patches of one sample and group: row k is channel k / taps at tap k % taps, a column is an output position.
class SampledPatches : public RowSource {
 public:
  SampledPatches(const DeformConvPlan& plan, const Shape& x, const Operands& operands, int64_t sample, int64_t group)
      : plan_(plan), x_(x), operands_(operands), sample_(sample), group_(group) {
    for (const WindowAxis& axis : plan.axes) positions_ *= axis.out;
  }

  void row(int64_t k, int64_t first, int64_t count, float* to) const override {
    const int64_t tap = k % plan_.taps;
    const int64_t channel = group_ * (x_[1] / plan_.group) + k / plan_.taps;
    const int64_t offset_group = channel / (x_[1] / plan_.offset_group);
    const int64_t field = (sample_ * plan_.offset_group + offset_group) * plan_.taps + tap;
    const auto spatial = static_cast<int64_t>(plan_.axes.size());
    const float* offsets = operands_.offset + field * spatial * positions_;
    const float* mask = operands_.mask != nullptr ? operands_.mask + field * positions_ : nullptr;
    const float* plane = operands_.x + (sample_ * x_[1] + channel) * x_.elements(2, x_.rank());
    for (int64_t i = 0; i < count; ++i) {
      const double value = sample_at(plane, offsets, tap, first + i);
      to[i] = static_cast<float>(mask != nullptr ? value * static_cast<double>(mask[first + i]) : value);
    }
  }

 private:
  // Linear between the elements around the moved tap; outside the tensor all is 0.
  double sample_at(const float* plane, const float* offsets, int64_t tap, int64_t position) const {
    const size_t spatial = plan_.axes.size();
    std::array<int64_t, 3> low{};
    std::array<double, 3> part{};
    int64_t rest = position;
    for (size_t a = spatial; a-- > 0;) {
      const WindowAxis& axis = plan_.axes[a];
      const auto fixed = rest % axis.out * axis.stride - axis.pad_begin + tap % axis.kernel * axis.dilation;
      const double moved =
          static_cast<double>(fixed) + static_cast<double>(offsets[static_cast<int64_t>(a) * positions_ + position]);
      rest /= axis.out;
      tap /= axis.kernel;
      if (!(moved > -1.0 && moved < static_cast<double>(axis.in))) return 0.0;
      const double floor = std::floor(moved);
      low[a] = static_cast<int64_t>(floor);
      part[a] = moved - floor;
    }
    double sum = 0.0;
    for (unsigned corner = 0; corner < 1U << spatial; ++corner) {
      double weight = 1.0;
      int64_t at = 0;
      bool inside = true;
      for (size_t a = 0; a < spatial; ++a) {
        const bool high = (corner >> (spatial - 1 - a) & 1U) != 0;
        const int64_t index = low[a] + (high ? 1 : 0);
        inside = inside && index >= 0 && index < plan_.axes[a].in;
        weight *= high ? part[a] : 1.0 - part[a];
        at = at * plan_.axes[a].in + index;
      }
      if (inside) sum += weight * static_cast<double>(plane[at]);
    }
    return sum;
  }

  const DeformConvPlan& plan_;
  const Shape& x_;
  Operands operands_;
  int64_t sample_;
  int64_t group_;
  int64_t positions_ = 1;
};

void convolve(const DeformConvPlan& plan, const Shape& x, const Shape& weights, const Operands& operands, float* to) {
  const int64_t positions = plan.output.elements(2, plan.output.rank());
  const int64_t m = weights[0] / plan.group;
  const int64_t k = weights.elements(1, weights.rank());
  const int64_t problems = x[0] * plan.group;
  std::vector<SampledPatches> patches;
  patches.reserve(static_cast<size_t>(problems));
  for (int64_t p = 0; p < problems; ++p) patches.emplace_back(plan, x, operands, p / plan.group, p % plan.group);
  gemm(problems, m, positions, k, [&](int64_t p) {
    const int64_t group = p % plan.group;
    GemmProblem problem;
    problem.a = operands.weights + group * m * k;
    problem.lda = k;
    problem.b = &patches[static_cast<size_t>(p)];
    problem.c = to + p * m * positions;
    problem.ldc = positions;
    problem.bias = operands.bias != nullptr ? operands.bias + group * m : nullptr;
    return problem;
  });
}

Status deform_conv(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 3));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 1, 2, 3, 4}));
  const auto shape_of = [&](size_t i) { return args.has_input(i) ? &args.inputs[i].shape : nullptr; };
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(const DeformConvPlan plan, deform_conv_plan(args.attributes, x.shape, args.inputs[1].shape,
                                                           args.inputs[2].shape, shape_of(3), shape_of(4)));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  if (plan.output.elements() == 0) return {};
  // Sums are float32 chains for every float type: the product is the one of all convolutions.
  std::vector<Promoted> floats;
  for (size_t i = 0; i < 5; ++i)
    floats.emplace_back(args.has_input(i) ? args.inputs[i] : TensorView{},
                        args.has_input(i) ? DType::kFloat32 : DType::kUndefined);
  const auto data = [&](size_t i) { return args.has_input(i) ? floats[i].data<float>() : nullptr; };
  return compute_as<float>(args.outputs[0], [&](float, float* to) -> Status {
    convolve(plan, x.shape, args.inputs[1].shape, {data(0), data(1), data(2), data(3), data(4)}, to);
    return {};
  });
}

}  // namespace

void register_deform_conv(Registry& registry) { registry.add("DeformConv", deform_conv); }

}  // namespace openrknn::cpu
