#include "kernels/cpu/support_conv.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "core/tensor.hpp"
#include "kernels/cpu/support_conv_patches.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {
namespace {

// One stride phase of a transposed convolution: the outputs at phase + stride * q take tap t from input q + offset.
struct Phase {
  PatchGeometry geometry;
  std::array<std::vector<int64_t>, 3> taps;  // positions in the kernel
  std::array<int64_t, 3> first{};            // output position of q = 0
};

Phase make_phase(const std::vector<WindowAxis>& axes, const std::array<int64_t, 3>& phase) {
  Phase made;
  for (size_t i = 0; i < 3; ++i) {
    const WindowAxis& axis = axes[i];
    PatchAxis& to = made.geometry.axes[i];
    to = {axis.in, phase[i] < axis.out ? ceil_div(axis.out - phase[i], axis.stride) : 0, 1, {}};
    for (int64_t t = 0; t < axis.kernel; ++t) {
      const int64_t distance = phase[i] + axis.pad_begin - t * axis.dilation;
      if (distance % axis.stride != 0) continue;
      made.taps[i].push_back(t);
      to.offsets.push_back(distance / axis.stride);
    }
    made.first[i] = phase[i];
  }
  return made;
}

// w [C][M / group][kernel] to one matrix [M / group][C / group * taps of the phase] per group.
void gather_weights(const ConvPlan& plan, const std::vector<WindowAxis>& axes, const Phase& phase, const float* w,
                    std::vector<float>& to) {
  const int64_t volume = plan.taps();
  to.clear();
  for (int64_t g = 0; g < plan.groups; ++g) {
    for (int64_t m = 0; m < plan.group_out(); ++m) {
      for (int64_t c = g * plan.group_in(); c < (g + 1) * plan.group_in(); ++c) {
        const float* kernel = w + (c * plan.group_out() + m) * volume;
        for (const int64_t z : phase.taps[0]) {
          for (const int64_t y : phase.taps[1]) {
            for (const int64_t x : phase.taps[2]) to.push_back(kernel[(z * axes[1].kernel + y) * axes[2].kernel + x]);
          }
        }
      }
    }
  }
}

// Rows of a phase's result [channels][pixels] to their places in the output.
void scatter_phase(const std::vector<WindowAxis>& axes, const Phase& phase, int64_t channels, const float* from,
                   float* to) {
  const auto& g = phase.geometry.axes;
  parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* line = from + c * phase.geometry.out_pixels();
      float* plane = to + c * axes[0].out * axes[1].out * axes[2].out;
      for (int64_t z = 0; z < g[0].out; ++z) {
        for (int64_t y = 0; y < g[1].out; ++y, line += g[2].out) {
          const int64_t oz = phase.first[0] + z * axes[0].stride;
          const int64_t oy = phase.first[1] + y * axes[1].stride;
          float* row = plane + (oz * axes[1].out + oy) * axes[2].out + phase.first[2];
          for (int64_t x = 0; x < g[2].out; ++x) row[x * axes[2].stride] = line[x];
        }
      }
    }
  });
}

// y [batch * groups][group_out][pixels of the geometry] = weights [groups][group_out][group_in * taps] * patches.
void multiply_patches(const ConvPlan& plan, const PatchGeometry& geometry, const float* weights,
                      const ConvOperands& operands, float* y, const ConvFusion* fusion) {
  const int64_t problems = plan.batch * plan.groups;
  const int64_t m = plan.group_out();
  const int64_t n = geometry.out_pixels();
  const int64_t k = plan.group_in() * geometry.taps();
  const bool identity = geometry.identity();
  std::vector<PatchSource> sources;
  for (int64_t p = 0; p < problems; ++p) {
    sources.emplace_back(geometry, operands.x + p * plan.group_in() * geometry.in_pixels());
  }
  GemmEpilogue epilogue;
  if (fusion != nullptr && fusion->present()) {
    epilogue = [&plan, fusion, m, n](int64_t p, int64_t i, int64_t first, int64_t count, float* row) {
      const int64_t channel = p % plan.groups * m + i;
      fusion->apply(channel, (p * m + i) * n + first, count, row);
    };
  }
  gemm(
      problems, m, n, k,
      [&](int64_t p) {
        const int64_t group = p % plan.groups;
        GemmProblem problem;
        problem.a = weights + group * m * k;
        problem.lda = k;
        problem.b = &sources[static_cast<size_t>(p)];
        if (identity) {
          problem.b_rows = operands.x + p * plan.group_in() * n;
          problem.ldb = n;
        }
        problem.c = y + p * m * n;
        problem.ldc = n;
        problem.bias = operands.bias != nullptr ? operands.bias + group * m : nullptr;
        return problem;
      },
      epilogue);
}

