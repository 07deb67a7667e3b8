#include "sim/edges.hpp"

#include <fmt/core.h>

#include "base/parallel.hpp"
#include "sim/convert.hpp"

namespace openrknn::sim {
namespace {

using model::Port;
using model::TensorDesc;

constexpr int64_t kGrain = 1 << 14;

void normalize(const Port& port, float* x) {
  const Shape& s = port.source_shape;
  const int64_t channels = s[port.channel_axis];
  const int64_t inner = s.elements(port.channel_axis + 1, s.rank());
  const int64_t runs = s.elements(0, port.channel_axis) * channels;
  parallel_for(runs, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto c = static_cast<size_t>(i % channels);
      const float mean = port.mean.empty() ? 0.0F : port.mean[c];
      const float std_dev = port.std_dev.empty() ? 1.0F : port.std_dev[c];
      for (int64_t k = i * inner; k < (i + 1) * inner; ++k) x[k] = (x[k] - mean) / std_dev;
    }
  });
}

}  // namespace

Status store_input(const model::Program& program, const Port& port, const Tensor& given, const View& view) {
  const TensorDesc& t = program.tensor(port.tensor);
  const auto refuse = [&](std::string why, std::string hint) {
    return Error{ErrorCode::kInvalidArgument, "cannot take an input", port.name, std::move(why), std::move(hint)};
  };
  if (!(given.shape() == port.source_shape))
    return refuse(
        fmt::format("its shape is {}, the model wants {}", given.shape().to_string(), port.source_shape.to_string()),
        "give data in the source model's shape");
  const bool number = is_float(given.dtype()) || is_integer(given.dtype()) || given.dtype() == DType::kBool;
  if (!number || dtype_size(given.dtype()) == 0)
    return refuse(fmt::format("its type is {}", dtype_name(given.dtype())), "give numbers");
  const int64_t n = t.shape.elements();
  const bool plain_numbers = port.mean.empty() && port.std_dev.empty() && !t.quant;
  if (plain_numbers && given.dtype() != DType::kFloat32) {  // integers stay exact
    const Tensor raw = cast(given.view(), t.dtype);
    from_plain(view, raw.data());
    return {};
  }
  Tensor real = given.dtype() == DType::kFloat32 ? given : cast(given.view(), DType::kFloat32);
  if (!port.mean.empty() || !port.std_dev.empty()) normalize(port, real.mutable_as<float>().data());
  OPENRKNN_TRY(Tensor raw, Tensor::make(t.dtype, t.shape));
  convert_all(real_desc(), real.data(), n, t, raw.mutable_data());
  from_plain(view, raw.data());
  return {};
}

Result<Tensor> load_raw(const TensorDesc& t, const View& view, const Shape& shape) {
  OPENRKNN_TRY(Tensor raw, Tensor::make(t.dtype, shape));
  to_plain(view, raw.mutable_data());
  return raw;
}

Result<Tensor> load_real(const TensorDesc& t, const View& view, const Shape& shape) {
  OPENRKNN_TRY(Tensor raw, load_raw(t, view, shape));
  if (t.dtype == DType::kFloat32) return raw;
  OPENRKNN_TRY(Tensor real, Tensor::make(DType::kFloat32, shape));
  convert_all(t, raw.data(), raw.elements(), real_desc(), real.mutable_data());
  return real;
}

}  // namespace openrknn::sim
