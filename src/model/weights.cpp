// Weight cubes and per-channel parameter streams. Layouts: npu.md 2.3 and 2.4.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "model/codec.hpp"

namespace openrknn::model {
namespace {

// An int8 slice with at most this many live input channels is stored with as many lanes.
constexpr int64_t kNarrowSlice = 16;

// The geometry of one packed cube, in elements.
struct CubePlan {
  int64_t taps, groups, group_size;
  int64_t slices, slice_lanes, last_lanes;  // direct: input channel slices; all but the last have slice_lanes
  int64_t size;                             // bytes of an element

  int64_t group_elements() const { return taps * group_size * ((slices - 1) * slice_lanes + last_lanes); }
  int64_t lanes(int64_t slice) const { return slice + 1 == slices ? last_lanes : slice_lanes; }
  // First element of a slice inside its group: the slices before it are all full.
  int64_t slice_start(int64_t slice) const { return slice * slice_lanes * taps * group_size; }
};

CubePlan plan_of(const Convolution& conv) {
  CubePlan p{};
  p.size = static_cast<int64_t>(dtype_size(conv.weight_dtype));
  p.taps = int64_t{conv.kernel[0]} * conv.kernel[1];
  if (conv.mode == ConvMode::kDepthwise) {
    // One kernel whose "output channels" are the lanes of a group.
    p.group_size = conv.channel_group;
    p.groups = ceil_div(conv.out_channels, conv.channel_group);
    p.slices = p.slice_lanes = p.last_lanes = 1;
    return p;
  }
  p.group_size = conv.kernel_group;
  p.groups = ceil_div(conv.out_channels, conv.kernel_group);
  p.slice_lanes = conv.channel_group;
  p.slices = ceil_div(conv.in_channels, conv.channel_group);
  const int64_t rest = conv.in_channels - (p.slices - 1) * p.slice_lanes;
  const bool narrow = p.size == 1 && rest <= kNarrowSlice && kNarrowSlice < p.slice_lanes;
  p.last_lanes = narrow ? kNarrowSlice : p.slice_lanes;
  return p;
}

// Calls f(packed element, oc, ic or -1 for a padding lane, kh * KW + kw) in the order of the packed cube; oc may lie
// beyond the real channels in the last group.
template <typename F>
void for_elements(const Convolution& conv, const CubePlan& p, F&& f) {
  int64_t at = 0;
  const int64_t inputs = conv.mode == ConvMode::kDepthwise ? 1 : conv.in_channels;
  for (int64_t g = 0; g < p.groups; ++g) {
    for (int64_t s = 0; s < p.slices; ++s) {
      for (int64_t tap = 0; tap < p.taps; ++tap) {
        for (int64_t k = 0; k < p.group_size; ++k) {
          const int64_t lanes = p.lanes(s);
          for (int64_t lane = 0; lane < lanes; ++lane) {
            const int64_t ic = s * p.slice_lanes + lane;
            f(at++, g * p.group_size + k, ic < inputs ? ic : int64_t{-1}, tap);
          }
        }
      }
    }
  }
}

// The bits of a padding lane: the weight zero point for int8, so that the lane's contribution cancels; else zero.
int64_t padding_value(const Convolution& conv, int64_t oc) {
  if (conv.weight_dtype != DType::kInt8 || !conv.weight_quant) return 0;
  const auto& zeros = conv.weight_quant->zero_points;
  if (zeros.empty()) return 0;
  if (conv.weight_quant->granularity == Granularity::kTensor) return zeros[0];
  // Lanes of channels that do not exist take the last channel's zero point; nothing reads their results.
  return zeros[static_cast<size_t>(std::min<int64_t>(oc, static_cast<int64_t>(zeros.size()) - 1))];
}

int64_t plain_index(const Convolution& conv, const CubePlan& p, int64_t oc, int64_t ic, int64_t tap) {
  const int64_t inputs = conv.mode == ConvMode::kDepthwise ? 1 : conv.in_channels;
  return (oc * inputs + ic) * p.taps + tap;
}

int64_t plain_bytes(const Convolution& conv, const CubePlan& p) {
  return int64_t{conv.out_channels} * (conv.mode == ConvMode::kDepthwise ? 1 : conv.in_channels) * p.taps * p.size;
}

// Calls f with a zero of an unsigned type of `size` bytes. Blobs and vectors are aligned for it.
template <typename F>
void with_element(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{0});
    case 2:
      return f(uint16_t{0});
    case 4:
      return f(uint32_t{0});
    default:
      return;
  }
}

struct ParamPlan {
  int64_t group;  // channels a group
  int64_t bytes() const { return group * 8; }
};

ParamPlan params_of(const NumericsProfile& profile) {
  return {profile.channel_multiplier == ChannelMultiplier::kQ14 ? int64_t{4} : int64_t{8}};
}

}  // namespace

int64_t packed_weight_bytes(const Convolution& conv) {
  const CubePlan p = plan_of(conv);
  return p.groups * p.group_elements() * p.size;
}

std::vector<std::byte> pack_weights(const Convolution& conv, std::span<const std::byte> plain) {
  const CubePlan p = plan_of(conv);
  std::vector<std::byte> packed(static_cast<size_t>(packed_weight_bytes(conv)));
  with_element(p.size, [&](auto tag) {
    using T = decltype(tag);
    const auto* from = reinterpret_cast<const T*>(plain.data());
    auto* to = reinterpret_cast<T*>(packed.data());
    for_elements(conv, p, [&](int64_t at, int64_t oc, int64_t ic, int64_t tap) {
      const bool real = oc < conv.out_channels && ic >= 0;
      to[at] = real ? from[plain_index(conv, p, oc, ic, tap)] : static_cast<T>(padding_value(conv, oc));
    });
  });
  return packed;
}

