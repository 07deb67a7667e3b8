#include "sim/convert.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/half.hpp"
#include "base/parallel.hpp"
#include "core/tensor.hpp"
#include "kernels/npu/elementwise.hpp"
#include "sim/parts.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

using model::TensorDesc;

constexpr int64_t kChunk = 4096;
constexpr int64_t kGrain = 1 << 14;
constexpr int64_t kShortLine = 16;  // pixels

bool scaled(const TensorDesc& t) { return t.quant.has_value(); }

// Nearest integer, ties to even, of a float within +-2^20: adding 1.5 * 2^23 leaves no fraction bits.
float nearest(float x) { return (x + 12582912.0F) - 12582912.0F; }

template <typename T>
void dequantize(const T* from, int64_t n, const QuantParams& q, float* to) {
  const float scale = q.scale();
  const int32_t zero = q.zero_point();
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(static_cast<int32_t>(from[i]) - zero) * scale;
}

template <typename T>
void quantize(const float* from, int64_t n, const QuantParams& q, T* to) {
  const float scale = q.scale();
  const int32_t zero = q.zero_point();
  const auto low = static_cast<float>(std::numeric_limits<T>::min() - zero);
  const auto high = static_cast<float>(std::numeric_limits<T>::max() - zero);
  for (int64_t i = 0; i < n; ++i) {
    const float r = from[i] / scale;
    const float clamped = r != r ? 0.0F : std::min(std::max(r, low), high);
    to[i] = static_cast<T>(static_cast<int32_t>(nearest(clamped)) + zero);
  }
}

// The kernels make one NaN of all; conversions here keep their bits.
bool any_nan(const float* x, int64_t n) {
  int nan = 0;
  for (int64_t i = 0; i < n; ++i) nan |= x[i] != x[i] ? 1 : 0;
  return nan != 0;
}

// Only the 8- and 16-bit types have scales of their own here.
void decode(const TensorDesc& t, const void* from, int64_t n, float* to) {
  if (scaled(t)) {
    switch (t.dtype) {
      case DType::kInt8:
        return npu::dequantize_s8(n, static_cast<const int8_t*>(from), t.quant->scale(), t.quant->zero_point(), to);
      case DType::kUInt8:
        return dequantize(static_cast<const uint8_t*>(from), n, *t.quant, to);
      case DType::kInt16:
        return dequantize(static_cast<const int16_t*>(from), n, *t.quant, to);
      case DType::kUInt16:
        return dequantize(static_cast<const uint16_t*>(from), n, *t.quant, to);
      default:
        break;
    }
  }
  if (t.dtype == DType::kFloat32) {
    std::memcpy(to, from, static_cast<size_t>(n) * 4);
  } else if (t.dtype == DType::kFloat16) {
    const auto* h = static_cast<const uint16_t*>(from);
    npu::widen_block(1, n, h, n, to);
    if (!any_nan(to, n)) return;
    for (int64_t i = 0; i < n; ++i) to[i] = half_to_float(h[i]);
  } else {
    const Tensor wide = cast(TensorView{t.dtype, Shape{n}, from}, DType::kFloat32);
    std::memcpy(to, wide.data(), static_cast<size_t>(n) * 4);
  }
}

void encode(const float* from, int64_t n, const TensorDesc& t, void* to) {
  if (scaled(t)) {
    switch (t.dtype) {
      case DType::kInt8:
        return npu::quantize_s8(n, from, t.quant->scale(), t.quant->zero_point(), static_cast<int8_t*>(to));
      case DType::kUInt8:
        return quantize(from, n, *t.quant, static_cast<uint8_t*>(to));
      case DType::kInt16:
        return quantize(from, n, *t.quant, static_cast<int16_t*>(to));
      case DType::kUInt16:
        return quantize(from, n, *t.quant, static_cast<uint16_t*>(to));
      default:
        break;
    }
  }
  if (t.dtype == DType::kFloat32) {
    std::memcpy(to, from, static_cast<size_t>(n) * 4);
  } else if (t.dtype == DType::kFloat16) {
    auto* h = static_cast<uint16_t*>(to);
    if (!any_nan(from, n)) {
      npu::narrow_block(1, n, from, h, n);
      return;
    }
    for (int64_t i = 0; i < n; ++i) h[i] = float_to_half(from[i]);
  } else {
    const Tensor narrow = cast(TensorView{DType::kFloat32, Shape{n}, from}, t.dtype);
    std::memcpy(to, narrow.data(), narrow.bytes());
  }
}

