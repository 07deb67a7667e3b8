// Transposed convolutions whose windows do not overlap (kernel and stride are equal, nothing is padded): every input
// pixel gives a block of the output, every output is one sum over the input channels. All positions of a block are
// computed as output channels of one pointwise convolution, [position][channel][input pixel], and laid into each other.
#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "core/tensor.hpp"
#include "kernels/cpu/support_conv.hpp"
#include "kernels/cpu/support_conv_planes.hpp"

namespace openrknn::cpu {
namespace {

class BlockwiseConv final : public ConvMethod {
 public:
  BlockwiseConv(ConvPlan plan, const float* constant)
      : plan_(std::move(plan)), h_(three_axes(plan_.axes)[1]), w_(three_axes(plan_.axes)[2]), inner_(inner_plan()) {
    if (constant != nullptr) weights_ = turned(constant);
    method_ = conv_method(inner_, weights_.empty() ? nullptr : weights_.data());
  }

  Status run(const ConvOperands& operands) const override {
    std::vector<float> own;
    if (weights_.empty()) own = turned(operands.w);
    std::vector<float> bias;
    for (int64_t p = 0; p < plan_.taps() && operands.bias != nullptr; ++p)
      bias.insert(bias.end(), operands.bias, operands.bias + plan_.out_channels);
    OPENRKNN_TRY(Tensor parts, Tensor::uninitialized(DType::kFloat32, inner_.output));
    ConvOperands inner;
    inner.x = operands.x;
    inner.w = weights_.empty() ? own.data() : weights_.data();
    inner.bias = bias.empty() ? nullptr : bias.data();
    inner.y = parts.mutable_as<float>().data();
    OPENRKNN_CHECK_OK(method_->run(inner));
    const int64_t pixels = plan_.out_pixels();
    parallel_for(plan_.batch * plan_.out_channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const int64_t channel = c % plan_.out_channels;
        interleave(inner.y + (c / plan_.out_channels * inner_.out_channels + channel) * inner_.out_pixels(),
                   operands.y + c * pixels);
        if (operands.fusion.present()) operands.fusion.apply(channel, c * pixels, pixels, operands.y + c * pixels);
      }
    });
    return {};
  }

 private:
  ConvPlan inner_plan() const {
    ConvPlan inner;
    inner.batch = plan_.batch;
    inner.in_channels = plan_.in_channels;
    inner.out_channels = plan_.taps() * plan_.out_channels;
    for (const int64_t extent : {h_.in, w_.in}) {
      WindowAxis axis;
      axis.in = axis.out = extent;
      inner.axes.push_back(axis);
    }
    inner.output = Shape{inner.batch, inner.out_channels, h_.in, w_.in};
    return inner;
  }

  // w [C][M][position] as [position][M][C].
  std::vector<float> turned(const float* w) const {
    const int64_t m = plan_.out_channels, taps = plan_.taps();
    std::vector<float> to;
    to.reserve(static_cast<size_t>(plan_.in_channels * m * taps));
    for (int64_t p = 0; p < taps; ++p) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t c = 0; c < plan_.in_channels; ++c) to.push_back(w[(c * m + i) * taps + p]);
      }
    }
    return to;
  }

  // A plane of the output from those of its block positions, the first of which is at `parts`.
  void interleave(const float* parts, float* to) const {
    const int64_t step = plan_.out_channels * inner_.out_pixels();  // from one position to the next
    for (int64_t y = 0; y < h_.in; ++y) {
      for (int64_t i = 0; i < h_.stride; ++i, to += w_.out) {
        const float* from = parts + i * w_.stride * step + y * w_.in;
        if (w_.stride == 2) {
          const float* second = from + step;
          for (int64_t x = 0; x < w_.in; ++x) {
            to[2 * x] = from[x];
            to[2 * x + 1] = second[x];
          }
          continue;
        }
        for (int64_t j = 0; j < w_.stride; ++j) {
          for (int64_t x = 0; x < w_.in; ++x) to[x * w_.stride + j] = from[j * step + x];
        }
      }
    }
  }

  const ConvPlan plan_;
  const WindowAxis h_, w_;
  const ConvPlan inner_;
  std::vector<float> weights_;  // constant ones, turned
  ConvMethodPtr method_;
};

}  // namespace

bool is_blockwise(const ConvPlan& plan) {
  return plan.axes.size() == 2 && plan.groups == 1 && plan.taps() > 1 &&
         std::all_of(plan.axes.begin(), plan.axes.end(), [](const WindowAxis& a) {
           return a.kernel == a.stride && a.dilation == 1 && a.pad_begin == 0 && a.out == a.in * a.stride;
         });
}

ConvMethodPtr conv_blockwise(ConvPlan plan, const float* constant) {
  return std::make_unique<BlockwiseConv>(std::move(plan), constant);
}

}  // namespace openrknn::cpu
