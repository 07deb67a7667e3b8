#include "analysis/dump_task.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "io/npy.hpp"
#include "model/codec.hpp"

namespace openrknn::analysis {
namespace {

using Json = nlohmann::ordered_json;

int64_t channels_of(const model::Convolution& conv) {
  return conv.mode == model::ConvMode::kDepthwise ? 1 : conv.in_channels;
}

// [oc][ic][kh][kw] of the stride-1 convolution to ONNX's [ic][oc][kh][kw] with the kernel turned back.
Tensor transposed_weights(const Tensor& plain, bool depthwise) {
  const Shape& s = plain.shape();
  Tensor out(plain.dtype(), depthwise ? s : Shape{s[1], s[0], s[2], s[3]});
  const size_t size = dtype_size(plain.dtype());
  const auto* from = static_cast<const std::byte*>(plain.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (int64_t o = 0; o < s[0]; ++o) {
    for (int64_t i = 0; i < s[1]; ++i) {
      for (int64_t h = 0; h < s[2]; ++h) {
        for (int64_t w = 0; w < s[3]; ++w, from += size) {
          const int64_t row = depthwise ? o : i * s[0] + o;
          const int64_t at = (row * s[2] + (s[2] - 1 - h)) * s[3] + (s[3] - 1 - w);
          std::memcpy(to + static_cast<size_t>(at) * size, from, size);
        }
      }
    }
  }
  return out;
}

Tensor plain_weights(const model::Program& program, const model::Convolution& conv) {
  const std::vector<std::byte> bytes = model::unpack_weights(conv, program.blob(conv.weights));
  Tensor tensor(conv.weight_dtype, Shape{conv.out_channels, channels_of(conv), conv.kernel[0], conv.kernel[1]});
  std::memcpy(tensor.mutable_data(), bytes.data(), std::min(bytes.size(), tensor.bytes()));
  return tensor;
}

// Per output channel the sum of (w - zero point): what the input's zero point was multiplied with.
std::vector<int64_t> weight_sums(const Tensor& plain, const std::optional<QuantParams>& quant) {
  const int64_t channels = plain.shape()[0];
  const int64_t inner = plain.shape().elements(1, 4);
  const std::vector<int64_t> values = to_ints(plain.view());
  std::vector<int64_t> sums(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    int64_t zero = 0;
    if (quant) zero = quant->zero_points[quant->zero_points.size() == 1 ? 0 : static_cast<size_t>(c)];
    for (int64_t i = 0; i < inner; ++i)
      sums[static_cast<size_t>(c)] += values[static_cast<size_t>(c * inner + i)] - zero;
  }
  return sums;
}

class TaskWriter {
 public:
  TaskWriter(const model::Program& program, size_t index, ConstantWriter& constants)
      : program_(program), task_(program.tasks[index]), prefix_(fmt::format("{}", index)), constants_(constants) {}

  Result<Json> run() {
    json_ = {{"name", task_.name},
             {"op", task_.op},
             {"engine", task_.engine == model::Engine::kNpu ? "npu" : "cpu"},
             {"source", task_.source}};
    json_["inputs"] = names(task_.inputs);
    json_["outputs"] = names(task_.outputs);
    if (!task_.reason.empty()) json_["reason"] = task_.reason;
    Json attributes = operator_attributes();
    if (task_.conv) {
      add_conv_attributes(*task_.conv, attributes);
      OPENRKNN_CHECK_OK(add_conv_constants(*task_.conv));
    }
    if (task_.pool) add_pool_attributes(*task_.pool, attributes);
    if (!attributes.empty()) json_["attributes"] = std::move(attributes);
    add_requant();
    for (const model::Operand& o : task_.operands) {
      json_["operand"].push_back({{"offset", o.offset}, {"multiplier", o.multiplier}, {"shift", o.shift}});
    }
    OPENRKNN_CHECK_OK(add_activation());
    if (task_.in_place) json_["in_place"] = true;
    json_["macs"] = task_.macs;
    return std::move(json_);
  }

 private:
  Json names(const std::vector<int>& ids) const {
    Json list = Json::array();
    for (const int id : ids) list.push_back(id == model::kNone ? "" : program_.tensor(id).name);
    return list;
  }

  Json operator_attributes() const {
    Json json = Json::object();
    for (const auto& [name, value] : task_.attributes) {
      std::visit(
          [&, &key = name](const auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, Tensor>) {
              json[key] = to_doubles(v.view());
            } else {
              json[key] = v;
            }
          },
          value);
    }
    return json;
  }

  void add_conv_attributes(const model::Convolution& conv, Json& json) const {
    json["kernel"] = conv.kernel;
    json["stride"] = conv.stride;
    json["pad"] = conv.pad;
    json["dilation"] = conv.dilation;
    json["group"] = conv.mode == model::ConvMode::kDepthwise ? conv.out_channels : 1;
    json["pad_value"] = conv.pad_value;
  }

  static void add_pool_attributes(const model::Pool& pool, Json& json) {
    json["kernel"] = pool.kernel;
    json["stride"] = pool.stride;
    json["pad"] = pool.pad;
    json["pad_value"] = pool.pad_value;
    if (pool.average) json["count_include_pad"] = 1;
  }

  Status add_conv_constants(const model::Convolution& conv) {
    const Tensor plain = plain_weights(program_, conv);
    const bool depthwise = conv.mode == model::ConvMode::kDepthwise;
    const Tensor shown = conv.transposed ? transposed_weights(plain, depthwise) : plain;
    OPENRKNN_TRY(Json weights, array("weights", shown.view()));
    add_quant(conv.weight_quant, weights);
    json_["weights"] = std::move(weights);
    if (conv.params == model::kNone) return {};
    if (conv.weight_dtype != DType::kInt8) return add_half_bias(conv);
    const model::ChannelParams params =
        model::unpack_params(program_.profile, program_.blob(conv.params), conv.out_channels);
    const std::vector<int64_t> sums = weight_sums(plain, conv.weight_quant);
    const model::TensorDesc& input = program_.tensor(task_.inputs[0]);
    const int64_t zero = input.quant ? input.quant->zero_point() : 0;
    std::vector<int32_t> bias(params.bias);
    for (size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<int32_t>(bias[c] + zero * sums[c]);
    const Shape shape{conv.out_channels};
    OPENRKNN_TRY(json_["bias"], array("bias", Tensor::from(shape, bias).view()));
    OPENRKNN_TRY(json_["bias_folded"], array("bias_folded", Tensor::from(shape, params.bias).view()));
    multipliers_ = params.multiplier;
    return {};
  }

  Status add_half_bias(const model::Convolution& conv) {
    const auto bytes = program_.blob(conv.params);
    Tensor bias(DType::kFloat32, Shape{conv.out_channels});
    std::memcpy(bias.mutable_data(), bytes.data(), std::min(bytes.size(), bias.bytes()));
    OPENRKNN_TRY(json_["bias"], array("bias", bias.view()));
    return {};
  }

  void add_requant() {
    if (!task_.requant) return;
    const model::Requant& r = *task_.requant;
    Json json = Json::object();
    if (task_.conv && !r.channel_multiplier_bypass) {
      json["channel_multiplier"] = multipliers_;
      json["channel_shift"] = r.channel_shift;
      json["channel_shift_negative"] = r.channel_shift_negative;
    }
    json["multiplier"] = r.multiplier;
    json["shift"] = r.shift;
    json["zero_point"] = r.zero_point;
    json["rounding"] = "half_even";
    json["zero_point_before_rounding"] = program_.profile.zero_point_before_rounding;
    json_["requant"] = std::move(json);
  }

  Status add_activation() {
    const model::Activation& a = task_.activation;
    if (a.kind == model::ActivationKind::kLinear) return {};
    const bool integer = task_.requant.has_value();
    Json json;
    if (a.kind == model::ActivationKind::kClamp) {
      json = {{"kind", "clamp"}, {"domain", "value"}};
      json["min"] = integer ? Json(a.min) : limit(a.fmin);
      json["max"] = integer ? Json(a.max) : limit(a.fmax);
    } else if (a.kind == model::ActivationKind::kPRelu) {
      json = {{"kind", "prelu"}, {"domain", "value"}};
      OPENRKNN_TRY(json["alpha"], slopes(a, integer));
    } else if (a.kind == model::ActivationKind::kFunction) {
      json = {{"kind", "function"}, {"domain", "value"}, {"alpha", a.alpha}, {"beta", a.beta}};
    } else {
      json["kind"] = "table";
      OPENRKNN_TRY(json["table"], table(a, integer));
    }
    if (!a.function.empty()) json["function"] = a.function;
    json_["activation"] = std::move(json);
    return {};
  }

  // JSON has no infinity: an open end is the largest float.
  static Json limit(float value) {
    const float largest = std::numeric_limits<float>::max();
    return std::clamp(value, -largest, largest);
  }

  Result<Json> slopes(const model::Activation& a, bool integer) {
    Tensor values(integer ? DType::kInt16 : DType::kFloat32, Shape{a.slope_count});
    const auto bytes = program_.blob(a.slopes);
    std::memcpy(values.mutable_data(), bytes.data(), std::min(bytes.size(), values.bytes()));
    OPENRKNN_TRY(Json json, array("alpha", values.view()));
    if (integer) json["shift"] = a.slope_shift;
    return json;
  }

  Result<Json> table(const model::Activation& a, bool integer) {
    Tensor values(DType::kInt16, Shape{2, 513});
    const auto bytes = program_.blob(a.table);
    std::memcpy(values.mutable_data(), bytes.data(), std::min(bytes.size(), values.bytes()));
    OPENRKNN_TRY(Json json, array("table", values.view()));
    if (integer) {
      json["index_scale"] = a.index_scale;
      json["index_shift"] = a.index_shift;
    } else {
      json["index_scale"] = a.findex_scale;
      json["output_scale"] = a.out_scale;
      json["output_offset"] = 0;
      json["form"] = a.form == model::TableForm::kValue ? "value" : a.form == model::TableForm::kGate ? "gate" : "plus";
    }
    json["start"] = -16384;
    json["end"] = 16384;
    json["interpolation"] = "floor";
    return json;
  }

  Result<Json> array(const std::string& what, const TensorView& tensor) {
    OPENRKNN_TRY(const std::string file, constants_.write(prefix_ + "_" + what, tensor));
    return Json{{"file", file}, {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape.to_vector()}};
  }

  const model::Program& program_;
  const model::Task& task_;
  std::string prefix_;
  ConstantWriter& constants_;
  std::vector<int32_t> multipliers_;
  Json json_;
};

}  // namespace

Result<std::string> ConstantWriter::write(const std::string& name, const TensorView& tensor) {
  const std::string file = "constants/" + name + ".npy";
  OPENRKNN_CHECK_OK(io::write_npy((std::filesystem::path(folder_) / file).string(), tensor));
  return file;
}

void add_quant(const std::optional<QuantParams>& quant, nlohmann::ordered_json& json) {
  if (!quant) return;
  if (quant->granularity == Granularity::kTensor) {
    json["scale"] = quant->scale();
    json["zero_point"] = quant->zero_point();
    return;
  }
  if (quant->granularity == Granularity::kChannel || quant->zero_points.empty()) {
    json["scale"] = quant->scales;
    json["zero_point"] = quant->zero_points;
    return;
  }
  json["scale"] = quant->scales;  // [channel][group], row-major
  json["zero_point"] = quant->zero_points;
  json["group_size"] = quant->group_size;
}

Result<nlohmann::ordered_json> task_json(const model::Program& program, size_t index, ConstantWriter& constants) {
  return TaskWriter(program, index, constants).run();
}

}  // namespace openrknn::analysis