std::vector<std::byte> unpack_weights(const Convolution& conv, std::span<const std::byte> packed) {
  const CubePlan p = plan_of(conv);
  std::vector<std::byte> plain(static_cast<size_t>(plain_bytes(conv, p)));
  with_element(p.size, [&](auto tag) {
    using T = decltype(tag);
    const auto* from = reinterpret_cast<const T*>(packed.data());
    auto* to = reinterpret_cast<T*>(plain.data());
    for_elements(conv, p, [&](int64_t at, int64_t oc, int64_t ic, int64_t tap) {
      if (oc < conv.out_channels && ic >= 0) to[plain_index(conv, p, oc, ic, tap)] = from[at];
    });
  });
  return plain;
}

std::vector<std::byte> unpack_weights_taps_first(const Convolution& conv, std::span<const std::byte> packed, int64_t oc,
                                                 int64_t ocs, int64_t first) {
  std::vector<std::byte> plain;
  unpack_weights_taps_first(conv, packed, oc, ocs, first, plain);
  return plain;
}

std::span<const std::byte> unpack_weights_taps_first(const Convolution& conv, std::span<const std::byte> packed,
                                                     int64_t oc, int64_t ocs, int64_t first,
                                                     std::vector<std::byte>& storage) {
  const CubePlan p = plan_of(conv);
  const bool depthwise = conv.mode == ConvMode::kDepthwise;
  const int64_t inputs = depthwise ? 1 : conv.in_channels;
  const auto bytes = static_cast<size_t>(ocs * inputs * p.taps * p.size);
  if (storage.size() < bytes) storage.resize(bytes);
  const std::span<const std::byte> out(storage.data(), bytes);
  const int64_t skipped = first / p.group_size * p.group_elements();
  std::byte* to = storage.data();
  // A copy of a run of lanes: channels of one depthwise tap, or the live lanes of one slice.
  const auto copy = [&](int64_t at, int64_t count) {
    std::memcpy(to, packed.data() + (at - skipped) * p.size, static_cast<size_t>(count * p.size));
    to += count * p.size;
  };
  if (depthwise) {
    for (int64_t tap = 0; tap < p.taps; ++tap) {
      for (int64_t c = oc; c < oc + ocs;) {
        const int64_t run = std::min(oc + ocs - c, p.group_size - c % p.group_size);
        copy((c / p.group_size * p.taps + tap) * p.group_size + c % p.group_size, run);
        c += run;
      }
    }
    return out;
  }
  for (int64_t k = oc; k < oc + ocs; ++k) {
    for (int64_t tap = 0; tap < p.taps; ++tap) {
      for (int64_t s = 0; s < p.slices; ++s) {
        const int64_t at = k / p.group_size * p.group_elements() + p.slice_start(s) +
                           (tap * p.group_size + k % p.group_size) * p.lanes(s);
        copy(at, std::min(p.slice_lanes, inputs - s * p.slice_lanes));
      }
    }
  }
  return out;
}

std::pair<int64_t, int64_t> weight_range(const Convolution& conv, int64_t oc, int64_t ocs) {
  const CubePlan p = plan_of(conv);
  const int64_t bytes = p.group_elements() * p.size;
  const int64_t first = oc / p.group_size;
  const int64_t last = ceil_div(oc + ocs, p.group_size);
  return {first * bytes, (last - first) * bytes};
}

int64_t packed_param_bytes(const NumericsProfile& profile, int64_t channels) {
  const ParamPlan p = params_of(profile);
  return ceil_div(channels, p.group) * p.bytes();
}

std::vector<std::byte> pack_params(const NumericsProfile& profile, const ChannelParams& params) {
  const ParamPlan p = params_of(profile);
  const auto channels = static_cast<int64_t>(params.bias.size());
  std::vector<std::byte> packed(static_cast<size_t>(packed_param_bytes(profile, channels)));
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    std::byte* group = packed.data() + c / p.group * p.bytes();
    const int64_t lane = c % p.group;
    const auto b = static_cast<int16_t>(params.minus_weight_zero[i]);
    const auto m = static_cast<uint16_t>(params.multiplier[i]);
    std::memcpy(group + 4 * lane, &params.bias[i], 4);
    std::memcpy(group + 4 * p.group + 2 * lane, &b, 2);
    std::memcpy(group + 6 * p.group + 2 * lane, &m, 2);
  }
  return packed;
}

ChannelParams unpack_params(const NumericsProfile& profile, std::span<const std::byte> packed, int64_t channels) {
  const ParamPlan p = params_of(profile);
  ChannelParams params;
  for (int64_t c = 0; c < channels; ++c) {
    const std::byte* group = packed.data() + c / p.group * p.bytes();
    const int64_t lane = c % p.group;
    int32_t a = 0;
    int16_t b = 0;
    uint16_t m = 0;
    std::memcpy(&a, group + 4 * lane, 4);
    std::memcpy(&b, group + 4 * p.group + 2 * lane, 2);
    std::memcpy(&m, group + 6 * p.group + 2 * lane, 2);
    params.bias.push_back(a);
    params.minus_weight_zero.push_back(b);
    params.multiplier.push_back(p.group == 4 ? int32_t{m} : int32_t{static_cast<int16_t>(m)});
  }
  return params;
}

}  // namespace openrknn::model
