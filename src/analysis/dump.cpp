#include "analysis/dump.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "analysis/dump_task.hpp"
#include "io/npy.hpp"
#include "model/codec.hpp"

namespace openrknn::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json profile_json(const NumericsProfile& p) {
  return {{"name", p.name},
          {"channel_multiplier", p.channel_multiplier == ChannelMultiplier::kInt16 ? "int16" : "q14"},
          {"zero_point_before_rounding", p.zero_point_before_rounding},
          {"fused_residual", p.fused_residual},
          {"fp16_group", p.fp16_group},
          {"fp16_slice", p.fp16_slice}};
}

class Dumper {
 public:
  Dumper(const model::Program& program, const std::string& folder) : program_(program), folder_(folder) {}

  Status write_tensor(int id, const TensorView& data) {
    const model::TensorDesc& tensor = program_.tensor(id);
    const std::string file = fmt::format("tensors/{}.npy", id);
    OPENRKNN_CHECK_OK(io::write_npy((std::filesystem::path(folder_) / file).string(), data));
    Json json{{"file", file}, {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape.to_vector()}};
    add_quant(tensor.quant, json);
    tensors_[static_cast<size_t>(id)] = std::move(json);
    return {};
  }

  Status write_constants() {
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const model::TensorDesc& tensor = program_.tensors[i];
      if (tensor.constant == model::kNone) continue;
      Tensor plain(tensor.dtype, tensor.shape);
      const auto bytes = program_.blob(tensor.constant);
      if (tensor.layout == model::Layout::kPlain) {
        std::memcpy(plain.mutable_data(), bytes.data(), std::min(bytes.size(), plain.bytes()));
      } else {
        model::unpack_tensor(tensor, bytes.data(), plain.mutable_data());
      }
      OPENRKNN_CHECK_OK(write_tensor(static_cast<int>(i), plain.view()));
    }
    return {};
  }

  Status write_tasks() {
    Json json{{"target", program_.target},
              {"profile", profile_json(program_.profile)},
              {"tensors", Json::object()},
              {"tasks", Json::array()}};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].is_null()) json["tensors"][program_.tensors[i].name] = std::move(tensors_[i]);
    }
    ConstantWriter constants(folder_);
    for (size_t i = 0; i < program_.tasks.size(); ++i) {
      OPENRKNN_TRY(Json task, task_json(program_, i, constants));
      json["tasks"].push_back(std::move(task));
    }
    const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    return write_file_atomically((std::filesystem::path(folder_) / "tasks.json").string(), text);
  }

 private:
  const model::Program& program_;
  const std::string& folder_;
  std::vector<Json> tensors_ = std::vector<Json>(program_.tensors.size());
};

}  // namespace

Result<sim::Tensors> run_and_dump(sim::Machine& machine, const model::Program& program, const sim::Tensors& inputs,
                                  sim::RunOptions options, const std::string& folder) {
  const std::filesystem::path base(folder);
  OPENRKNN_CHECK_OK(make_folders((base / "tensors").string()));
  OPENRKNN_CHECK_OK(make_folders((base / "constants").string()));
  Dumper dumper(program, folder);
  Status written;
  const auto outer = options.observer;
  options.observer = [&](int tensor, const Tensor& data) {
    if (written.ok()) written = dumper.write_tensor(tensor, data.view());
    if (outer) outer(tensor, data);
  };
  OPENRKNN_TRY(sim::Tensors outputs, machine.run(inputs, options));
  OPENRKNN_CHECK_OK(written);
  OPENRKNN_CHECK_OK(dumper.write_constants());
  OPENRKNN_CHECK_OK(dumper.write_tasks());
  return outputs;
}

}  // namespace openrknn::analysis