// Between two scales: the nearest integer of float(x - z1) * s1 / s2 in fp32, plus z2, saturated. 256 cases.
std::vector<int8_t> requantize_table(const TensorDesc& a, const TensorDesc& b) {
  std::vector<int8_t> all(256), table(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int8_t>(static_cast<uint8_t>(i));
  std::vector<float> reals(256);
  dequantize(all.data(), 256, *a.quant, reals.data());
  quantize(reals.data(), 256, *b.quant, table.data());
  return table;
}

class ConvertRunner final : public Runner {
 public:
  explicit ConvertRunner(const model::Task& task) : task_(task) {}

  Status run(const Context& context) override {
    const TensorDesc& a = context.program.tensor(task_.inputs[0]);
    const TensorDesc& b = context.program.tensor(task_.outputs[0]);
    std::array<View, 2> views{context.view(task_.outputs[0]), context.view(task_.inputs[0])};
    const View& y = views[0];
    const View& x = views[1];
    if (!(x.cube == y.cube)) return through_plain(a, x, b, y);
    if (x.size != y.size && is_plain(x) != is_plain(y) && x.cube.h * x.cube.w >= kShortLine)
      return by_lines(a, x, b, y);
    if (!context.strict()) join_pixels(views, true);
    for_parts(y.cube, kChunk, [&](const Part& part) {
      const int64_t n = part.ws * part.cs;
      if (x.single() && x.stride() == part.cs && y.direct() && y.stride() == part.cs)
        return convert_elements(a, x.at(part.n, part.h, part.w), n, b, y.at(part.n, part.h, part.w));
      std::vector<std::byte> from(static_cast<size_t>(n * x.size)), to(static_cast<size_t>(n * y.size));
      gather(x, part, from.data(), part.cs);
      convert_elements(a, from.data(), n, b, to.data());
      scatter(y, part, to.data(), part.cs);
    });
    return {};
  }

 private:
  // Channels as lines, converted where they are smallest to move.
  static Status by_lines(const TensorDesc& a, const View& x, const TensorDesc& b, const View& y) {
    const bool reads = is_plain(y);
    const int64_t channels = x.cube.c;
    for_runs(reads ? x : y, [&](int64_t n, int64_t pixel, int64_t count) {
      const View& turned = reads ? x : y;
      const int64_t line = count * turned.size;
      std::vector<std::byte> lines(static_cast<size_t>(channels * line));
      const auto plain = [&](const View& v, int64_t c) {
        return v.at(n, pixel / v.cube.w, pixel % v.cube.w) + c * v.plane;
      };
      if (reads) read_lines(x, n, pixel, count, lines.data(), line);
      for (int64_t c = 0; c < channels; ++c) {
        std::byte* mine = lines.data() + c * line;
        reads ? convert_elements(a, mine, count, b, plain(y, c)) : convert_elements(a, plain(x, c), count, b, mine);
      }
      if (!reads) write_lines(y, n, pixel, count, lines.data(), line);
    });
    return {};
  }

  static Status through_plain(const TensorDesc& a, const View& x, const TensorDesc& b, const View& y) {
    const int64_t n = a.shape.elements();
    std::vector<std::byte> from(static_cast<size_t>(n * x.size)), to(static_cast<size_t>(n * y.size));
    to_plain(x, from.data());
    convert_elements(a, from.data(), n, b, to.data());
    from_plain(y, to.data());
    return {};
  }

  const model::Task& task_;
};

}  // namespace

void convert_elements(const TensorDesc& a, const void* from, int64_t n, const TensorDesc& b, void* to) {
  if (a.dtype == b.dtype && (a.quant == b.quant || !scaled(a) || !scaled(b))) {
    std::memcpy(to, from, static_cast<size_t>(n) * dtype_size(a.dtype));
    return;
  }
  if (a.dtype == DType::kInt8 && b.dtype == DType::kInt8 && n > 256) {
    const auto table = requantize_table(a, b);
    return npu::look_up_s8(n, static_cast<const int8_t*>(from), table.data(), static_cast<int8_t*>(to));
  }
  if (!scaled(a) && !scaled(b) && !is_float(a.dtype) && !is_float(b.dtype)) {
    const Tensor exact = cast(TensorView{a.dtype, Shape{n}, from}, b.dtype);
    std::memcpy(to, exact.data(), exact.bytes());
    return;
  }
  std::array<float, 1024> reals;
  const auto a_size = static_cast<int64_t>(dtype_size(a.dtype));
  const auto b_size = static_cast<int64_t>(dtype_size(b.dtype));
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(reals.size())) {
    const int64_t count = std::min(n - i, static_cast<int64_t>(reals.size()));
    decode(a, static_cast<const std::byte*>(from) + i * a_size, count, reals.data());
    encode(reals.data(), count, b, static_cast<std::byte*>(to) + i * b_size);
  }
}

TensorDesc real_desc() {
  TensorDesc t;
  t.dtype = DType::kFloat32;
  return t;
}

void convert_all(const TensorDesc& a, const void* from, int64_t n, const TensorDesc& b, void* to) {
  const auto a_size = static_cast<int64_t>(dtype_size(a.dtype)), b_size = static_cast<int64_t>(dtype_size(b.dtype));
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    convert_elements(a, static_cast<const std::byte*>(from) + begin * a_size, end - begin, b,
                     static_cast<std::byte*>(to) + begin * b_size);
  });
}

RunnerPtr make_convert(const model::Program&, const model::Task& task) { return std::make_unique<ConvertRunner>(task); }

}  // namespace openrknn::sim