class GemmConv final : public ConvMethod {
 public:
  explicit GemmConv(ConvPlan plan) : plan_(std::move(plan)), geometry_(patch_geometry(plan_)) {}

  Status run(const ConvOperands& operands) const override {
    multiply_patches(plan_, geometry_, operands.w, operands, operands.y, &operands.fusion);
    return {};
  }

 private:
  const ConvPlan plan_;
  const PatchGeometry geometry_;
};

class TransposedConv final : public ConvMethod {
 public:
  explicit TransposedConv(ConvPlan plan) : plan_(std::move(plan)), axes_(three_axes(plan_.axes)) {}

  Status run(const ConvOperands& operands) const override {
    for (int64_t z = 0; z < std::min(axes_[0].stride, axes_[0].out); ++z) {
      for (int64_t y = 0; y < std::min(axes_[1].stride, axes_[1].out); ++y) {
        for (int64_t x = 0; x < std::min(axes_[2].stride, axes_[2].out); ++x) {
          OPENRKNN_CHECK_OK(run_phase(make_phase(axes_, {z, y, x}), operands));
        }
      }
    }
    if (!operands.fusion.present()) return {};
    const int64_t pixels = plan_.out_pixels();
    parallel_for(plan_.batch * plan_.out_channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        operands.fusion.apply(c % plan_.out_channels, c * pixels, pixels, operands.y + c * pixels);
      }
    });
    return {};
  }

 private:
  Status run_phase(const Phase& phase, const ConvOperands& operands) const {
    const int64_t channels = plan_.batch * plan_.out_channels;
    std::vector<float> weights;
    gather_weights(plan_, axes_, phase, operands.w, weights);
    OPENRKNN_TRY(Tensor part, Tensor::uninitialized(DType::kFloat32, Shape{channels, phase.geometry.out_pixels()}));
    float* result = part.mutable_as<float>().data();
    multiply_patches(plan_, phase.geometry, weights.data(), operands, result, nullptr);
    scatter_phase(axes_, phase, channels, result, operands.y);
    return {};
  }

  const ConvPlan plan_;
  const std::vector<WindowAxis> axes_;
};

}  // namespace

std::optional<ConvFusion::Bounds> ConvFusion::bounds() const {
  switch (activation.kind) {
    case Activation::kNone:
      return Bounds{};
    case Activation::kRelu:
      return Bounds{0.0F, Bounds{}.high};
    case Activation::kClip:
      return Bounds{activation.min, activation.max};
    default:
      return std::nullopt;
  }
}

void ConvFusion::apply(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const {
  const bool bare = residual == nullptr && activation.kind == Activation::kNone;
  if (bare && behind != nullptr) return apply_stages(channel, offset, count, from, to);
  apply_activation(channel, offset, count, from, to);
  if (behind != nullptr) apply_stages(channel, offset, count, to, to);
}

void ConvFusion::apply_activation(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const {
  const float* other = residual != nullptr ? residual + offset : nullptr;
  const std::optional<Bounds> bound = bounds();
  if (other != nullptr || bound) {
    const Bounds b = bound.value_or(Bounds{});
    gemm_kernels().clamp(count, from, other, b.low, b.high, to);
    if (bound) return;
    from = to;
  }
  ActivationSpec spec = activation;
  if (slopes != nullptr) spec.alpha = one_slope ? slopes[0] : slopes[channel];
  openrknn::apply_activation(spec, from, to, count);
}

void ConvFusion::apply_stages(int64_t channel, int64_t offset, int64_t count, const float* from, float* to) const {
  std::array<Strip, kMostStageInputs> strips;
  for (size_t i = 0; i < behind->kinds.size(); ++i) {
    const auto* data = static_cast<const float*>(inputs[behind->stages.inputs()[i]].data);
    const ConvStages::Kind kind = behind->kinds[i];
    if (kind == ConvStages::Kind::kByElement) {
      strips[i] = {data + offset, 1};
    } else {
      strips[i] = {data + (kind == ConvStages::Kind::kByChannel ? channel : 0), 0};
    }
  }
  const auto* affines = behind->affines.empty() ? nullptr : behind->affines[static_cast<size_t>(channel)].data();
  behind->stages.run(count, from, strips.data(), affines, to);
}

ConvMethodPtr conv_by_gemm(ConvPlan plan) { return std::make_unique<GemmConv>(std::move(plan)); }

ConvMethodPtr conv_transposed(ConvPlan plan) { return std::make_unique<TransposedConv>(std::move(plan)); }

}  // namespace openrknn::cpu
