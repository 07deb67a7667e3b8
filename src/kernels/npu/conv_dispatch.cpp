#include "kernels/npu/conv_dispatch.hpp"

#include <atomic>

#include "kernels/isa.hpp"

namespace openrknn::npu {
namespace {

std::atomic<const ConvKernels*> forced{nullptr};

}  // namespace

void force_conv_kernels(const ConvKernels* kernels) { forced = kernels; }

const ConvKernels& conv_kernels() {
  if (const ConvKernels* kernels = forced) return *kernels;
  switch (isa()) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kConvKernelsAvx2;
    case Isa::kAvxVnni:
      return kConvKernelsAvxVnni;
    case Isa::kAvx512:
      return kConvKernelsAvx512;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Vbmi:
      return kConvKernelsAvx512Vnni;
#elif defined(__aarch64__)
    case Isa::kNeonDot:
      return kConvKernelsNeonDot;
#endif
    default:
      return kConvKernelsScalar;
  }
}

std::vector<int64_t> window_pixels(const ConvShape& s) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(s.out_h * s.out_w));
  for (int64_t y = 0; y < s.out_h; ++y) {
    for (int64_t x = 0; x < s.out_w; ++x) offsets.push_back(y * s.stride_h * s.in_w + x * s.stride_w);
  }
  return offsets;
}

std::vector<int64_t> tap_pixels(const ConvShape& s) {
  std::vector<int64_t> offsets;
  for (int64_t y = 0; y < s.kernel_h; ++y) {
    for (int64_t x = 0; x < s.kernel_w; ++x) offsets.push_back(y * s.dilation_h * s.in_w + x * s.dilation_w);
  }
  return offsets;
}

std::vector<int64_t> scaled(const std::vector<int64_t>& offsets, int64_t factor) {
  std::vector<int64_t> result = offsets;
  for (int64_t& offset : result) offset *= factor;
  return result;
}

}  // namespace openrknn::npu
